import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { controlKeys } from "relay-window/redis/keys.ts";
import { CONTROL_SLOT, partitionOf } from "relay-window/redis/partitions.ts";
import type { ClusterNode } from "../../../deploy/local/cluster-node.ts";
import { PARTITIONS } from "../../cluster/support/cluster-relay.ts";
import { HttpClient } from "../../support/http.ts";
import { acceptancesOf, type Entry, forgotten } from "../../support/ledger.ts";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import { clusterClient } from "../../support/test-redis.ts";
import { until } from "../../support/until.ts";
import { cut, failOver, loseShard, moveSlot, otherPrimary, promote, shardOf } from "../faults.ts";
import type { ClusterFleet, FleetPod } from "../fleet.ts";
import { slotOfAgent } from "../fleet.ts";
import { KeyedCallers } from "../keyed-sends.ts";
import { exchanging, type Fault, type Injected, over, spared, untilRefusedTo } from "./survive.ts";

/** A slot of each of the first shards. */
const ONE_OF_EACH = [0, 8000, 16_383];
/** After a move. Source: docs/redis.md#a-redis-cluster. */
const SERVED_WITHIN_MS = 2000;
const BACK_WITHIN_MS = 10_000;
const CALLERS = 4;

/** What was accepted shortly before a promotion is sent once more: so far back, much of it the replica has received. */
const REPEATED_MS = 3000;
/** Enough that some of it is repeated, for half of the agents repeat. */
const LACKING = 20;

/** What befalls the nodes of a Redis Cluster, the network to them, and where slots are. */
export const CLUSTER_FAULTS: readonly Fault<ClusterFleet>[] = [
  {
    name: "primary SIGKILL, its replica promoted",
    times: 3,
    inject: (fleet) => promoted(fleet, (primary) => fleet.stage.cluster.kill(primary)),
  },
  {
    name: "primary SIGSTOP, its replica promoted, SIGCONT",
    times: 3,
    inject: async (fleet) => {
      const { cluster } = fleet.stage;
      const { primary } = await shardOf(fleet, anySlot(fleet));
      const injected = await promoted(fleet, () => cluster.pause(primary));
      await cluster.resume(primary);
      await until("the former primary is a replica", async () =>
        (await primary.ask("INFO replication")).includes("role:slave"),
      );
      await exchanging(fleet, fleet.agents, performance.now(), BACK_WITHIN_MS);
      return injected;
    },
  },
  {
    name: "CLUSTER FAILOVER",
    times: 4,
    inject: async (fleet) => {
      const { agents } = await shardOf(fleet, anySlot(fleet));
      const askedAt = performance.now();
      await failOver(fleet, anySlot(fleet));
      const injected = over(agents);
      const back = exchanging(fleet, agents, injected.endedAt, BACK_WITHIN_MS);
      const [backAt] = await Promise.all([back, repeatAccepted(fleet, agents, askedAt)]);
      return { ...injected, backAt };
    },
  },
  {
    name: "replica lost",
    times: 2,
    inject: async (fleet) => {
      const { cluster } = fleet.stage;
      const { primary } = await shardOf(fleet, anySlot(fleet));
      const replica = await cluster.replicaOf(primary);
      await cluster.kill(replica);
      await spared(fleet, [], () => cluster.untilGivenUp(replica));
      return over([]);
    },
  },
  {
    name: "shard lost with its replica, back empty",
    times: 3,
    inject: (fleet) => lose(fleet, anySlot(fleet)),
  },
  {
    name: "control slot lost with its shard, back empty",
    times: 3,
    inject: (fleet) => lose(fleet, CONTROL_SLOT),
  },
  {
    name: "network between pods and a shard cut",
    times: 4,
    inject: async (fleet) => {
      const { stage, pods } = fleet;
      const { primary, agents } = await shardOf(fleet, anySlot(fleet));
      const replica = await stage.cluster.replicaOf(primary);
      const proxies = [primary, replica].flatMap((node) => stage.proxiesBefore(node, pods));
      await cut(fleet, proxies, agents, () => spared(fleet, agents, () => untilRefusedTo(fleet, agents)));
      return over(agents);
    },
  },
  {
    name: "SCRIPT FLUSH on one node",
    times: 5,
    inject: async (fleet) => {
      const { primary, agents } = await shardOf(fleet, anySlot(fleet));
      await primary.ask("SCRIPT FLUSH");
      return over(agents);
    },
  },
  {
    name: "slot moved, to and fro",
    times: 4,
    backWithinMs: SERVED_WITHIN_MS,
    inject: async (fleet) => {
      const slot = anySlot(fleet);
      await moveUnderTraffic(fleet, slot, await otherPrimary(fleet, slot));
      return over(agentsIn(fleet, slot));
    },
  },
  {
    name: "primary added and removed",
    times: 2,
    backWithinMs: SERVED_WITHIN_MS,
    inject: async (fleet) => {
      const { cluster } = fleet.stage;
      const slots = await Promise.all(ONE_OF_EACH.map((one) => slotBeside(fleet, one)));
      const homes = await Promise.all(slots.map((slot) => cluster.primaryOf(slot)));
      const agents = slots.flatMap((slot) => agentsIn(fleet, slot));
      const added = await cluster.addNode();
      for (const slot of slots) await moveUnderTraffic(fleet, slot, added);
      await exchanging(fleet, agents, performance.now(), BACK_WITHIN_MS);
      for (const [n, slot] of slots.entries()) await moveUnderTraffic(fleet, slot, homes[n] as ClusterNode);
      const injected = over(agents);
      await cluster.removeNode(added);
      return injected;
    },
  },
  {
    // Callers send what has its target in one shard over two gateways, in turn, until it is accepted, and once more.
    name: "gateways retry one Idempotency-Key through a failover",
    times: 2,
    inject: async (fleet) => {
      const { cluster } = fleet.stage;
      const gateways = await Promise.all([fleet.addPod("gateway"), fleet.addPod("gateway")]);
      const shard = await shardOf(fleet, anySlot(fleet));
      const { primary, agents } = shard;
      const replica = await cluster.replicaOf(primary);
      const next = (caller: number, n: number) => {
        const to = agents[caller % agents.length] as ReturningAgent;
        const others = fleet.agents.filter((agent) => agent !== to);
        return { from: others[(caller + n * CALLERS) % others.length] as ReturningAgent, to };
      };
      const callers = new KeyedCallers(fleet, CALLERS, () => gateways, next);
      try {
        await callers.served(0);
        const lacksSince = performance.now();
        await cluster.untilReceived(primary, replica);
        await cluster.letTakeOver(replica);
        await promote(fleet, shard, { replica, silence: () => cluster.kill(primary), lacksSince });
        const injected = over(agents);
        return { ...injected, backAt: await callers.served(injected.endedAt) };
      } finally {
        await callers.stop();
        await Promise.all(gateways.map((gateway) => gateway.end("SIGTERM")));
      }
    },
  },
];

