import type { ClusterNode } from "../../deploy/local/cluster-node.ts";
import { violations } from "../support/ledger.ts";
import type { RedisProxy } from "../support/redis-proxy.ts";
import type { ReturningAgent } from "../support/returning-agent.ts";
import { until } from "../support/until.ts";
import type { ClusterFleet, Fleet, FleetPod } from "./fleet.ts";
import { type DirectStage, slotOfAgent } from "./fleet.ts";

/**
 * What befalls a fleet, in every program of the lab. What a fault may cost is in the ledger, as a gap of those who cannot be
 * reached or as a loss of the guard: all else is owed.
 */

/** A fault lasts until this is over. */
type During = () => Promise<unknown>;

/** What is not delivered by then is lost. */
const UNDER_WAY_MS = 20_000;

type Agents = readonly Pick<ReturningAgent, "id">[];

/** Deliveries to these agents, or to all, may be lost until the function that is returned is called. */
export function deaf({ ledger }: Fleet, agents?: Agents): () => void {
  const gaps = agents === undefined ? [ledger.gap()] : agents.map(({ id }) => ledger.gap(id));
  return () => {
    for (const end of gaps) end();
  };
}

/**
 * The same from now on; resolves when all that was promised to them before has come, however far a pod is behind on a busy
 * machine. What does not come in time is judged in the end.
 */
async function deafOnceServed(fleet: Fleet, agents: Agents): Promise<() => void> {
  const { ledger } = fleet;
  const ids = new Set(agents.map(({ id }) => id));
  const onTheirWay = violations(ledger.content)
    .filter(({ kind }) => kind === "promised and lost")
    .flatMap(({ id }) => ledger.entry(id) ?? [])
    .filter(({ to }) => to !== undefined && ids.has(to));
  const alive = deaf(fleet, agents);
  const haveCome = () => onTheirWay.every(({ deliveries }) => deliveries.length > 0);
  await until("what was promised before has come", haveCome, UNDER_WAY_MS).catch(() => {});
  return alive;
}

/** A connector dies without a goodbye, once another one takes its agents. Returns them. */
export async function killConnector(fleet: Fleet, pod: FleetPod): Promise<readonly ReturningAgent[]> {
  await fleet.replace(pod);
  const agents = fleet.agentsOf(pod);
  const alive = await deafOnceServed(fleet, agents);
  await pod.end("SIGKILL");
  await until("its links are gone", () => pod.proxies.every((proxy) => proxy.links().length === 0));
  await fleet.stage.caughtUp();
  alive();
  return agents;
}

/** A connector is told to end, once another one takes its agents. Returns them. */
export async function endConnector(fleet: Fleet, pod: FleetPod): Promise<readonly ReturningAgent[]> {
  await fleet.replace(pod);
  const agents = fleet.agentsOf(pod);
  await pod.end("SIGTERM");
  return agents;
}

/** The process hangs: its sockets stay open. */
export async function freeze({ process }: FleetPod, during: During): Promise<void> {
  process.freeze();
  await during();
  process.thaw();
}

/**
 * No way to Redis. What was on its way to these agents is lost with the links, and so is what Redis publishes before it comes
 * to the end of the connections.
 */
export async function cut(fleet: Fleet, proxies: readonly RedisProxy[], agents: Agents, during: During): Promise<void> {
  const alive = await deafOnceServed(fleet, agents);
  for (const proxy of proxies) proxy.cut();
  await fleet.stage.caughtUp();
  alive();
  await during();
  for (const proxy of proxies) proxy.heal();
}

export async function slow(
  proxies: readonly RedisProxy[],
  [leastMs, mostMs]: readonly [number, number],
  during: During,
): Promise<void> {
  for (const proxy of proxies) proxy.slow(leastMs, mostMs);
  await during();
  for (const proxy of proxies) proxy.heal();
}

/** The one Redis hangs: connections stay open. */
export async function hangRedis({ relay: { redis } }: DirectStage, during: During): Promise<void> {
  await redis.pause();
  await during();
  await redis.resume();
}

