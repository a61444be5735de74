import type { Delivery } from "../../types.ts";
import { type Identity, requireKey } from "../identity.ts";
import type { Io } from "../io.ts";
import type { RelayHttp } from "../relay-http.ts";
import { connectionTransport } from "./connection.ts";
import { gatewayTransport } from "./gateway.ts";
import { listenerTransport } from "./listener.ts";
import type { AgentTransport, Transport } from "./transport.ts";

export interface TransportOptions {
  readonly identity: Identity;
  readonly http: RelayHttp;
  /** The gateway can send it, too. */
  readonly isForGateway: boolean;
  readonly takeOver: boolean;
}

/**
 * The transport that disturbs the agent's connection least: the gateway when there is an API key, else the control socket
 * of a running `relay listen`, else a connection of its own. @throws {Failure}
 * @param heard what comes over a connection of its own; a listener prints it itself.
 */
export async function openTransport(
  { identity, http, isForGateway, takeOver }: TransportOptions,
  io: Io,
  heard?: (delivery: Delivery) => void,
): Promise<Transport> {
  const { agent } = identity;
  const apiKey = io.env.RELAY_API_KEY;
  if (isForGateway && apiKey) return gatewayTransport(agent, apiKey, http);
  return await openAgentTransport(identity, http, takeOver, io, heard);
}

/** The same for what the gateway cannot do. @param heard as above, beside replies. @throws {Failure} */
export async function openAgentTransport(
  identity: Identity,
  http: RelayHttp,
  takeOver: boolean,
  io: Io,
  heard?: (delivery: Delivery) => void,
): Promise<AgentTransport> {
  const credentials = requireKey(identity);
  const listener = await listenerTransport(credentials, http.websocketUrl, io);
  if (listener !== undefined) return listener;
  return await connectionTransport({ credentials, http, takeOver, ...(heard && { heard }) }, io);
}