/** A slot of agents, in another shard than the control slot. */
function anySlot({ agents }: ClusterFleet): number {
  return slotOfAgent((agents[0] as ReturningAgent).id);
}

/**
 * A primary is made silent until its replica has taken its place, which lacks what was accepted last. That is accepted again and reported
 * as lacking, and nothing else.
 */
async function promoted(
  fleet: ClusterFleet,
  silencePrimary: (primary: ClusterNode) => Promise<void>,
): Promise<Injected & { readonly backAt: number }> {
  const { cluster } = fleet.stage;
  const shard = await shardOf(fleet, anySlot(fleet));
  const { primary, agents } = shard;
  const replica = await cluster.replicaOf(primary);
  const reports = await startReports(fleet);
  try {
    const lacksSince = performance.now();
    await cluster.beginLag(primary, replica);
    await untilLacking(fleet, agents, performance.now());
    const silentSince = performance.now();
    const during = (promotion: () => Promise<unknown>) => spared(fleet, agents, promotion);
    await promote(fleet, shard, { replica, silence: () => silencePrimary(primary), lacksSince, during });
    const injected = over(agents);
    const back = exchanging(fleet, agents, injected.endedAt, BACK_WITHIN_MS);
    const [backAt, repeated] = await Promise.all([back, repeatAccepted(fleet, agents, silentSince)]);
    await untilReported(fleet, reports, agents, repeated);
    return { ...injected, backAt };
  } finally {
    await reports.end("SIGTERM");
  }
}

