import {
  ACTIONABLE_CATEGORIES,
  type ActionableCategory,
  BLOCKER_CATEGORIES,
  type BlockerCategory,
  CHECK_CATEGORIES,
} from "@agent-relay/shared/contract/feedback-labels.ts";
import type { Counts } from "@agent-relay/shared/window/snapshot.ts";

/** Reading of the feedback counts: `category:docs`, `sentiment:blocked`, `surface:checkOnline`, `total`. Pure. */

export function categoryCount(feedback: Counts, category: string): number {
  return feedback.get(`category:${category}`) ?? 0;
}

/** Counts by label of one kind; labels not counted are left out. */
export function labelled(feedback: Counts, kind: "category" | "sentiment" | "surface"): Record<string, number> {
  const prefix = `${kind}:`;
  const ofKind = [...feedback].filter(([name]) => name.startsWith(prefix));
  return Object.fromEntries(ofKind.map(([name, count]) => [name.slice(prefix.length), count]));
}

/** Categories counted at all, most counted first, in the catalogue's order where equal. */
export function mostCounted<Category extends string>(
  feedback: Counts,
  categories: readonly Category[],
): { readonly category: Category; readonly count: number }[] {
  return categories
    .map((category) => ({ category, count: categoryCount(feedback, category) }))
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => b.count - a.count);
}

/** The category that asks most for action; null when none does. */
export function leadingCategory(feedback: Counts): ActionableCategory | null {
  return mostCounted(feedback, ACTIONABLE_CATEGORIES)[0]?.category ?? null;
}

/** Feedback that was sent to see whether feedback works. */
export function checksTotal(feedback: Counts): number {
  return CHECK_CATEGORIES.reduce((sum, category) => sum + categoryCount(feedback, category), 0);
}

/** Counts of the categories that stand between connector and session, those of no feedback included. */
export function blockerCounts(feedback: Counts): Record<BlockerCategory, number> {
  const counts = BLOCKER_CATEGORIES.map((category) => [category, categoryCount(feedback, category)]);
  return Object.fromEntries(counts) as Record<BlockerCategory, number>;
}
