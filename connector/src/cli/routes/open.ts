import type { Io } from "../command.ts";
import { type Identity, signatory } from "../identity.ts";
import type { RelayHttp } from "../relay-http.ts";
import { connectionRoute } from "./connection.ts";
import { gatewayRoute } from "./gateway.ts";
import { listenerRoute } from "./listener.ts";
import type { Route } from "./route.ts";

export interface RouteOptions {
  readonly identity: Identity;
  readonly http: RelayHttp;
  /** The gateway can say it, too. */
  readonly isForGateway: boolean;
  readonly takeOver: boolean;
}

/**
 * The way that disturbs least: the gateway when there is an API key, else the running `relay listen` of the agent, else a
 * connection of its own. @throws {Failure}
 */
export async function openRoute({ identity, http, isForGateway, takeOver }: RouteOptions, io: Io): Promise<Route> {
  const { agent } = identity;
  const apiKey = io.env.RELAY_API_KEY;
  if (isForGateway && apiKey) return gatewayRoute(agent, apiKey, http);
  const listener = await listenerRoute(agent, http.websocketUrl, io);
  return listener ?? (await connectionRoute(signatory(identity), http, takeOver, io));
}
