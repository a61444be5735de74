import type { ControlRequest, ControlResult } from "../control/request.ts";

/** A way for an agent's envelopes to reach the relay. */
export interface Transport {
  /** The member `via` of a command's result. */
  readonly name: "gateway" | "listener" | "connection";
  /** Rejects with a Failure or a RelayError. */
  send(request: ControlRequest): Promise<ControlResult>;
  close(): Promise<void>;
}
