import type { Route } from "relay-window/presence/routes.ts";

/**
 * One connection's view of its ownership of one agent. Redis decides which connection owns an agent. A connection
 * learns it from the answers to its registers and heartbeats, and from notices of takeovers by other connections. A
 * notice may overtake an answer. So a pending request only remembers a takeover, and compares epochs after the last
 * answer. Pure. Source: docs/protocol.md#frames, docs/redis.md#acceptance.
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
  /** Monotonic ms: when the last register or heartbeat was accepted, or earlier. */
  readonly heardAt: number;
  /** The senders that the agent accepts by its last register (window/limits/principals.ts). Undefined if not known. */
  readonly acceptFrom?: string | undefined;
}

/** Not owned by the answers so far. An answer is missing, so Redis may have made this connection the owner. */
export interface Unknown {
  readonly kind: "unknown";
  /** The key of the request without an answer. */
  readonly unansweredKey: string;
}

/** Owned under `epoch` or a newer epoch, because an answer is missing. */
export interface Uncertain extends Omit<Owned, "kind"> {
  readonly kind: "uncertain";
  readonly unansweredKey: string;
}

/** Registers or heartbeats of the agent wait for their answers. */
export interface Pending {
  readonly kind: "pending";
  readonly requests: number;
  /** The state after the answers so far. */
  readonly settled: SettledState;
  /** The newest epoch of a takeover that came while pending. 0, older than every epoch, if there was none. */
  readonly takeover: number;
}

export const ABSENT: Absent = { kind: "absent" };

/** The state without regard to requests that wait for their answers. */
export function settled(state: AgentState): SettledState {
  return state.kind === "pending" ? state.settled : state;
}

/** The ownership of the agent, or null if the connection does not own it. */
export function ownedOf(state: AgentState): Owned | Uncertain | null {
  const known = settled(state);
  return known.kind === "owned" || known.kind === "uncertain" ? known : null;
}

/** The epoch under which the connection owns the agent, or null if it does not own the agent. */
export function ownedEpoch(state: AgentState): number | null {
  return ownedOf(state)?.epoch ?? null;
}

/** True while a register or heartbeat that had no answer may have made this connection the owner. */
export function isOutcomeUnknown(state: AgentState): boolean {
  const known = settled(state);
  return known.kind === "unknown" || known.kind === "uncertain";
}

/** The keys by which the connection owns, or may own, the agent. */
export function keys(state: AgentState): readonly string[] {
  const known = settled(state);
  if (known.kind === "absent") return [];
  if (known.kind === "owned") return [known.key];
  return known.kind === "unknown" ? [known.unansweredKey] : [known.key, known.unansweredKey];
}

export type AgentEvent = Requested | Answer | Heard | Superseded | Released;

/** A register or heartbeat was sent to Redis. */
interface Requested {
  readonly kind: "requested";
}

type Answer = Granted | NotGranted | Unanswered;

/** The answer: this connection owns the agent. */
interface Granted {
  readonly kind: "granted";
  readonly epoch: number;
  readonly key: string;
  readonly heardAt: number;
  /** From the register, or from a heartbeat that took the agent. Undefined if the answer does not tell. */
  readonly acceptFrom?: string | undefined;
}

/** The request changed nothing: a refusal, the repeat of another connection's register, or no call to Redis. */
interface NotGranted {
  readonly kind: "not_granted";
}

/** No answer came in time. */
interface Unanswered {
  readonly kind: "unanswered";
  readonly key: string;
}

/** Redis took a heartbeat of an owned agent. It changes only `heardAt`. */
interface Heard {
  readonly kind: "heard";
  readonly epoch: number;
  readonly heardAt: number;
}

/** Another connection took the agent over. */
interface Superseded {
  readonly kind: "superseded";
  readonly epoch: number;
}

/** The connection gives up the agent: it closes, or a key no longer allows the agent. */
interface Released {
  readonly kind: "released";
}

/** The next state, and the epoch of a takeover that the client must be told of. */
export interface Step<Next extends AgentState = AgentState> {
  readonly state: Next;
  /** Epoch of the takeover to tell of, or null. */
  readonly supersededBy: number | null;
}

/** State × event. For a pending agent, an answer follows the row of its settled state. */
// biome-ignore format: a table
const TRANSITIONS: Table = {
  absent:    { requested: wait, granted: own,    not_granted: stay,   unanswered: toUnknown,   heard: stay,    superseded: stay,     released: stay },
  owned:     { requested: wait, granted: own,    not_granted: stay,   unanswered: toUncertain, heard: hear,    superseded: lose,     released: forget },
  unknown:   { requested: wait, granted: own,    not_granted: stay,   unanswered: toUnknown,   heard: stay,    superseded: stay,     released: forget },
  uncertain: { requested: wait, granted: own,    not_granted: stay,   unanswered: toUncertain, heard: hear,    superseded: lose,     released: forget },
  pending:   { requested: more, granted: settle, not_granted: settle, unanswered: settle,      heard: hearNow, superseded: remember, released: disown },
};

