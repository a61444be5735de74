import { SURFACES } from "./surfaces.ts";

/**
 * The closed sets that feedback labels are normalised to; whatever else is sent counts as `other`, so that memory stays
 * bounded and no text of a sender is kept. Source: the contract, "FeedbackRequest"; pitfalls, "Feedback as a weapon".
 */
export const OTHER = "other";

export const SENTIMENTS = ["helpful", "blocked", "neutral"] as const;

/** Blockers between connector and session. */
export const BLOCKER_CATEGORIES = [
  "connector_not_seen",
  "stale_presence",
  "session_request_failed",
  "next_step_unclear",
] as const;

export const CATEGORIES = [
  ...BLOCKER_CATEGORIES,
  "session_request_auth_needed",
  "docs",
  "spam_offer_or_abuse",
  "durable_store_missing_or_not_written_yet",
  "smoke_check",
  "deploy_check",
] as const;

/** Names that feedback may give a surface besides the catalogue's operation ids and paths. */
const SURFACE_NAMES = ["websocket", "gateway", "connector", "docs", "home"] as const;

const SURFACE_LABELS: ReadonlyMap<string, string> = new Map([
  ...SURFACE_NAMES.map((name) => [name, name] as const),
  ...Object.entries(SURFACES).flatMap(([id, { path, aliases }]) =>
    [id, path, ...aliases].map((name) => [normalise(name), id] as const),
  ),
]);

export function sentimentOf(text: string | undefined): string {
  return closed(text, SENTIMENTS);
}

export function categoryOf(text: string | undefined): string {
  return closed(text, CATEGORIES);
}

export function surfaceLabelOf(text: string | undefined): string {
  return SURFACE_LABELS.get(normalise(text ?? "")) ?? OTHER;
}

function closed(text: string | undefined, labels: readonly string[]): string {
  const label = normalise(text ?? "");
  return labels.includes(label) ? label : OTHER;
}

function normalise(text: string): string {
  return text
    .slice(0, 100)
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, "_");
}
