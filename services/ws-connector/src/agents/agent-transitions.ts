import {
  ABSENT,
  type Absent,
  type AgentState,
  holdOf,
  type Owned,
  type Pending,
  type SettledState,
  type Uncertain,
  type Unknown,
} from "./agent-state.ts";

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
  /** Of a register, or learned by a heartbeat that took the agent; undefined where the answer says nothing of it. */
  readonly acceptFrom?: string | undefined;
}

/** Nothing came of it: a refusal, the repeat of another connection's register, or Redis was not asked at all. */
interface NotGranted {
  readonly kind: "not_granted";
}

/** There was no answer in time. */
interface Unanswered {
  readonly kind: "unanswered";
  readonly key: string;
}

/** A heartbeat was taken of the agent as the connection owned it: it gives nothing. */
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

/** The connection gives the agent up: it closes, or a key no longer allows the agent. */
interface Released {
  readonly kind: "released";
}

/** The next state, and the only effect that there is: the client is told of a takeover. */
export interface Step<Next extends AgentState = AgentState> {
  readonly state: Next;
  /** Epoch of the takeover to tell of, or null. */
  readonly supersededBy: number | null;
}

/** State × event. The answers of a pending agent go by the row of its settled state. */
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

/** A replica that took over may know of an older epoch only: what the connection held before, it restoring. */
function own(state: SettledState, { epoch, key, heardAt, acceptFrom }: Granted): Step<Owned> {
  const before = holdOf(state);
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

/** What was heard under another epoch says nothing of this one. */
function hear(state: Owned | Uncertain, { epoch, heardAt }: Heard): Step<Owned | Uncertain> {
  return next(epoch === state.epoch ? { ...state, heardAt: Math.max(state.heardAt, heardAt) } : state);
}

/** An uncertain agent may have been taken back by the request without an answer. */
function lose(state: Owned | Uncertain, { epoch }: Superseded): Step<SettledState> {
  if (epoch <= state.epoch) return next(state);
  if (state.kind === "owned") return next(ABSENT, epoch);
  return next({ kind: "unknown", unansweredKey: state.unansweredKey }, epoch);
}

function more(state: Pending): Step<Pending> {
  return next({ ...state, requests: state.requests + 1 });
}

/** With the last answer, the takeover that came meanwhile counts if it is newer than what the answers came to. */
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
