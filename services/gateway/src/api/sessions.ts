import { ServiceError } from "relay-protocol/contract/refusals.ts";
import type { Handlers } from "relay-runtime/http/router.ts";
import type { RedisCalls } from "relay-window/redis/redis-calls.ts";
import { readSession } from "relay-window/sessions/look-ups.ts";
import type { ProcessWindow } from "relay-window/window/process-window.ts";
import type { RateLimits } from "./rate-limits.ts";
import { sessionRecord } from "./session-answer.ts";

interface Parts {
  readonly link: RedisCalls;
  readonly limits: RateLimits;
  readonly window: ProcessWindow;
}

/** State of one session. Source: docs/protocol.md#sessions. */
export function sessionEndpoints({ link, limits, window }: Parts): Pick<Handlers<"gateway">, "readSession"> {
  return {
    async readSession(ctx) {
      await limits.addresses.use("session_lookups", ctx.ip);
      const session = await readSession(link, window, ctx.params.session_id ?? "");
      if (session === null) throw new ServiceError("unknown_session");
      return sessionRecord(session);
    },
  };
}
