import type { Delivery } from "../types.ts";
import type { ControlRequest, ControlResult } from "./control/request.ts";
import { EXIT } from "./exit-codes.ts";
import { readIdentity } from "./identity.ts";
import type { Io } from "./io.ts";
import { jsonLine, writeLine } from "./output.ts";
import { RelayHttp } from "./relay-http.ts";
import { Reporter } from "./reporter.ts";
import { resultText } from "./result-text.ts";
import { openTransport } from "./transports/open.ts";

/** Options that send, request, approve and reject have in common. */
export interface SendOnceOptions {
  readonly key?: string | undefined;
  readonly url?: string | undefined;
  readonly json?: boolean | undefined;
  readonly "take-over"?: boolean | undefined;
}

export interface SendOnce {
  readonly isForGateway: boolean;
  /** Called once the transport is open. @param agent who sends it. */
  readonly request: (http: RelayHttp, agent: string) => Promise<ControlRequest>;
  /** Called with the result while the transport is still open. @returns the exit code. */
  readonly after?: (result: ControlResult, http: RelayHttp) => Promise<number>;
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
  const transport = await openTransport({ identity, http, isForGateway, takeOver }, io, heard);
  try {
    const sent = await request(http, identity.agent);
    const result = await transport.send(sent);
    const line = options.json ? jsonLine({ ok: true, ...result, via: transport.name }) : resultText(sent, result);
    await writeLine(io.stdout, line);
    return (await after?.(result, http)) ?? EXIT.ok;
  } finally {
    await transport.close();
  }
}
