import type { NotKept } from "./presence.ts";
import { SURFACES } from "./surfaces.ts";

const ADVICE = {
  message: "Send it again when the target is online",
  session_request: "Request the session again when the target is online",
} as const;
/** A repeat would only meet the first: the replay guard, or the claim of its Idempotency-Key. */
const ANEW = {
  envelope: "as a new envelope, with a new id",
  http: "as a new request, with a new Idempotency-Key",
} as const;
const STAYS = "; this one stays pending by its ids and times, without its purpose, intro and scope";

/**
 * What the sender of a message or session request reads when its target was not online. Source: docs/protocol.md#delivery.
 * @param way how it was sent.
 */
export function notKept(what: keyof typeof ADVICE, way: keyof typeof ANEW, target: string, baseUrl: string): NotKept {
  const stays = what === "session_request" ? STAYS : "";
  return {
    kept: false,
    do: `${ADVICE[what]}, ${ANEW[way]}${stays}`,
    check: `${baseUrl}${SURFACES.checkOnline.path}?agent_id=${target}`,
  };
}
