import type { Route } from "@agent-relay/shared/window/routes.ts";

/** How one agent stands to the connection. */
interface Standing {
  readonly agent: string;
  /** The epoch under which the connection owns the agent, or null when it does not. */
  epoch: number | null;
  /** The key that the last register or heartbeat was signed with. */
  keyId: string;
  /** The key of one that had no answer: Redis may have given the agent to this connection all the same. */
  doubtedKeyId: string | undefined;
  /** Registers and heartbeats that have no answer yet. */
  underWay: number;
  /** Epoch of a takeover that came meanwhile. */
  takeover: number | undefined;
}

/**
 * The agents that one connection owns. A takeover by another connection may overtake the answer to a register of this
 * one, so it is judged only when no register is under way: by the epoch, which rises with each takeover.
 */
export class Ownership {
  readonly #connection: string;
  /** Nearly every connection carries one agent: that one needs no map. */
  #first: Standing | undefined;
  #others: Map<string, Standing> | undefined;

  constructor(connection: string) {
    this.#connection = connection;
  }

  /** True when the connection has no agent and is about to get none. */
  get isEmpty(): boolean {
    return this.#all().every(({ epoch, underWay }) => epoch === null && underWay === 0);
  }

  owns(agent: string): boolean {
    return (this.#find(agent)?.epoch ?? null) !== null;
  }

  /** True while a register or heartbeat of the agent has no answer. */
  isUnderWay(agent: string): boolean {
    return (this.#find(agent)?.underWay ?? 0) > 0;
  }

  /** How many agents this connection has or may have. */
  countWith(agent: string): number {
    const count = (this.#first === undefined ? 0 : 1) + (this.#others?.size ?? 0);
    return this.#find(agent) === undefined ? count + 1 : count;
  }

  /** A register or heartbeat was sent to acceptance. */
  begin(agent: string): void {
    this.#ensure(agent).underWay += 1;
  }

  /**
   * A register or heartbeat was answered.
   * @param epoch the epoch under which this connection owns the agent, or null when it does not.
   * @returns the epoch of a takeover that came meanwhile and is newer, or null.
   */
  end(agent: string, epoch: number | null, keyId: string): number | null {
    const standing = this.#ensure(agent);
    standing.underWay = Math.max(0, standing.underWay - 1);
    if (epoch !== null) {
      standing.epoch = epoch;
      standing.keyId = keyId;
      standing.doubtedKeyId = undefined;
    }
    if (standing.underWay > 0) return null;
    const takeover = standing.takeover ?? 0;
    standing.takeover = undefined;
    return this.lose(agent, takeover);
  }

  /** Another connection took the agent over. @returns the epoch when that is news, or null. */
  lose(agent: string, epoch: number): number | null {
    const standing = this.#find(agent);
    if (standing === undefined) return null;
    if (standing.underWay > 0) {
      standing.takeover = Math.max(epoch, standing.takeover ?? 0);
      return null;
    }
    const isNews = standing.epoch !== null && standing.epoch < epoch;
    if (isNews) standing.epoch = null;
    this.#tidy(standing);
    return isNews ? epoch : null;
  }

  /** A register or heartbeat had no answer: nobody knows whether it made this connection the owner. */
  doubt(agent: string, keyId: string): void {
    this.#ensure(agent).doubtedKeyId = keyId;
  }

  /** True while a register of the agent that had no answer may have made this connection the owner. */
  isDoubted(agent: string): boolean {
    return this.#find(agent)?.doubtedKeyId !== undefined;
  }

  /** The routes that lead, or may lead, to this connection, of the agents that `isMeant` picks. */
  routes(isMeant: (keyId: string, agent: string) => boolean = () => true): Route[] {
    const connection = this.#connection;
    return this.#all().flatMap(({ agent, epoch, keyId, doubtedKeyId }) => {
      const owned = epoch !== null && isMeant(keyId, agent) ? [{ agent, connection, epoch }] : [];
      const isDoubted = doubtedKeyId !== undefined && isMeant(doubtedKeyId, agent);
      return isDoubted ? [...owned, { agent, connection, epoch: null }] : owned;
    });
  }

  /** Gives up every agent that `isAllowed` refuses. @returns their routes, to be released. */
  dropUnless(isAllowed: (keyId: string, agent: string) => boolean): Route[] {
    const routes = this.routes((keyId, agent) => !isAllowed(keyId, agent));
    for (const { agent } of routes) this.#drop(agent);
    return routes;
  }

  #drop(agent: string): void {
    const standing = this.#find(agent);
    if (standing === undefined) return;
    standing.epoch = null;
    standing.doubtedKeyId = undefined;
    this.#tidy(standing);
  }

  #all(): Standing[] {
    const first = this.#first === undefined ? [] : [this.#first];
    return this.#others === undefined ? first : [...first, ...this.#others.values()];
  }

  #find(agent: string): Standing | undefined {
    return this.#first?.agent === agent ? this.#first : this.#others?.get(agent);
  }

  #ensure(agent: string): Standing {
    const found = this.#find(agent);
    if (found !== undefined) return found;
    const standing: Standing = {
      agent,
      epoch: null,
      keyId: "",
      doubtedKeyId: undefined,
      underWay: 0,
      takeover: undefined,
    };
    if (this.#first === undefined) {
      this.#first = standing;
    } else {
      this.#others ??= new Map();
      this.#others.set(agent, standing);
    }
    return standing;
  }

  /** Forgets an agent that the connection neither has nor may have. */
  #tidy(standing: Standing): void {
    if (standing.epoch !== null || standing.doubtedKeyId !== undefined || standing.underWay > 0) return;
    if (standing === this.#first) this.#first = undefined;
    else this.#others?.delete(standing.agent);
  }
}
