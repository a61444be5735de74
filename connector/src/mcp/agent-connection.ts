import type { Connector } from "../connector.ts";
import type { RelayError } from "../errors.ts";
import type { Receipt } from "../receipts/contract.ts";

/** What the tools use of a connector: the connection of their agent, of this process or of another one. */
export type AgentConnection = Pick<
  Connector,
  "agent" | "state" | "start" | "close" | "on" | "send" | "ask" | "requestSession" | "approve" | "reject"
> & {
  /** The address of the relay's websocket. */
  readonly relayUrl: string;
  /** Since when it is online, or is not, as this process knows it. */
  readonly since: Date;
  /** Another process of the agent on this machine has it, or uses it, too. */
  readonly isShared: boolean;
  /** Why it was refused, while it looks for the process of the agent that has the connection; or what answers in place of the relay. */
  readonly refusal?: RelayError | undefined;
  /** As of a connector; another process has to be asked for it. */
  receipt(sessionId: string): Receipt | Promise<Receipt>;
};
