/**
 * What one connection knows about its ownership of one agent. Redis decides who owns an agent. A connection learns of it
 * from the answers to its registers and heartbeats, and from notices of takeovers by other connections. A notice may
 * overtake an answer: while a request is pending, a takeover is only remembered, and compared by its epoch once the last
 * answer is there. Pure. Source: docs/protocol.md#frames, docs/redis.md#acceptance.
 */
export type AgentState = SettledState | Pending;

/** No register or heartbeat of the agent waits for its answer. */
export type SettledState = Absent | Owned | Unknown | Uncertain;

/** Neither owned nor requested. */
export interface Absent {
  readonly kind: "absent";
}

export interface Owned {
  readonly kind: "owned";
  /** Rises with each register. */
  readonly epoch: number;
  /** Identity of the key that signed the last register or heartbeat that was answered. */
  readonly key: string;
  /** When the last one was accepted, or before: monotonic ms. */
  readonly heardAt: number;
  /** Whom the agent accepts envelopes from (window/limits/principals.ts), as its last register said; undefined where that is not known. */
  readonly acceptFrom?: string | undefined;
}

/** Not owned as far as the answers go, but one is missing: Redis may have made this connection the owner. */
export interface Unknown {
  readonly kind: "unknown";
  /** That of the request without an answer. */
  readonly unansweredKey: string;
}

/** Owned under `epoch`, or under a newer one: an answer is missing. */
export interface Uncertain extends Omit<Owned, "kind"> {
  readonly kind: "uncertain";
  readonly unansweredKey: string;
}

/** Registers or heartbeats of the agent wait for their answers. */
export interface Pending {
  readonly kind: "pending";
  readonly requests: number;
  /** What the answers so far came to. */
  readonly settled: SettledState;
  /** The newest epoch of a takeover that came meanwhile; 0, which is older than every epoch, when there was none. */
  readonly takeover: number;
}

export const ABSENT: Absent = { kind: "absent" };

/** The state without regard to requests that wait for their answers. */
export function settled(state: AgentState): SettledState {
  return state.kind === "pending" ? state.settled : state;
}

/** How the connection owns the agent, or null when it does not. */
export function holdOf(state: AgentState): Owned | Uncertain | null {
  const known = settled(state);
  return known.kind === "owned" || known.kind === "uncertain" ? known : null;
}

/** The epoch under which the connection owns the agent, or null when it does not. */
export function ownedEpoch(state: AgentState): number | null {
  return holdOf(state)?.epoch ?? null;
}

/** True while a register or heartbeat that had no answer may have made this connection the owner. */
export function isOutcomeUnknown(state: AgentState): boolean {
  const known = settled(state);
  return known.kind === "unknown" || known.kind === "uncertain";
}

/** The keys by which the connection owns the agent or may own it. */
export function keys(state: AgentState): readonly string[] {
  const known = settled(state);
  if (known.kind === "absent") return [];
  if (known.kind === "owned") return [known.key];
  return known.kind === "unknown" ? [known.unansweredKey] : [known.key, known.unansweredKey];
}
