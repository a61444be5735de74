import type { NotKept } from "./presence.ts";
import { SURFACES } from "./surfaces.ts";

const ADVICE = {
  message: "Send it again when the target is online",
  session_request:
    "Request the session again when the target is online: this one stays pending by its ids and times, without its purpose, intro and scope",
} as const;

/** What the sender of a message or session request reads when its target was not online. Source: docs/protocol.md#delivery. */
export function notKept(what: keyof typeof ADVICE, target: string, baseUrl: string): NotKept {
  return { kept: false, do: ADVICE[what], check: `${baseUrl}${SURFACES.checkOnline.path}?agent_id=${target}` };
}
