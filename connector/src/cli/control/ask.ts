import type { Connector } from "../../connector.ts";
import type { AskOptions, JsonObject } from "../../types.ts";
import { deliveryMembers } from "../delivery-line.ts";

/** A question that another program has an agent ask, with the protocol's member names. */
export interface AskRequest {
  readonly to: string;
  /** Its payload. */
  readonly ask: JsonObject;
  readonly type?: string | undefined;
  readonly seal?: boolean | undefined;
  /** How long the reply may take. */
  readonly timeout_ms?: number | undefined;
  /** How long to wait for the target to come online. */
  readonly wait_online_ms?: number | undefined;
}

/** Asks over the agent's connection. Resolves with the reply, as `relay listen` prints a delivery. Rejects with a RelayError. */
export async function executeAsk(connector: Connector, request: AskRequest, signal?: AbortSignal): Promise<JsonObject> {
  const { to, ask, type, seal, timeout_ms: timeoutMs, wait_online_ms: waitOnline } = request;
  return deliveryMembers(await connector.ask(to, ask, { type, seal, timeoutMs, waitOnline, signal } as AskOptions));
}