/** The one Redis dies, and comes back empty. */
export async function restartRedis(fleet: Fleet<DirectStage>, during: During = async () => {}): Promise<void> {
  const { redis } = fleet.relay;
  const alive = deaf(fleet);
  await redis.kill();
  fleet.ledger.guardLost();
  await during();
  await redis.start();
  alive();
}

/** A shard of the cluster. */
interface Shard {
  readonly primary: ClusterNode;
  /** Whose partitions it has. */
  readonly agents: readonly ReturningAgent[];
}

/** The shard that has a slot. */
export async function shardOf(fleet: ClusterFleet, slot: number): Promise<Shard> {
  const { cluster } = fleet.stage;
  const primary = await cluster.primaryOf(slot);
  const primaries = await Promise.all(fleet.agents.map(({ id }) => cluster.primaryOf(slotOfAgent(id))));
  return { primary, agents: fleet.agents.filter((_, n) => primaries[n] === primary) };
}

export async function hangPrimary({ stage: { cluster } }: ClusterFleet, slot: number, during: During): Promise<void> {
  const primary = await cluster.primaryOf(slot);
  await cluster.pause(primary);
  await during();
  await cluster.resume(primary);
}

/** The replica takes the place of its primary, which lives: nothing is lost. */
export async function failOver({ stage: { cluster } }: ClusterFleet, slot: number): Promise<void> {
  await cluster.failOver(await cluster.replicaOf(await cluster.primaryOf(slot)));
}

interface Promotion {
  readonly replica: ClusterNode;
  /** Kills the primary, or has it hang. */
  readonly silence: During;
  /** What was accepted before this is at the replica, too; all may be lacking unless this is known. */
  readonly lacksSince?: number;
  /** Waits for the promotion, which it is given. */
  readonly during?: (promotion: During) => Promise<unknown>;
}

/** The primary falls silent, and its replica takes its place without what it had not received. */
export async function promote(
  fleet: ClusterFleet,
  { agents }: Shard,
  { replica, silence, lacksSince, during = (promotion) => promotion() }: Promotion,
): Promise<void> {
  const { cluster } = fleet.stage;
  const alive = deaf(fleet, agents);
  await silence();
  forgets(fleet, agents, lacksSince);
  // It may have been kept from receiving more.
  await cluster.resume(replica);
  await cluster.letTakeOver(replica);
  await during(() => cluster.untilPrimary(replica));
  alive();
}

/** The shard dies with its replica, and comes back empty once it was given up. */
export async function loseShard(
  fleet: ClusterFleet,
  { primary, agents }: Shard,
  during: During = async () => {},
): Promise<void> {
  const { cluster } = fleet.stage;
  const alive = deaf(fleet, agents);
  await cluster.kill(await cluster.replicaOf(primary));
  await cluster.kill(primary);
  forgets(fleet, agents);
  await cluster.untilGivenUp(primary);
  await during();
  await cluster.mend();
  alive();
}

/** A slot moves as Redis 7 does it, key by key. It lasts while the keys have gone and the slot has not. */
export async function moveSlot(
  { stage: { cluster } }: ClusterFleet,
  slot: number,
  to: ClusterNode,
  during: During = async () => {},
): Promise<void> {
  const from = await cluster.beginMove(slot, to);
  await cluster.moveKeys(slot, from, to);
  await during();
  await cluster.endMove(slot, from, to);
}

/** Another primary than the one that has the slot. */
export async function otherPrimary({ stage: { cluster } }: ClusterFleet, slot: number): Promise<ClusterNode> {
  const [primary, all] = [await cluster.primaryOf(slot), await cluster.primaries()];
  return all.find((node) => node !== primary) as ClusterNode;
}

function forgets({ ledger }: Fleet, agents: Agents, since?: number): void {
  ledger.guardLost(
    agents.map(({ id }) => id),
    since,
  );
}
