import { z } from "zod";
import { isBetweenTwo, KEY_ID_PATTERN, MESSAGE_TYPE_PATTERN } from "../wire/envelope.ts";
import { CREDENTIAL_LIMITS, HTTP_LIMITS, TEXT_LIMITS } from "../wire/limits.ts";
import { AgentId, BETWEEN_TWO, EXAMPLE_TARGET, TtlMinutes } from "./envelope.ts";

/**
 * Closed sets for feedback labels. Any other label counts as `other`. So memory stays bounded, and no sender's text is
 * kept. Source: docs/reports.md#feedback; docs/security.md#protections.
 */
export const OTHER = "other";

export const SENTIMENTS = ["helpful", "blocked", "neutral"] as const;

/** Obstacles between an agent's connector and a session. */
export const BLOCKER_CATEGORIES = [
  "connector_not_seen",
  "stale_presence",
  "session_request_failed",
  "next_step_unclear",
] as const;
export type BlockerCategory = (typeof BLOCKER_CATEGORIES)[number];

/** Categories that call for an action. */
export const ACTIONABLE_CATEGORIES = [
  ...BLOCKER_CATEGORIES,
  "session_request_auth_needed",
  "docs",
  "spam_offer_or_abuse",
  "durable_store_missing_or_not_written_yet",
] as const;
export type ActionableCategory = (typeof ACTIONABLE_CATEGORIES)[number];

/** Categories of checks that test the feedback itself. */
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

/** Request bodies of the HTTP surfaces. The relay refuses unknown fields. Source: docs/protocol.md#http. */

/** Body of POST /v1/messages/send. */
export const SimpleSendRequest = z
  .strictObject({
    from: AgentId,
    to: AgentId,
    message: z.string().min(1).max(TEXT_LIMITS.message),
    type: z
      .string()
      .regex(
        MESSAGE_TYPE_PATTERN,
        "must be message.send or message.<word> (1–32 of a–z 0–9 _, a letter first); for sessions use POST /v1/sessions/request",
      )
      .optional(),
  })
  .meta({ id: "SimpleSendRequest" });
export type SimpleSendRequest = z.infer<typeof SimpleSendRequest>;

/** Query of GET /v1/agents/{name}/credential. */
export const CredentialQuery = z.strictObject({
  key_id: z
    .string()
    .regex(KEY_ID_PATTERN)
    .optional()
    .meta({ description: "The key of the envelope that is to be checked; without it, the newest credential." }),
});

/** Body of POST /v1/sessions/request. */
export const SimpleSessionRequest = z
  .strictObject({
    from: AgentId,
    to: AgentId,
    purpose: z.string().min(1).max(TEXT_LIMITS.purpose),
    intro: z.string().max(TEXT_LIMITS.intro).optional(),
    scope: z.string().max(TEXT_LIMITS.scope).optional(),
    expected_frequency: z.string().max(TEXT_LIMITS.expectedFrequency).optional(),
    ttl_minutes: TtlMinutes.optional(),
  })
  .refine(isBetweenTwo, BETWEEN_TWO)
  .meta({ id: "SimpleSessionRequest" });
export type SimpleSessionRequest = z.infer<typeof SimpleSessionRequest>;

/** JSON Schema of a label: a closed set, but any other text is also accepted. */
export const openLabel = (labels: readonly string[]) => ({
  anyOf: [{ enum: labels }, { type: "string" }],
  description: "Any other label is accepted and counted as other.",
});
const label = (labels: readonly string[]) => z.string().meta(openLabel(labels));

/**
 * Body of the feedback endpoints. Labels are normalised to a closed set. The relay counts only whether there is a
 * message.
 */
export const FeedbackRequest = z
  .strictObject({
    surface: z.string().optional(),
    sentiment: label(SENTIMENTS).optional(),
    category: label(CATEGORIES).optional(),
    message: z.string().optional(),
  })
  .meta({ id: "FeedbackRequest" });
export type FeedbackRequest = z.infer<typeof FeedbackRequest>;

/** Query of POST /api/self-test. */
export const SelfTestQuery = z.strictObject({
  explain: z
    .literal("1")
    .optional()
    .meta({ description: "1: the answer contains the canonical text of an envelope whose shape is valid." }),
  /** No maximum here: a credential that is too long gets the refusal of a credential, with its reason. */
  credential: z.string().optional().meta({
    description: "That of the key, which a connection knows from the register on.",
    maxLength: CREDENTIAL_LIMITS.maxCharacters,
  }),
});

/** Query of GET /api/onboarding/check-online. */
export const CheckOnlineQuery = z.strictObject({ agent_id: AgentId.meta({ examples: [EXAMPLE_TARGET] }) });

/** The Idempotency-Key header: visible ASCII. Source: docs/protocol.md#http. */
export const IDEMPOTENCY_KEY_PATTERN = new RegExp(`^[\\x21-\\x7e]{1,${HTTP_LIMITS.idempotencyKeyCharacters}}$`);