/** Others are served while the shard is away. */
async function lose(fleet: ClusterFleet, slot: number): Promise<Injected> {
  const shard = await shardOf(fleet, slot);
  const { agents } = shard;
  await loseShard(fleet, shard, () => spared(fleet, agents, () => untilRefusedTo(fleet, agents)));
  return over(agents);
}

/** Some keys are here and some there for long enough that what is for the slot's agents is refused. */
async function moveUnderTraffic(fleet: ClusterFleet, slot: number, to: ClusterNode): Promise<void> {
  await moveSlot(fleet, slot, to, () => untilRefusedTo(fleet, agentsIn(fleet, slot)));
}

/** A slot of agents in the shard that has that one. */
async function slotBeside(fleet: ClusterFleet, slot: number): Promise<number> {
  const { agents } = await shardOf(fleet, slot);
  return slotOfAgent((agents[0] as ReturningAgent).id);
}

function agentsIn({ agents }: ClusterFleet, slot: number): ReturningAgent[] {
  return agents.filter(({ id }) => slotOfAgent(id) === slot);
}

/** Resolves when enough was accepted for these agents, since then, that is lost with their primary. */
async function untilLacking(fleet: ClusterFleet, agents: readonly ReturningAgent[], since: number): Promise<void> {
  await until("some of it lacks", () => acceptedFor(fleet, agents, since).length >= LACKING);
}

/** Half of the agents send again what was accepted for these before that time. Resolves with all of it, when it is answered. */
async function repeatAccepted(
  fleet: ClusterFleet,
  agents: readonly ReturningAgent[],
  before: number,
): Promise<Entry[]> {
  const lately = acceptedFor(fleet, agents, before - REPEATED_MS).filter(
    (entry) => (acceptedAt(entry) ?? before) < before,
  );
  const repeated = new Set(fleet.repeat(new Set(lately.map(({ id }) => id))));
  const entries = lately.filter(({ id }) => repeated.has(id));
  if (entries.length === 0) throw new Error("Nothing was repeated.");
  await until("what was repeated is answered", () => entries.every(isAnsweredAgain));
  return entries;
}

/** A process of the reports that says from now on what may be lacking, and nothing of what was recorded before. */
async function startReports(fleet: ClusterFleet): Promise<FleetPod> {
  const client = clusterClient(fleet.stage.cluster.adminUrl);
  await client.hset(controlKeys.window, "promoted", "").finally(() => client.disconnect());
  return await fleet.addPod("ops-reporting");
}

/**
 * Resolves when reports say since when something may be lacking of these agents' partitions, and it is no later than what was
 * forgotten of these envelopes. @throws when nothing was: the replica had received everything.
 */
async function untilReported(
  fleet: ClusterFleet,
  reports: FleetPod,
  agents: readonly ReturningAgent[],
  repeated: readonly Entry[],
): Promise<void> {
  const lost = forgotten({ ...fleet.ledger.content, entries: repeated });
  if (lost.length === 0) throw new Error("The promoted replica has forgotten nothing.");
  const first = performance.timeOrigin + Math.min(...lost.map((entry) => acceptedAt(entry) as number));
  const places = [...new Set(agents.map(({ id }) => partitionOf(id, PARTITIONS)))];
  const http = new HttpClient();
  await until("reports say what may be lacking", async () => {
    const { status, body } = await http.get(reports.url + SURFACES.trafficDaily.path);
    if (status !== 200 || body.complete) return false;
    return places.every((p) => body.partitions.may_lack.includes(p)) && body.may_lack_since <= first;
  });
}

/** Envelopes to these agents whose first acceptance was answered since then. */
function acceptedFor({ ledger }: ClusterFleet, agents: readonly ReturningAgent[], since: number): Entry[] {
  const ids = new Set(agents.map(({ id }) => id));
  return ledger.content.entries.filter(
    (entry) => entry.to !== undefined && ids.has(entry.to) && (acceptedAt(entry) ?? Number.NEGATIVE_INFINITY) >= since,
  );
}

/** Monotonic ms. */
function acceptedAt(entry: Entry): number | undefined {
  return acceptancesOf(entry)[0]?.at;
}

function isAnsweredAgain({ attempts }: Entry): boolean {
  return attempts.length > 1 && attempts.at(-1)?.answer?.accepted === true;
}
