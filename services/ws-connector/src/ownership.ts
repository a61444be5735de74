import type { Route } from "@agent-relay/shared/window/routes.ts";

interface Owned {
  readonly epoch: number;
  /** The key that the last register or heartbeat was signed with. */
  readonly keyId: string;
}

/**
 * The agents that one connection owns. A takeover by another connection may overtake the answer to a register of this
 * one, so it is judged only when no register is under way: by the epoch, which rises with each takeover.
 */
export class Ownership {
  readonly #connection: string;
  readonly #owned = new Map<string, Owned>();
  /** Agents whose register had no answer, with the key: Redis may have given them to this connection all the same. */
  readonly #doubted = new Map<string, string>();
  readonly #underWay = new Map<string, number>();
  readonly #takeovers = new Map<string, number>();

  constructor(connection: string) {
    this.#connection = connection;
  }

  /** True when the connection has no agent and is about to get none. */
  get isEmpty(): boolean {
    return this.#owned.size === 0 && this.#underWay.size === 0;
  }

  owns(agent: string): boolean {
    return this.#owned.has(agent);
  }

  /** True while a register or heartbeat of the agent has no answer. */
  isUnderWay(agent: string): boolean {
    return this.#underWay.has(agent);
  }

  /** How many agents this connection has or may have. */
  countWith(agent: string): number {
    return new Set([...this.#owned.keys(), ...this.#underWay.keys(), ...this.#doubted.keys(), agent]).size;
  }

  /** A register or heartbeat was sent to acceptance. */
  begin(agent: string): void {
    this.#underWay.set(agent, (this.#underWay.get(agent) ?? 0) + 1);
  }

  /**
   * A register or heartbeat was answered.
   * @param epoch the epoch under which this connection owns the agent, or null when it does not.
   * @returns the epoch of a takeover that came meanwhile and is newer, or null.
   */
  end(agent: string, epoch: number | null, keyId: string): number | null {
    const left = (this.#underWay.get(agent) ?? 1) - 1;
    if (left > 0) this.#underWay.set(agent, left);
    else this.#underWay.delete(agent);
    if (epoch !== null) {
      this.#owned.set(agent, { epoch, keyId });
      this.#doubted.delete(agent);
    }
    const takeover = this.#takeovers.get(agent);
    if (left > 0 || takeover === undefined) return null;
    this.#takeovers.delete(agent);
    return this.lose(agent, takeover);
  }

  /** Another connection took the agent over. @returns the epoch when that is news, or null. */
  lose(agent: string, epoch: number): number | null {
    if (this.#underWay.has(agent)) {
      this.#takeovers.set(agent, Math.max(epoch, this.#takeovers.get(agent) ?? 0));
      return null;
    }
    const owned = this.#owned.get(agent);
    if (owned === undefined || owned.epoch >= epoch) return null;
    this.#owned.delete(agent);
    return epoch;
  }

  /** A register or heartbeat had no answer: nobody knows whether it made this connection the owner. */
  doubt(agent: string, keyId: string): void {
    this.#doubted.set(agent, keyId);
  }

  /** True while a register of the agent that had no answer may have made this connection the owner. */
  isDoubted(agent: string): boolean {
    return this.#doubted.has(agent);
  }

  /** The routes that lead, or may lead, to this connection, of the agents that `isMeant` picks. */
  routes(isMeant: (keyId: string, agent: string) => boolean = () => true): Route[] {
    const connection = this.#connection;
    const owned = [...this.#owned].filter(([agent, { keyId }]) => isMeant(keyId, agent));
    const doubted = [...this.#doubted].filter(([agent, keyId]) => isMeant(keyId, agent));
    return [
      ...owned.map(([agent, { epoch }]) => ({ agent, connection, epoch })),
      ...doubted.map(([agent]) => ({ agent, connection, epoch: null })),
    ];
  }

  /** Gives up every agent that `isAllowed` refuses. @returns their routes, to be released. */
  dropUnless(isAllowed: (keyId: string, agent: string) => boolean): Route[] {
    const routes = this.routes((keyId, agent) => !isAllowed(keyId, agent));
    for (const { agent } of routes) {
      this.#owned.delete(agent);
      this.#doubted.delete(agent);
    }
    return routes;
  }
}
