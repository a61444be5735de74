import { growingMs } from "../backoff.ts";
import { Connector } from "../connector.ts";
import { RelayError, type Retry } from "../errors.ts";
import { membersOf } from "../frames.ts";
import { ONLINE_LOOK } from "../limits.ts";
import { isRefusedUpgrade } from "../network-errors.ts";
import { pause } from "../pause.ts";
import { PresenceWatch } from "../presence-watch.ts";
import { PENDING } from "../session-status.ts";
import type { Delivery, Warning } from "../types.ts";
import { reportWarning } from "./connection-reports.ts";
import { EXIT, Failure, failureOf, usageError } from "./failure.ts";
import type { Io, Reporter } from "./io.ts";
import { type Identity, requireKey, type SigningAgent } from "./key-file.ts";
import type { Answer, RelayHttp } from "./relay-http.ts";
import { listenerTransport } from "./sharing/client.ts";
import {
  type AgentTransport,
  type ControlRequest,
  type ControlResult,
  execute,
  executeAsk,
  type Transport,
} from "./sharing/requests.ts";
import { controlPlace } from "./sharing/socket.ts";

/** How long what is sent once waits for a relay behind an edge that answers in its place, as during a rollout. */
export const EDGE = { outlastedMs: 15_000 };

/** Of statuses that do not pass 403 may: Envoy answers so while no pod is ready. Others are of a wrong address. */
function mayYetPass(retry: Retry, edgeStatus: number): boolean {
  return retry === "later" || edgeStatus === 403;
}

interface TransportOptions {
  readonly identity: Identity;
  readonly http: RelayHttp;
  readonly takeOver: boolean;
  readonly reporter: Reporter;
  /** Called with what comes over a connection of its own, beside replies; a listener prints it itself. */
  readonly heard?: ((delivery: Delivery) => void) | undefined;
}

/**
 * The transport that disturbs the agent's connection least: the gateway when there is an API key, else the control socket
 * of a running `relay listen`, else a connection of its own. @throws {Failure}
 * @param isForGateway the gateway can send it, too.
 */
export async function openTransport(isForGateway: boolean, options: TransportOptions, io: Io): Promise<Transport> {
  const apiKey = io.env.RELAY_API_KEY;
  const { identity, http, reporter } = options;
  if (isForGateway && apiKey)
    return gatewayTransport(identity.agent, apiKey, http, io.signal, (failure) => tellWait(reporter, failure));
  return await openAgentTransport(options, io);
}

/** The same for what the gateway cannot do. @throws {Failure} */
export async function openAgentTransport(options: TransportOptions, io: Io): Promise<AgentTransport> {
  const text = `Waiting for a process of the agent on this machine, or for the relay at ${options.http.url}.`;
  return await options.reporter.whileWaiting(text, agentTransport(options, io));
}

async function agentTransport(options: TransportOptions, io: Io): Promise<AgentTransport> {
  const { identity, http, takeOver, reporter, heard } = options;
  const credentials = requireKey(identity);
  let doubt: Failure | undefined;
  const listener = await listenerTransport(controlPlace(credentials.agent, http.websocketUrl, io, reporter)).catch(
    (error) => {
      doubt = failureOf(error);
      return undefined;
    },
  );
  if (listener !== undefined) return listener;
  try {
    const waiting = (error: RelayError) => tellWait(reporter, error);
    const warned = (warning: Warning) => reportWarning(warning, reporter);
    return await connectionTransport({ credentials, http, takeOver, waiting, warned, ...(heard && { heard }) }, io);
  } catch (error) {
    throw doubt !== undefined && isTaken(failureOf(error)) ? doubt : error;
  }
}

function tellWait(reporter: Reporter, { code, message, hint }: Failure | RelayError): void {
  reporter.waitingOnce(`${message} ${hint} Trying again.`, { code });
}

/** The relay does not let it connect, since the agent is online or the key is none: why no process here let it in says more. */
function isTaken({ exitCode }: Failure): boolean {
  return exitCode === EXIT.superseded || exitCode === EXIT.key;
}

/** Nothing was sent. */
const REFUSED = { outcome: "refused" } as const;

interface ConnectionTransportOptions {
  readonly credentials: SigningAgent;
  readonly http: RelayHttp;
  /** End the agent's connection elsewhere; without it, an agent that is online is refused. */
  readonly takeOver: boolean;
  /** What comes in beside replies. */
  readonly heard?: (delivery: Delivery) => void;
  /** Told why an edge lets nobody through to the relay at the moment; without it such an answer ends the start. */
  readonly waiting?: (error: RelayError) => void;
  readonly warned?: (warning: Warning) => void;
}

/**
 * Over a connection of its own, which registers the agent and so ends the agent's connection elsewhere.
 * Waits for a relay behind an edge that answers in its place, as during a rollout; not for one that is not there.
 * @throws {Failure | RelayError} `superseded_elsewhere`, `unreachable`, the refusal of the register.
 */
export async function connectionTransport(
  { credentials, http, takeOver, heard = () => {}, waiting, warned = () => {} }: ConnectionTransportOptions,
  io: Io,
): Promise<AgentTransport> {
  const connector = new Connector({ url: http.url, httpUrl: http.httpUrl, ...credentials, takeOver });
  connector.on("delivery", heard);
  connector.on("warning", warned);
  const unreachable = new AbortController();
  connector.on("error", (error) => {
    if (error.code !== "unreachable") return;
    if (waiting !== undefined && isOfEdge(error)) waiting(error);
    else unreachable.abort(error);
  });
  try {
    const signal = AbortSignal.any([io.signal, unreachable.signal]);
    await connector.start({ signal, timeoutMs: EDGE.outlastedMs });
  } catch (error) {
    if (unreachable.signal.aborted) throw unreachable.signal.reason;
    if ((error as RelayError).code === "timeout") throw notRegistered(http, error as RelayError);
    throw error;
  }
  return {
    name: "connection",
    send: (request) => execute(connector, request, io.signal),
    receipt: async (sessionId) => connector.receipt(sessionId),
    ask: (request) => executeAsk(connector, request, io.signal),
    close: () => connector.close(),
  };
}

function isOfEdge(error: RelayError): boolean {
  return isRefusedUpgrade(error) && mayYetPass(error.retry, (error.cause as { readonly status: number }).status);
}

function notRegistered({ websocketUrl }: RelayHttp, { message, cause, hint }: RelayError): Failure {
  const text = `The agent was not registered at ${websocketUrl} within ${EDGE.outlastedMs / 1000} s. ${message}`;
  if (!(cause instanceof RelayError))
    return new Failure("unreachable", text, "Run relay check to find the cause.", REFUSED);
  return new Failure(cause.code, text, hint, { ...REFUSED, retry: cause.retry });
}

/** Refusals that leave open whether the relay has accepted the request. Source: docs/protocol.md#errors. */
const UNDECIDED: ReadonlySet<string> = new Set(["unavailable", "internal_error", "idempotency_in_progress"]);
const API_KEY_HINT = "Correct RELAY_API_KEY, or unset it to send with the agent's own key.";
const UNDECIDED_HINT =
  "The relay may have accepted it. A new command sends it as another message, with its own Idempotency-Key. So ask the target before you send it again.";

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
