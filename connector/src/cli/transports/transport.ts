import type { Retry } from "../../errors.ts";
import type { JsonObject } from "../../types.ts";
import type { AskRequest, ControlRequest, ControlResult } from "../sharing/requests.ts";

/** How long what is sent once waits for a relay behind an edge that answers in its place, as during a rollout. */
export const EDGE = { outlastedMs: 15_000 };

/** Of statuses that do not pass 403 may: Envoy answers so while no pod is ready. Others are of a wrong address. */
export function mayYetPass(retry: Retry, edgeStatus: number): boolean {
  return retry === "later" || edgeStatus === 403;
}

/** A way for an agent's envelopes to reach the relay. */
export interface Transport {
  /** The member `via` of a command's result. */
  readonly name: "gateway" | "listener" | "connection";
  /** Rejects with a Failure or a RelayError. */
  send(request: ControlRequest): Promise<ControlResult>;
  /** The receipt of a session, where this agent's own key signs. Rejects as `send` does. */
  receipt?(sessionId: string): Promise<unknown>;
  close(): Promise<void>;
}

/** Over the agent's connection, which receives replies, too. */
export interface AgentTransport extends Transport {
  /** Resolves with the reply, as `relay listen` prints a delivery. Rejects with a Failure or a RelayError. */
  ask(request: AskRequest): Promise<JsonObject>;
}
