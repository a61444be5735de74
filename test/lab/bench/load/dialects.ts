import type { WebSocketClient } from "./websocket.ts";

/** What the load generator is told about how to talk to a system; travels between processes. */
export type Speech =
  | { readonly dialect: "bare" | "bare-acks" | "socket.io" | "nats" }
  | {
      readonly dialect: "agent-relay";
      readonly alg: "hmac-sha256" | "ed25519";
      readonly keyId: string;
      /** base64url. */
      readonly secret: string;
    };

/** How clients of one system talk. */
export interface Dialect {
  /** Of the websocket. */
  readonly path: string;
  readonly opcode: number;
  /** True when the very same message may be sent again. */
  readonly repeatable: boolean;
  /** Makes agents known on a connection that has just opened; resolves when the server says that they are. */
  register(client: WebSocketClient, agents: readonly string[]): Promise<void>;
  /** The next message. */
  message(from: string, to: string): string;
  /** Where an agent must say every 15 s that it is there, what it says. */
  readonly heartbeat?: (agent: string) => string;
  /**
   * Reads what comes in on one connection: how many deliveries a payload holds. Throws on a refusal.
   * @param answer sends what the server is waiting for.
   */
  reader(answer: (text: string) => void): (payload: Buffer) => number;
}

/** 100 bytes of JSON. */
export const PAYLOAD = { message: "x".repeat(86) } as const;
