import { FeedbackRequest } from "relay-protocol/contract/requests.ts";
import { readBody } from "relay-runtime/http/input.ts";
import type { Handlers } from "relay-runtime/http/router.ts";
import { addFeedback } from "relay-window/counters/counters.ts";
import type { RedisCalls } from "relay-window/redis/redis-calls.ts";
import type { ProcessWindow } from "relay-window/window/process-window.ts";
import { contactOf, type GatewaySettings } from "../settings.ts";
import type { RateLimits } from "./authentication.ts";

interface Parts {
  readonly link: RedisCalls;
  readonly window: ProcessWindow;
  readonly limits: RateLimits;
  readonly settings: Pick<GatewaySettings, "contact">;
}

/** Feedback: counted by labels from a closed set; its text is never kept. Source: docs/reports.md#feedback. */
export function feedbackEndpoints({
  link,
  window,
  limits,
  settings,
}: Parts): Pick<Handlers<"gateway">, "submitFeedback"> {
  const note = `${FEEDBACK_REACH} ${contactOf(settings.contact).note}`;
  return {
    async submitFeedback(ctx) {
      await limits.addresses.use("feedback", ctx.ip);
      await addFeedback(link, window, await readBody(ctx, FeedbackRequest));
      return { ok: true, stored: "aggregate_only", raw_message_stored: false, note };
    },
  };
}

/** What feedback can and cannot do. Each document that offers feedback says so. Source: docs/reports.md#feedback. */
export const FEEDBACK_REACH =
  "Feedback is counted by category, and its text is dropped: nobody reads it, so it reaches no person.";
