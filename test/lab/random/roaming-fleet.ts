import { GuardedRelay } from "../../support/guarded-redis.ts";
import { ReturningAgent } from "../../support/returning-agent.ts";
import { ClusterStage } from "../faults/support/cluster-stage.ts";
import { Fleet, HEARTBEAT_MS } from "../fleet.ts";
import { SingleStage } from "../faults/support/single-stage.ts";
import { AGENTS, CONNECTORS } from "./actions.ts";
import { OpenRequests } from "./open-requests.ts";

/** Half of the agents sign with Ed25519, half with HMAC. */
const NAMES = Array.from({ length: AGENTS }, (_, n) => `agent-${n}${n % 2 === 0 ? "" : "-hmac"}`);

/** After this an agent's former connection has been closed, and has nothing under way. */
const MOVING_MS = 2000;

/** A fleet whose agents move between connectors, and remember what they were asked for. */
export class RoamingFleet extends Fleet {
  /** The connector, by its number, that each agent goes to when it next connects. */
  readonly homes: number[] = NAMES.map((_, n) => n % CONNECTORS);
  readonly asked: OpenRequests[] = NAMES.map(() => new OpenRequests());

  readonly #movedAt = new Map<ReturningAgent, number>();

  /** @param onCluster over a Redis Cluster, else over one Redis. */
  constructor(onCluster: boolean) {
    super(onCluster ? new ClusterStage(NAMES) : new SingleStage(new GuardedRelay(...NAMES)), CONNECTORS);
  }

  /** The n-th agent's key, as only it and the relay should know it. */
  keyOf(n: number) {
    const key = this.relay.keys.agents.get(NAMES[n] as string);
    if (key === undefined) throw new Error(`There is no agent ${n}.`);
    return key;
  }

  apiKeyOf(n: number): string {
    return this.relay.keys.apiKeys.get(NAMES[n] as string) as string;
  }

  /** The agent may have two connections for a moment. */
  moves(agent: ReturningAgent): void {
    this.#movedAt.set(agent, performance.now());
  }

  hasJustMoved(agent: ReturningAgent): boolean {
    return performance.now() - (this.#movedAt.get(agent) ?? Number.NEGATIVE_INFINITY) < MOVING_MS;
  }

  override agent(name: string): ReturningAgent {
    const n = NAMES.indexOf(name);
    return new ReturningAgent({
      url: () => (this.connectors[this.homes[n] as number] as { websocketUrl: string }).websocketUrl,
      id: `agent://${name}`,
      key: this.keyOf(n),
      heartbeatMs: HEARTBEAT_MS,
      ledger: this.ledger,
      received: (frame) => {
        if (frame.frame === "deliver" && frame.envelope.type === "session.request") this.asked[n]?.add(frame);
      },
    });
  }
}
