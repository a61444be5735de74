import { FeedbackRequest } from "@agent-relay/shared/contract/requests.ts";
import { readBody } from "@agent-relay/shared/http/body.ts";
import type { Handlers } from "@agent-relay/shared/http/router.ts";
import { addFeedback } from "@agent-relay/shared/window/feedback.ts";
import type { ProcessWindow } from "@agent-relay/shared/window/process-window.ts";
import type { RedisLink } from "@agent-relay/shared/window/redis-link.ts";
import { admitAddress } from "../admission.ts";
import type { RateLimits } from "../rate-limits.ts";

interface Deps {
  readonly link: RedisLink;
  readonly window: ProcessWindow;
  readonly limits: RateLimits;
}

/** Feedback: counted by labels of a closed set, its text never kept. */
export function feedbackRoutes({ link, window, limits }: Deps): Pick<Handlers<"gateway">, "submitFeedback"> {
  return {
    async submitFeedback(ctx) {
      await admitAddress(ctx, limits, "feedback");
      await addFeedback(link, window, await readBody(ctx, FeedbackRequest));
      return { ok: true, stored: "aggregate_only", raw_message_stored: false };
    },
  };
}
