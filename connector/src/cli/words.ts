import type { Order, Receipt } from "./orders.ts";

/** What became of an order, for people. */
export function receiptWords(order: Order, receipt: Receipt): string {
  const { to } = order;
  const { status, can_deliver_realtime: isDelivered } = receipt.target_delivery;
  const again = receipt.duplicate ? " (The relay had accepted it before; it was not delivered twice.)" : "";
  return `${lead(order, receipt)} ${isDelivered ? `It was handed to ${to}.` : missed(order, status)}${again}`;
}

function lead(order: Order, { session_id, session_status }: Receipt): string {
  if ("payload" in order) return "Accepted.";
  if ("request" in order) return `Accepted as session ${session_id}, pending until ${order.to} approves or rejects it.`;
  return `Session ${session_id} is ${session_status}.`;
}

const ABSENCES: Readonly<Record<string, string>> = {
  stale: "was online, but is not now",
  not_seen: "has not been online since the relay's window opened",
};

/** The relay keeps no contents: what was not handed over is gone. */
function missed(order: Order, status: string): string {
  const absence = `But ${order.to} ${ABSENCES[status] ?? "is not online"}: nobody got it, and the relay keeps no contents.`;
  if ("payload" in order)
    return `${absence} Send it again once relay status shows the agent online, or use --wait-online.`;
  if ("request" in order) return `${absence} It will learn of the session's id only; request again once it is online.`;
  return `${absence} The decision stands; the requester can look the session up.`;
}
