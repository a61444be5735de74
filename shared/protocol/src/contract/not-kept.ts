import type { NotKept } from "./presence.ts";
import { SURFACES } from "./surfaces.ts";

const ADVICE = {
  message: "Send it again when the target is online",
  session_request: "Request the session again when the target is online",
} as const;
/** A repeat would only meet the first envelope: the replay guard or the claim of its Idempotency-Key finds it. */
const ANEW = {
  envelope: "as a new envelope, with a new id",
  http: "as a new request, with a new Idempotency-Key",
} as const;
const STAYS = "; this one stays pending by its ids and times, without its purpose, intro and scope";

/**
 * The answer to a message or session request whose target was not online. Source: docs/protocol.md#delivery.
 * @param way how the sender sent it.
 */
export function notKept(what: keyof typeof ADVICE, way: keyof typeof ANEW, target: string, baseUrl: string): NotKept {
  const stays = what === "session_request" ? STAYS : "";
  return {
    kept: false,
    do: `${ADVICE[what]}, ${ANEW[way]}${stays}`,
    check: `${baseUrl}${SURFACES.checkOnline.path}?agent_id=${target}`,
  };
}
