import type { Delivery } from "../types.ts";
import { waitingText } from "./arguments.ts";
import { EXIT, Failure, failureOf } from "./failure.ts";
import { type Io, jsonLine, Reporter, writeLine } from "./io.ts";
import { readIdentity } from "./key-file.ts";
import { RelayHttp } from "./relay-http.ts";
import type { Transport } from "./sharing/requests.ts";
import { type ControlRequest, type ControlResult, sealedOf } from "./sharing/requests.ts";
import { openTransport } from "./transport.ts";

/** Options that send, request, approve and reject have in common. */
interface SendOnceOptions {
  readonly key?: string | undefined;
  readonly url?: string | undefined;
  readonly json?: boolean | undefined;
  readonly "take-over"?: boolean | undefined;
}

/** What a request was sent with. */
export interface Opened {
  readonly http: RelayHttp;
  readonly reporter: Reporter;
  readonly transport: Transport;
}

interface SendOnce {
  readonly isForGateway: boolean;
  /** Called once the transport is open. @param agent who sends it. */
  readonly request: (http: RelayHttp, agent: string, reporter: Reporter) => Promise<ControlRequest>;
  /** Called with the result while the transport is still open. @returns the exit code. */
  readonly after?: (result: ControlResult, opened: Opened) => Promise<number>;
  /** Called with what comes over a connection of its own; a listener prints it itself. */
  readonly heard?: (delivery: Delivery) => void;
}

/** Sends one request over the best transport, and prints the result. @throws {Failure | RelayError} */
export async function sendOnce(
  options: SendOnceOptions,
  { isForGateway, request, after, heard }: SendOnce,
  io: Io,
): Promise<number> {
  const reporter = new Reporter(io.stderr, options.json === true);
  const http = new RelayHttp(options.url, io, reporter.waiting);
  const identity = await readIdentity(options.key, io.env, reporter);
  const takeOver = options["take-over"] === true;
  const transport = await openTransport(isForGateway, { identity, http, takeOver, reporter, heard }, io);
  try {
    const sent = await request(http, identity.agent, reporter);
    const accepted = transport.send(sent).catch((error) => withStatus(error, sent, http));
    const waitOnline = "payload" in sent ? sent.wait_online_ms : undefined;
    const text = waitingText("the relay to accept it", sent.to, waitOnline);
    const result = await reporter.whileWaiting(text, accepted);
    const line = options.json
      ? jsonLine({ ok: true, ...result, ...sealedOf(sent), via: transport.name })
      : resultText(sent, result);
    await writeLine(io.stdout, line);
    return (await after?.(result, { http, reporter, transport })) ?? EXIT.ok;
  } finally {
    await transport.close();
  }
}

/** Where a decision came too late, how the session is: the relay does not say it with its refusal. */
async function withStatus(error: unknown, request: ControlRequest, http: RelayHttp): Promise<never> {
  const failure = failureOf(error);
  const sessionId = "approve" in request ? request.approve : "reject" in request ? request.reject : undefined;
  if (failure.code !== "session_closed" || sessionId === undefined) throw error;
  const { status, decided_at_iso } = await http.session(sessionId).catch((): Record<string, unknown> => ({}));
  if (status === undefined) throw error;
  const since = typeof decided_at_iso === "string" ? ` since ${decided_at_iso}` : "";
  throw new Failure(failure.code, `${failure.message} It is ${status}${since}.`, failure.hint, failure);
}

/** The result of a request, as text for people. */
function resultText(request: ControlRequest, result: ControlResult): string {
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
