import { z } from "zod";
import { AgentId } from "./agent-id.ts";
import { MESSAGE_TYPE_PATTERN, TtlMinutes } from "./envelope.ts";
import { HTTP_LIMITS, TEXT_LIMITS } from "./limits.ts";

/** Request bodies of the HTTP surfaces; unknown fields are refused. Source: the contract, "Resources". */

/** Body of POST /v1/messages/send. */
export const SimpleSendRequest = z
  .strictObject({
    from: AgentId,
    to: AgentId,
    message: z.string().min(1).max(TEXT_LIMITS.message),
    type: z
      .string()
      .regex(MESSAGE_TYPE_PATTERN, "must be message.send or message.<word>; sessions go to POST /v1/sessions/request")
      .optional(),
  })
  .meta({ id: "SimpleSendRequest" });
export type SimpleSendRequest = z.infer<typeof SimpleSendRequest>;

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
  .meta({ id: "SimpleSessionRequest" });
export type SimpleSessionRequest = z.infer<typeof SimpleSessionRequest>;

/** Body of the feedback endpoints. Every text is normalised to a closed set or only counted. */
export const FeedbackRequest = z
  .strictObject({
    surface: z.string().optional(),
    sentiment: z.string().optional(),
    category: z.string().optional(),
    message: z.string().optional(),
  })
  .meta({ id: "FeedbackRequest" });
export type FeedbackRequest = z.infer<typeof FeedbackRequest>;

/** Query of GET /api/onboarding/check-online. */
export const CheckOnlineQuery = z.strictObject({ agent_id: AgentId });

/** The Idempotency-Key header: visible ASCII. Source: protocol, section 9. */
export const IDEMPOTENCY_KEY_PATTERN = new RegExp(`^[\\x21-\\x7e]{1,${HTTP_LIMITS.idempotencyKeyCharacters}}$`);
