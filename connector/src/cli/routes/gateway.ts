import { membersOf } from "../../frames.ts";
import { usage } from "../failure.ts";
import type { Order, Receipt } from "../orders.ts";
import type { RelayHttp } from "../relay-http.ts";
import type { Route } from "./route.ts";

const PENDING = "pending_until_session.approve_or_session.reject";

/** Over HTTP with an API key: the relay's gateway signs, and the agent's connection is left alone. */
export function gatewayRoute(agent: string, apiKey: string, http: RelayHttp): Route {
  return {
    name: "gateway",
    place: async (order) => await post(http, apiKey, { from: agent, ...order }),
    close: async () => {},
  };
}

/** An Idempotency-Key makes it safe to send the same again when the answer was lost. */
async function post(http: RelayHttp, apiKey: string, order: Order & { from: string }): Promise<Receipt> {
  const { path, body } = requestOf(order);
  const headers = { "x-api-key": apiKey, "idempotency-key": crypto.randomUUID() };
  const send = () => http.post(path, JSON.stringify(body), headers);
  const first = await send().catch(() => undefined);
  const { envelope_id, target_delivery, session_id } = http.succeeded(first ?? (await send()));
  const { status, can_deliver_realtime } = membersOf(target_delivery);
  return {
    envelope_id: String(envelope_id),
    target_delivery: { status: String(status), can_deliver_realtime: can_deliver_realtime === true },
    ...(session_id !== undefined && { session_id: String(session_id), session_status: PENDING }),
  };
}

function requestOf(order: Order & { from: string }): { path: string; body: object } {
  const { from, to } = order;
  if ("request" in order) return { path: "/v1/sessions/request", body: { from, to, ...order.request } };
  const message = "payload" in order ? order.payload.message : undefined;
  const isText = "payload" in order && Object.keys(order.payload).length === 1 && order.task_id === undefined;
  if (!isText || typeof message !== "string") {
    throw usage(
      'Over HTTP (RELAY_API_KEY) only a text can be sent: {"message":"…"}, without --task-id.',
      "Unset RELAY_API_KEY to send it signed with the agent's own key.",
    );
  }
  return { path: "/v1/messages/send", body: { from, to, message, ...(order.type && { type: order.type }) } };
}