export function transition(state: AgentState, event: AgentEvent): Step {
  const cell = TRANSITIONS[state.kind][event.kind] as (state: AgentState, event: AgentEvent) => Step;
  return cell(state, event);
}

type StateOf<Kind> = Extract<AgentState, { readonly kind: Kind }>;
type EventOf<Kind> = Extract<AgentEvent, { readonly kind: Kind }>;
type Row<State extends AgentState, Next extends AgentState> = {
  readonly [Kind in AgentEvent["kind"]]: (
    state: State,
    event: EventOf<Kind>,
  ) => Step<Kind extends "requested" ? Pending : Next>;
};
type Table = { readonly [Kind in SettledState["kind"]]: Row<StateOf<Kind>, SettledState> } & {
  readonly pending: Row<Pending, AgentState>;
};

function next<State extends AgentState>(state: State, supersededBy: number | null = null): Step<State> {
  return { state, supersededBy };
}

function stay<State extends SettledState>(state: State): Step<State> {
  return next(state);
}

function forget(): Step<Absent> {
  return next(ABSENT);
}

function wait(state: SettledState): Step<Pending> {
  return next({ kind: "pending", requests: 1, settled: state, takeover: 0 });
}

/** A promoted replica may know only an older epoch. The higher one counts, and the connection restores it. */
function own(state: SettledState, { epoch, key, heardAt, acceptFrom }: Granted): Step<Owned> {
  const before = ownedOf(state);
  return next({
    kind: "owned",
    epoch: Math.max(epoch, before?.epoch ?? 0),
    key,
    heardAt,
    acceptFrom: acceptFrom ?? before?.acceptFrom,
  });
}

function toUnknown(_: SettledState, { key }: Unanswered): Step<Unknown> {
  return next({ kind: "unknown", unansweredKey: key });
}

function toUncertain(state: Owned | Uncertain, event: Unanswered): Step<Uncertain> {
  const { epoch, key, heardAt, acceptFrom } = state;
  return next({ kind: "uncertain", epoch, key, heardAt, acceptFrom, unansweredKey: event.key });
}

/** A heartbeat under another epoch tells nothing about this epoch. */
function hear(state: Owned | Uncertain, { epoch, heardAt }: Heard): Step<Owned | Uncertain> {
  return next(epoch === state.epoch ? { ...state, heardAt: Math.max(state.heardAt, heardAt) } : state);
}

/** The request without an answer may have taken an uncertain agent back. */
function lose(state: Owned | Uncertain, { epoch }: Superseded): Step<SettledState> {
  if (epoch <= state.epoch) return next(state);
  if (state.kind === "owned") return next(ABSENT, epoch);
  return next({ kind: "unknown", unansweredKey: state.unansweredKey }, epoch);
}

function more(state: Pending): Step<Pending> {
  return next({ ...state, requests: state.requests + 1 });
}

/** With the last answer, a remembered takeover counts if it is newer than the state after the answers. */
function settle(state: Pending, answer: Answer): Step {
  const { state: known } = transition(state.settled, answer) as Step<SettledState>;
  if (state.requests > 1) return next({ ...state, requests: state.requests - 1, settled: known });
  return transition(known, { kind: "superseded", epoch: state.takeover });
}

function hearNow(state: Pending, event: Heard): Step<Pending> {
  return next({ ...state, settled: transition(state.settled, event).state as SettledState });
}

function remember(state: Pending, { epoch }: Superseded): Step<Pending> {
  return next({ ...state, takeover: Math.max(state.takeover, epoch) });
}

function disown(state: Pending): Step<Pending> {
  return next({ ...state, settled: ABSENT });
}

/** An agent that a connection owns. */
export type OwnedAgent = Omit<Owned, "kind">;

/** The agents that one connection owns, may own, or has requested. */
export class Ownership {
  readonly #connection: string;
  /** Nearly every connection carries one agent, so the first agent needs no map. */
  #firstAgent: string | undefined;
  #firstState: AgentState = ABSENT;
  #others: Map<string, AgentState> | undefined;

  constructor(connection: string) {
    this.#connection = connection;
  }

  /** True if the connection owns no agent and no request is pending. */
  get isEmpty(): boolean {
    return this.#all().every(([, state]) => state.kind !== "pending" && ownedEpoch(state) === null);
  }

