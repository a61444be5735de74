import type { Delivery } from "../types.ts";
import { EXIT } from "./exit-codes.ts";
import { Failure, failureOf } from "./failure.ts";
import { readIdentity } from "./identity.ts";
import type { Io } from "./io.ts";
import { jsonLine, writeLine } from "./output.ts";
import { RelayHttp } from "./relay-http.ts";
import { Reporter } from "./reporter.ts";
import { resultText } from "./result-text.ts";
import { type ControlRequest, type ControlResult, sealedOf } from "./sharing/requests.ts";
import { openTransport } from "./transports/open.ts";
import type { Transport } from "./transports/transport.ts";
import { waitingText } from "./wait-online.ts";

/** Options that send, request, approve and reject have in common. */
export interface SendOnceOptions {
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

export interface SendOnce {
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
