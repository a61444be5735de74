import { Connector } from "../../connector.ts";
import { RelayError } from "../../errors.ts";
import { isRefusedUpgrade } from "../../network-errors.ts";
import type { Delivery } from "../../types.ts";
import { Failure } from "../failure.ts";
import type { Io } from "../io.ts";
import type { SigningAgent } from "../key-file.ts";
import type { RelayHttp } from "../relay-http.ts";
import { execute, executeAsk } from "../sharing/requests.ts";
import { type AgentTransport, EDGE, mayYetPass } from "./transport.ts";

/** Nothing was sent. */
const REFUSED = { outcome: "refused" } as const;

export interface ConnectionTransportOptions {
  readonly credentials: SigningAgent;
  readonly http: RelayHttp;
  /** End the agent's connection elsewhere; without it, an agent that is online is refused. */
  readonly takeOver: boolean;
  /** What comes in beside replies. */
  readonly heard?: (delivery: Delivery) => void;
  /** Told why an edge lets nobody through to the relay at the moment; without it such an answer ends the start. */
  readonly waiting?: (error: RelayError) => void;
}

/**
 * Over a connection of its own, which registers the agent and so ends the agent's connection elsewhere.
 * Waits for a relay behind an edge that answers in its place, as during a rollout; not for one that is not there.
 * @throws {Failure | RelayError} `superseded_elsewhere`, `unreachable`, the refusal of the register.
 */
export async function connectionTransport(
  { credentials, http, takeOver, heard = () => {}, waiting }: ConnectionTransportOptions,
  io: Io,
): Promise<AgentTransport> {
  const connector = new Connector({ url: http.url, httpUrl: http.httpUrl, ...credentials, takeOver });
  connector.on("delivery", heard);
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
