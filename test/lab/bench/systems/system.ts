import type { Pids } from "../../accounting.ts";
import type { Speech } from "../load/dialects.ts";

/** A system under test: two server processes and whatever they need, until it is disposed of. */
export interface SystemUnderTest extends AsyncDisposable {
  readonly speech: Speech;
  /** What the senders connect to, in turn, and last what the targets do. */
  readonly ports: readonly number[];
  /** Of every process whose CPU counts. */
  readonly pids: Pids;
}

export const SENDING = "sending pod";
export const RECEIVING = "receiving pod";
export const REDIS = "redis";

export type SystemName = "agent-relay" | "agent-relay-gathering" | PeerName | "nats";
/** Peers that are programs of ours, over a Redis. */
export type PeerName = "bare" | "bare-acks" | "socket.io" | "socket.io-sharded";

/** Titles, in the order of the tables. */
export const SYSTEM_TITLES: Readonly<Record<SystemName, string>> = {
  "agent-relay": "Agent Relay",
  "agent-relay-gathering": "Agent Relay, `RELAY_GATHER_MS=1`",
  bare: "bare ws + ioredis",
  "bare-acks": "the same with acks",
  "socket.io": "Socket.IO, classic adapter",
  "socket.io-sharded": "Socket.IO, sharded adapter",
  nats: "NATS",
};

/** Ours of an earlier commit. */
export const BEFORE = "agent-relay-before";
/** What is measured side by side. */
export type Contender = SystemName | typeof BEFORE;

/** Arguments of Node for each of the two servers. */
export type NodeArguments = (role: string) => readonly string[];
