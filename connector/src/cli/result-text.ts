import type { ControlRequest, ControlResult } from "./sharing/requests.ts";

/** The result of a request, as text for people. */
export function resultText(request: ControlRequest, result: ControlResult): string {
  const { to } = request;
  const { status, can_deliver_realtime: isDelivered } = result.target_delivery;
  const duplicate = result.duplicate ? " (The relay had accepted it before; it was not delivered twice.)" : "";
  const delivery = isDelivered ? `It was handed to ${to}.` : notDelivered(request, status);
  return `${accepted(request, result)} ${delivery}${duplicate}`;
}

function accepted(request: ControlRequest, { envelope_id, session_id, session_status }: ControlResult): string {
  if ("payload" in request) return `Accepted${request.seal ? ", sealed," : ""} as ${envelope_id}.`;
  if ("request" in request)
    return `Accepted as session ${session_id}, pending until ${request.to} approves or rejects it.`;
  return `Session ${session_id} is ${session_status}.`;
}

const STATUS_TEXTS: ReadonlyMap<string, string> = new Map([
  ["stale", "is not online any more"],
  ["not_seen", "has not been seen since the relay's process window began (if that is long ago, check its id)"],
]);

/** The relay stores no contents: an envelope that is not delivered at once is gone. */
function notDelivered(request: ControlRequest, status: string): string {
  const { to } = request;
  const text = `But ${to} ${STATUS_TEXTS.get(status) ?? "is not online"}: nobody received it, and the relay stores no contents.`;
  if ("payload" in request) return `${text} Send it again once relay status shows ${to} online, or use --wait-online.`;
  if ("request" in request) return `${text} It will learn only the session's id; request again once it is online.`;
  return `${text} The decision stands; the requester can look the session up.`;
}
