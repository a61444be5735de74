import type { RelayError } from "../../errors.ts";
import type { Delivery } from "../../types.ts";
import { EXIT } from "../exit-codes.ts";
import { type Failure, failureOf } from "../failure.ts";
import { type Identity, requireKey } from "../identity.ts";
import type { Io } from "../io.ts";
import type { RelayHttp } from "../relay-http.ts";
import type { Reporter } from "../reporter.ts";
import { listenerTransport } from "../sharing/client.ts";
import { controlPlace } from "../sharing/socket.ts";
import { connectionTransport } from "./connection.ts";
import { gatewayTransport } from "./gateway.ts";
import type { AgentTransport, Transport } from "./transport.ts";

export interface TransportOptions {
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
    return await connectionTransport({ credentials, http, takeOver, waiting, ...(heard && { heard }) }, io);
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
