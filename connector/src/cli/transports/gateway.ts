import { membersOf } from "../../frames.ts";
import { PENDING } from "../../session-status.ts";
import type { ControlRequest, ControlResult } from "../control/request.ts";
import { usageError } from "../failure.ts";
import type { RelayHttp } from "../relay-http.ts";
import type { Transport } from "./transport.ts";

/** Over HTTP with an API key: the relay's gateway signs, and the agent's connection is not involved. */
export function gatewayTransport(agent: string, apiKey: string, http: RelayHttp): Transport {
  return {
    name: "gateway",
    send: async (request) => await post(http, apiKey, { from: agent, ...request }),
    close: async () => {},
  };
}

/** With the Idempotency-Key, a request whose answer was lost can be sent again safely. */
async function post(
  http: RelayHttp,
  apiKey: string,
  request: ControlRequest & { from: string },
): Promise<ControlResult> {
  const { path, body } = httpRequestOf(request);
  const headers = { "x-api-key": apiKey, "idempotency-key": crypto.randomUUID() };
  const attempt = () => http.post(path, JSON.stringify(body), headers);
  const first = await attempt().catch(() => undefined);
  const { envelope_id, target_delivery, session_id } = http.requireSuccess(first ?? (await attempt()));
  const { status, can_deliver_realtime } = membersOf(target_delivery);
  return {
    envelope_id: String(envelope_id),
    target_delivery: { status: String(status), can_deliver_realtime: can_deliver_realtime === true },
    ...(session_id !== undefined && { session_id: String(session_id), session_status: PENDING }),
  };
}

function httpRequestOf(request: ControlRequest & { from: string }): { path: string; body: object } {
  const { from, to } = request;
  if ("request" in request) return { path: "/v1/sessions/request", body: { from, to, ...request.request } };
  const message = "payload" in request ? request.payload.message : undefined;
  const isText = "payload" in request && Object.keys(request.payload).length === 1 && request.task_id === undefined;
  if (!isText || typeof message !== "string") {
    throw usageError(
      'Over HTTP (RELAY_API_KEY) only a text can be sent: {"message":"…"}, without --task-id.',
      "Unset RELAY_API_KEY to send it signed with the agent's own key.",
    );
  }
  return { path: "/v1/messages/send", body: { from, to, message, ...(request.type && { type: request.type }) } };
}
