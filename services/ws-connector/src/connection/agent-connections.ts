import type { Connection } from "./connection.ts";

/** The connection of the pod that was granted an agent last, of those that may have it: deliveries go there that come too late elsewhere. */
export class AgentConnections {
  readonly #byAgent = new Map<string, Connection>();

  /** How many agents. */
  get size(): number {
    return this.#byAgent.size;
  }

  granted(agent: string, connection: Connection): void {
    this.#byAgent.set(agent, connection);
  }

  /** The connection does not have the agent any more. */
  lost(agent: string, connection: Connection): void {
    if (this.#byAgent.get(agent) === connection) this.#byAgent.delete(agent);
  }

  /** The connection that has taken the agent since that epoch. */
  since(agent: string, epoch: number): Connection | undefined {
    const connection = this.#byAgent.get(agent);
    return (connection?.agents.hold(agent)?.epoch ?? 0) > epoch ? connection : undefined;
  }
}
