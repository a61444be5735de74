import {
  ACTIONABLE_CATEGORIES,
  type ActionableCategory,
  BLOCKER_CATEGORIES,
  type BlockerCategory,
  CHECK_CATEGORIES,
} from "relay-protocol/contract/requests.ts";
import type { Counts } from "relay-window/counters/snapshot.ts";

/** Readers of the feedback counts, whose names are `category:docs`, `sentiment:blocked`, `surface:checkOnline`, `total`. Pure. */

function categoryCount(feedback: Counts, category: string): number {
  return feedback.get(`category:${category}`) ?? 0;
}

/** Counts by label of one kind; labels without feedback are left out. */
export function countsByLabel(feedback: Counts, kind: "category" | "sentiment" | "surface"): Record<string, number> {
  const prefix = `${kind}:`;
  const ofKind = [...feedback].filter(([name]) => name.startsWith(prefix));
  return Object.fromEntries(ofKind.map(([name, count]) => [name.slice(prefix.length), count]));
}

/** The categories that have feedback, the largest count first, in the given order where equal. */
export function mostCounted<Category extends string>(
  feedback: Counts,
  categories: readonly Category[],
): { readonly category: Category; readonly count: number }[] {
  return categories
    .map((category) => ({ category, count: categoryCount(feedback, category) }))
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => b.count - a.count);
}

/** The actionable category with the largest count; null when none has feedback. */
export function leadingCategory(feedback: Counts): ActionableCategory | null {
  return mostCounted(feedback, ACTIONABLE_CATEGORIES)[0]?.category ?? null;
}

/** Feedback that was sent only to check that feedback works. */
export function checksTotal(feedback: Counts): number {
  return CHECK_CATEGORIES.reduce((sum, category) => sum + categoryCount(feedback, category), 0);
}

/** Counts of the categories that name a blocker between connector and session, zeros included. */
export function blockerCounts(feedback: Counts): Record<BlockerCategory, number> {
  const counts = BLOCKER_CATEGORIES.map((category) => [category, categoryCount(feedback, category)]);
  return Object.fromEntries(counts) as Record<BlockerCategory, number>;
}
