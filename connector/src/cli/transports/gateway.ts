import { growingMs } from "../../backoff.ts";
import { RelayError } from "../../errors.ts";
import { membersOf } from "../../frames.ts";
import { ONLINE_LOOK } from "../../limits.ts";
import { pause } from "../../pause.ts";
import { PresenceWatch } from "../../presence-watch.ts";
import { PENDING } from "../../session-status.ts";
import { Failure, failureOf, usageError } from "../failure.ts";
import type { Answer, RelayHttp } from "../relay-http.ts";
import type { ControlRequest, ControlResult } from "../sharing/requests.ts";
import { EDGE, mayYetPass, type Transport } from "./transport.ts";

/** Refusals that leave open whether the relay has accepted the request. Source: docs/protocol.md#errors. */
const UNDECIDED: ReadonlySet<string> = new Set(["unavailable", "internal_error", "idempotency_in_progress"]);
const API_KEY_HINT =
  "Correct RELAY_API_KEY, which goes before the agent's own key, or unset it to send under that one.";
const UNDECIDED_HINT =
  "The relay may have accepted it. What a new command sends counts as another one, under an Idempotency-Key of its own: ask the target before you send it again.";

type GatewayRequest = ControlRequest & { readonly from: string };

/**
 * Over HTTP with an API key: the relay's gateway signs, and the agent's connection is not involved.
 * @param waiting told why an edge lets nobody through to the relay at the moment.
 */
export function gatewayTransport(
  agent: string,
  apiKey: string,
  http: RelayHttp,
  signal: AbortSignal,
  waiting: (failure: Failure) => void = () => {},
): Transport {
  return {
    name: "gateway",
    send: async (request) => {
      const { path, body } = httpRequestOf({ from: agent, ...request });
      if ("payload" in request && request.wait_online_ms !== undefined) {
        await untilOnline(request.to, request.wait_online_ms, http, signal);
      }
      const headers = { "x-api-key": apiKey, "idempotency-key": crypto.randomUUID() };
      const attempt = async () => http.requireSuccess(await http.post(path, JSON.stringify(body), headers), true);
      return await sendBy(attempt, signal, waiting);
    },
    close: async () => {},
  };
}

async function untilOnline(agent: string, ms: number, http: RelayHttp, signal: AbortSignal): Promise<void> {
  const presence = await new PresenceWatch(http.client, 1).untilOnline(agent, ms, signal);
  if (presence === undefined) throw new RelayError("aborted");
}

/** With the Idempotency-Key, a request whose answer was lost is sent again safely: once, or as long as an edge may let it through. */
async function sendBy(
  attempt: () => Promise<Answer["body"]>,
  signal: AbortSignal,
  waiting: (failure: Failure) => void,
): Promise<ControlResult> {
  const deadline = performance.now() + EDGE.outlastedMs;
  let isLost = false;
  for (let attempts = 0; ; attempts += 1) {
    const tried = await attempt().catch(failureOf);
    if (!(tried instanceof Failure)) return resultOf(tried);
    const waitMs = Math.max(growingMs(attempts, ONLINE_LOOK.wait), tried.retryAfterMs ?? 0);
    const isOfEdge = tried.edgeStatus !== undefined && mayYetPass(tried.retry, tried.edgeStatus);
    const isInTime = isOfEdge && performance.now() + waitMs < deadline;
    if (tried.code !== "unreachable" || (attempts > 0 && !isInTime)) throw told(tried, isLost);
    isLost ||= tried.outcome === "unknown";
    if (!isInTime) continue;
    waiting(tried);
    await pause(waitMs, signal);
  }
}

/** @param isLost an earlier request may have been accepted. */
function told(last: Failure, isLost: boolean): Failure {
  if (last.code === "invalid_api_key") return new Failure(last.code, last.message, API_KEY_HINT);
  // A refusal that the relay repeats for the same Idempotency-Key is one of the earlier request, too.
  const leavesOpen = last.code === "unreachable" || last.retry === "later";
  const isOpen = (isLost && leavesOpen) || last.outcome === "unknown" || UNDECIDED.has(last.code);
  return isOpen ? new Failure(last.code, last.message, UNDECIDED_HINT, { ...last, outcome: "unknown" }) : last;
}

function resultOf({ envelope_id, target_delivery, session_id }: Answer["body"]): ControlResult {
  const { status, can_deliver_realtime } = membersOf(target_delivery);
  return {
    envelope_id: String(envelope_id),
    target_delivery: { status: String(status), can_deliver_realtime: can_deliver_realtime === true },
    ...(session_id !== undefined && { session_id: String(session_id), session_status: PENDING }),
  };
}

function httpRequestOf(request: GatewayRequest): { path: string; body: object } {
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
