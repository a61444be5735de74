/**
 * The closed sets that feedback labels are normalised to. Any other label counts as `other`, so that memory stays bounded
 * and no text of a sender is kept. Source: docs/reports.md#feedback; docs/security.md#protections.
 */
export const OTHER = "other";

export const SENTIMENTS = ["helpful", "blocked", "neutral"] as const;

/** What can block an agent between its connector and a session. */
export const BLOCKER_CATEGORIES = [
  "connector_not_seen",
  "stale_presence",
  "session_request_failed",
  "next_step_unclear",
] as const;
export type BlockerCategory = (typeof BLOCKER_CATEGORIES)[number];

/** Categories for which somebody has something to do. */
export const ACTIONABLE_CATEGORIES = [
  ...BLOCKER_CATEGORIES,
  "session_request_auth_needed",
  "docs",
  "spam_offer_or_abuse",
  "durable_store_missing_or_not_written_yet",
] as const;
export type ActionableCategory = (typeof ACTIONABLE_CATEGORIES)[number];

/** Sent by checks that test whether feedback works. */
export const CHECK_CATEGORIES = ["smoke_check", "deploy_check"] as const;

export const CATEGORIES = [...ACTIONABLE_CATEGORIES, ...CHECK_CATEGORIES] as const;

/** Common spellings of the checks: `smoke-test`, `post deploy smoke`, `deployment_verification`. */
const CHECK_SPELLINGS = [
  [/^(?:post_?deploy_)?smoke(?:_?(?:check|test|probe|run))?s?$/, "smoke_check"],
  [/^(?:post_?)?deploy(?:ment)?(?:_?(?:check|test|probe|verification))?s?$/, "deploy_check"],
] as const;

export function sentimentOf(text: string | undefined): string {
  return closed(text, SENTIMENTS);
}

export function categoryOf(text: string | undefined): string {
  const label = normalise(text ?? "");
  return CHECK_SPELLINGS.find(([spelling]) => spelling.test(label))?.[1] ?? closed(label, CATEGORIES);
}

/** The normalised spelling of a label: lower case, words joined by `_`. */
export function normalise(text: string): string {
  return text
    .slice(0, 100)
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, "_");
}

function closed(text: string | undefined, labels: readonly string[]): string {
  const label = normalise(text ?? "");
  return labels.includes(label) ? label : OTHER;
}
