import type { Route } from "relay-window/presence/routes.ts";
import { ABSENT, type AgentState, holdOf, isOutcomeUnknown, keys, type Owned, ownedEpoch } from "./agent-state.ts";
import { type AgentEvent, transition } from "./agent-transitions.ts";

/** What a connection knows of an agent that it owns. */
export type Hold = Omit<Owned, "kind">;

/** The agents that one connection owns, may own, or has requested. */
export class Ownership {
  readonly #connection: string;
  /** Nearly every connection carries one agent: that one needs no map. */
  #firstAgent: string | undefined;
  #firstState: AgentState = ABSENT;
  #others: Map<string, AgentState> | undefined;

  constructor(connection: string) {
    this.#connection = connection;
  }

  /** True when the connection owns no agent and no request is pending. */
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

  /** How the connection owns the agent, or null when it does not. */
  hold(agent: string): Hold | null {
    return holdOf(this.#stateOf(agent));
  }

  /** The same, or null while a register or heartbeat of the agent waits for its answer, or had none. */
  certainHold(agent: string): Hold | null {
    const state = this.#stateOf(agent);
    return state.kind === "owned" ? state : null;
  }

  /** The agents that the connection owns. */
  owned(): string[] {
    return this.#all().flatMap(([agent, state]) => (ownedEpoch(state) === null ? [] : agent));
  }

  /** True unless the agent's route cannot lead here: it is owned, requested, or the outcome of a request is unknown. */
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

  /** How many agents the connection would have, at most, if it requested this one. */
  countWith(agent: string): number {
    const count = (this.#firstAgent === undefined ? 0 : 1) + (this.#others?.size ?? 0);
    return this.#stateOf(agent).kind === "absent" ? count + 1 : count;
  }

  /** @returns the epoch of a takeover that the client is to be told of, or null. */
  apply(agent: string, event: AgentEvent): number | null {
    const { state, supersededBy } = transition(this.#stateOf(agent), event);
    this.#keep(agent, state);
    return supersededBy;
  }

  /** The routes that lead, or may lead, to this connection. */
  routes(): Route[] {
    return this.#routesOf(() => true);
  }

  /** The routes that lead, may lead, or are about to lead to this connection; a register under way may change the epoch. */
  reachable(): Route[] {
    return this.#all().map(([agent, state]) => {
      const route = this.#routeOf(agent, state);
      return state.kind === "pending" ? { ...route, epoch: null } : route;
    });
  }

  /** True when `isAllowed` refuses no key by which an agent is, or may be, owned. */
  areAllowed(isAllowed: (key: string, agent: string) => boolean): boolean {
    return this.#routesOf((key, agent) => !isAllowed(key, agent)).length === 0;
  }

  /** Gives up every agent. @returns their routes, to be released. */
  releaseAll(): Route[] {
    return this.releaseUnless(() => false);
  }

  /** Gives up the agents that are, or may be, owned by a key that `isAllowed` refuses. @returns their routes, to be released. */
  releaseUnless(isAllowed: (key: string, agent: string) => boolean): Route[] {
    const routes = this.#routesOf((key, agent) => !isAllowed(key, agent));
    for (const { agent } of routes) this.apply(agent, { kind: "released" });
    return routes;
  }

  /** Routes of the agents of which any key matches. Without an epoch a route is released whatever its epoch. */
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