  /** True while a register or heartbeat of any agent waits for its answer. */
  get hasPending(): boolean {
    return this.#all().some(([, { kind }]) => kind === "pending");
  }

  owns(agent: string): boolean {
    return ownedEpoch(this.#stateOf(agent)) !== null;
  }

  /** The ownership of the agent, or null if the connection does not own it. */
  ownedAgent(agent: string): OwnedAgent | null {
    return ownedOf(this.#stateOf(agent));
  }

  /**
   * The ownership of an agent. Null while a register or heartbeat of the agent waits for its answer, or had no answer.
   */
  confirmed(agent: string): OwnedAgent | null {
    const state = this.#stateOf(agent);
    return state.kind === "owned" ? state : null;
  }

  /** The agents that the connection owns. */
  owned(): string[] {
    return this.#all().flatMap(([agent, state]) => (ownedEpoch(state) === null ? [] : agent));
  }

  /** True if the agent's route may lead here: it is owned, requested, or the outcome of a request is unknown. */
  mayOwn(agent: string): boolean {
    return this.#stateOf(agent).kind !== "absent";
  }

  /** True while a register or heartbeat of the agent waits for its answer. */
  isPending(agent: string): boolean {
    return this.#stateOf(agent).kind === "pending";
  }

  /** True while a register or heartbeat that had no answer may have made this connection the owner. */
  isOutcomeUnknown(agent: string): boolean {
    return isOutcomeUnknown(this.#stateOf(agent));
  }

  /** The most agents that the connection would have if it requested this agent. */
  countWith(agent: string): number {
    const count = (this.#firstAgent === undefined ? 0 : 1) + (this.#others?.size ?? 0);
    return this.#stateOf(agent).kind === "absent" ? count + 1 : count;
  }

  /** @returns the epoch of a takeover to tell the client of, or null. */
  apply(agent: string, event: AgentEvent): number | null {
    const { state, supersededBy } = transition(this.#stateOf(agent), event);
    this.#keep(agent, state);
    return supersededBy;
  }

  /** The routes that lead, or may lead, to this connection. */
  routes(): Route[] {
    return this.#routesOf(() => true);
  }

  /** The routes that lead, may lead, or may soon lead to this connection. A register under way may change the epoch. */
  reachable(): Route[] {
    return this.#all().map(([agent, state]) => {
      const route = this.#routeOf(agent, state);
      return state.kind === "pending" ? { ...route, epoch: null } : route;
    });
  }

  /** True if `isAllowed` accepts every key by which the connection owns, or may own, an agent. */
  areAllowed(isAllowed: (key: string, agent: string) => boolean): boolean {
    return this.#routesOf((key, agent) => !isAllowed(key, agent)).length === 0;
  }

  /** Gives up every agent. @returns the routes to release. */
  releaseAll(): Route[] {
    return this.releaseUnless(() => false);
  }

  /** Gives up the agents with a key that `isAllowed` refuses. @returns the routes to release. */
  releaseUnless(isAllowed: (key: string, agent: string) => boolean): Route[] {
    const routes = this.#routesOf((key, agent) => !isAllowed(key, agent));
    for (const { agent } of routes) this.apply(agent, { kind: "released" });
    return routes;
  }

  /** Routes of the agents with a matching key. A route without an epoch is released for any epoch. */
  #routesOf(matches: (key: string, agent: string) => boolean): Route[] {
    return this.#all()
      .filter(([agent, state]) => keys(state).some((key) => matches(key, agent)))
      .map(([agent, state]) => this.#routeOf(agent, state));
  }

  #routeOf(agent: string, state: AgentState): Route {
    return { agent, connection: this.#connection, epoch: isOutcomeUnknown(state) ? null : ownedEpoch(state) };
  }

  #all(): [string, AgentState][] {
    const first: [string, AgentState][] = this.#firstAgent === undefined ? [] : [[this.#firstAgent, this.#firstState]];
    return this.#others === undefined ? first : [...first, ...this.#others];
  }

  #stateOf(agent: string): AgentState {
    return agent === this.#firstAgent ? this.#firstState : (this.#others?.get(agent) ?? ABSENT);
  }

  /** Forgets an agent that is absent. */
  #keep(agent: string, state: AgentState): void {
    const isFirst = agent === this.#firstAgent || (this.#firstAgent === undefined && !this.#others?.has(agent));
    if (isFirst) {
      this.#firstAgent = state.kind === "absent" ? undefined : agent;
      this.#firstState = state;
    } else if (state.kind === "absent") {
      this.#others?.delete(agent);
    } else {
      this.#others ??= new Map();
      this.#others.set(agent, state);
    }
  }
}
