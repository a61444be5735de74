import { beforeAll, describe, expect, test } from "@jest/globals";
import type { Envelope } from "relay-protocol/wire/envelope.ts";
import { PRESENCE_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { ClusterNode } from "../../../deploy/local/cluster-node.ts";
import { TestCluster } from "../../../test/support/redis-cluster.ts";
import { until } from "../../../test/support/until.ts";
import type { Acceptance } from "../src/acceptance/acceptance.ts";
import { Acceptor } from "../src/acceptance/acceptor.ts";
import { PodChannel } from "../src/channel/pod-channel.ts";
import { readSnapshot } from "../src/counters/snapshot.ts";
import { KnownEpochs, RouteRestorer } from "../src/presence/held-routes.ts";
import type { ClusterLinks } from "../src/redis/connect.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { partitionOf, slotOfPartition } from "../src/redis/partitions.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import { readSession } from "../src/sessions/look-ups.ts";
import { ProcessWindow } from "../src/window/process-window.ts";
import { clusterBench } from "./cluster-kit.ts";
import { ALICE, BOB, decisionOf, messageOf } from "./envelopes.ts";
import { IGNORED, LOGGER, Pod, podOn } from "./kit.ts";

/** Where all is that the tests of moves have: in one partition. */
const SLOT = slotOfPartition(0);
const PARTITIONS = 12;
const { offlineAfterMs } = PRESENCE_LIMITS;
const { proofFreshnessMs } = SESSION_LIMITS;
const bench = clusterBench(new TestCluster());
const { cluster } = bench;

/** A pod on the cluster, with both agents, and what it heard for them. */
class MovedPod {
  readonly pod: Pod<ClusterLinks>;
  readonly heard: string[] = [];
  readonly #channel: PodChannel;

  constructor(pod: Pod<ClusterLinks>) {
    this.pod = pod;
    this.#channel = new PodChannel({ calls: pod.link, pod: "pod-a", partitions: 1 });
    this.#channel.listen({
      ...IGNORED,
      deliver: (...[, , , , text]) => this.heard.push(text),
    });
  }

  static async start(): Promise<MovedPod> {
    const links = await bench.started("pod-a");
    const moved = new MovedPod(podOn(links));
    bench.later(() => moved.#channel.stop());
    await moved.#channel.start();
    await moved.untilHeard();
    for (const agent of [ALICE, BOB]) await moved.pod.register(agent);
    return moved;
  }

  async untilHeard(): Promise<void> {
    await until("the partition is heard", () => this.#channel.isReadyFor(BOB));
  }

  /** How often an envelope was delivered. */
  async deliveriesOf({ id }: Envelope): Promise<number> {
    await this.#channel.caughtUp();
    return this.heard.filter((text) => JSON.parse(text).id === id).length;
  }

  /** A session's status, and whether it still waits for its target. */
  async standingOf(sessionId: string): Promise<string> {
    const { link, window } = this.pod;
    const session = await readSession(link, window, sessionId);
    const asked = (await link.command("GET", window.current.keys.partition(0).pending(BOB))) as string | null;
    const waits =
      asked
        ?.split("\n")
        .slice(1)
        .some((line) => line.startsWith(sessionId.slice(4))) ?? false;
    return `${session?.status}, ${waits ? "waits" : "waits for nothing"}`;
  }

  async published(): Promise<number> {
    return (await readSnapshot(this.pod.link, this.pod.window)).counters.get("published_envelopes") ?? 0;
  }
}

/** Does something while the slot is on its way, some of its keys having been moved. */
async function amidMove(isMoved: (key: string) => boolean, act: () => Promise<void>): Promise<void> {
  const from = await cluster.primaryOf(SLOT);
  const to = (await bench.primaries()).find((node) => node !== from) as ClusterNode;
  await cluster.beginMove(SLOT, to);
  await cluster.moveKeys(SLOT, from, to, isMoved);
  await act();
  await cluster.moveKeys(SLOT, from, to);
  await cluster.endMove(SLOT, from, to);
}

/** The outcome, or the code of the refusal. */
async function outcomeOf(taken: Promise<Acceptance>): Promise<string> {
  return await taken.then(
    ({ outcome }) => outcome,
    (error) => error.code,
  );
}

/** What is done of a decision whose slot is on its way: as a whole, or nothing. */
const WHOLE = ["pending_until_session.approve_or_session.reject, waits", "approved, waits for nothing"];

describe("while the slot of its partition is moved,", () => {
  test.each([
    ["nothing yet", () => false],
    ["the counts of principals", (key: string) => key.includes(":principal:")],
    ["the session", (key: string) => key.includes(":session:")],
    ["what is asked of its target", (key: string) => key.includes(":asked:")],
    ["the replay guard", (key: string) => key.includes(":seen:")],
    ["the routes", (key: string) => key.includes(":route:")],
    ["all but the record of the window", (key: string) => !key.includes(":window")],
    ["everything", () => true],
  ])(
    "%s having moved, a decision and a message are done once or not at all, and once afterwards",
    async (_, isMoved) => {
      const moved = await MovedPod.start();
      const { pod } = moved;
      const sessionId = (await pod.request(ALICE, BOB)).sessionId as string;
      const decision = decisionOf("approve", BOB, ALICE, sessionId);
      const message = messageOf(ALICE, BOB);
      const before = await moved.published();
      const amid: string[] = [];
      await amidMove(isMoved, async () => {
        for (const envelope of [decision, message]) amid.push(await outcomeOf(pod.take(envelope)));
      });
      await moved.untilHeard();
      expect(amid).toEqual(amid.map(() => expect.stringMatching(/^(accepted|unavailable)$/)));
      expect(WHOLE).toContain(await moved.standingOf(sessionId));

      const afterwards = [await outcomeOf(pod.take(decision)), await outcomeOf(pod.take(message))];
      expect(afterwards).toEqual(amid.map((outcome) => (outcome === "accepted" ? "duplicate" : "accepted")));
      expect(await moved.standingOf(sessionId)).toBe(WHOLE[1]);
      expect((await moved.published()) - before).toBe(2);
      expect(await moved.deliveriesOf(decision)).toBeLessThanOrEqual(1);
      expect(await moved.deliveriesOf(message)).toBeLessThanOrEqual(1);
    },
  );
});

/** A pod with its channel. Each logs in as a user of its own name, who may do everything at first. */
class PodOnCluster extends Pod<ClusterLinks> {
  readonly channel: PodChannel;
  /** What came in: ids of envelopes, and the takeovers of connections. */
  readonly delivered: string[] = [];
  readonly superseded: string[] = [];
  readonly #name: string;

  constructor(name: string, links: ClusterLinks, window: ProcessWindow) {
    const epochs = new KnownEpochs(PARTITIONS);
    const options = { link: links, window, pod: name, epochs, offlineAfterMs, proofFreshnessMs };
    super(links, window, new Acceptor({ ...options, logger: LOGGER }), epochs);
    this.#name = name;
    this.channel = new PodChannel({ calls: links, pod: name, partitions: PARTITIONS });
    this.channel.listen({
      ...IGNORED,
      deliver: (_connection, _epoch, _agent, _session, text) => this.delivered.push(JSON.parse(text).id),
      superseded: (connection, epoch) => this.superseded.push(`${connection} ${epoch}`),
    });
  }

  async restore(agent: string, connection: string, epoch: number): Promise<(number | null)[]> {
    const { link, window, epochs } = this;
    const restorer = new RouteRestorer({ link, window, pod: this.#name, epochs, offlineAfterMs });
    const held = { agent, connection, epoch, heardAt: performance.now(), isCongested: false, credentials: undefined };
    return await restorer.restore(partitionOf(agent, PARTITIONS), [{ ...held, principal: "key:k" }]);
  }

  async renewedAt(agent: string): Promise<number> {
    const pods = partitionKeys.pods(partitionOf(agent, PARTITIONS));
    return Number(await this.link.command("ZSCORE", pods, this.#name).catch(() => 0));
  }
}

async function started(name: string): Promise<PodOnCluster> {
  for (const node of bench.cluster.nodes) {
    await node.ask(`ACL SETUSER ${name} on nopass ~* &* +@all`).catch(() => {});
  }
  const links = bench.links(name, bench.cluster.url.replace("://", `://${name}:any@`));
  const window = new ProcessWindow({ link: links, partitions: PARTITIONS, deployId: "deploy-1", logger: LOGGER });
  const pod = new PodOnCluster(name, links, window);
  bench.later(() => pod.channel.stop());
  await links.start();
  await pod.channel.start();
  return pod;
}

/** An agent that a node has. */
async function agentAt(node: ClusterNode): Promise<string> {
  for (let n = 0; ; n += 1) {
    const agent = `agent://a${n}`;
    if ((await bench.cluster.primaryOf(slotOfPartition(partitionOf(agent, PARTITIONS)))) === node) return agent;
  }
}

/** Sends to an agent again and again, and heartbeats of it on c1, which was superseded and did not hear of it. */
class Siege {
  readonly promised: string[] = [];
  readonly heartbeats: Acceptance[] = [];
  readonly #pod: PodOnCluster;
  readonly #agent: string;
  #isOver = false;
  readonly #done: Promise<void>;

  constructor(pod: PodOnCluster, agent: string) {
    this.#pod = pod;
    this.#agent = agent;
    this.#done = this.#run();
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      const message = messageOf(ALICE, this.#agent);
      const answer = await this.#pod.accept(message);
      if ("delivery" in answer && answer.delivery === "online") this.promised.push(message.id);
      this.heartbeats.push(await this.#pod.heartbeat(this.#agent, "c1"));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

interface Turmoil {
  /** Which node has the agent afterwards. */
  readonly next: ClusterNode;
  readonly begin: () => Promise<void>;
}

const TURMOILS: readonly (readonly [string, (agent: string) => Promise<Turmoil>])[] = [
  [
    "its slot is moved",
    async (agent) => {
      const slot = slotOfPartition(partitionOf(agent, PARTITIONS));
      const from = await bench.cluster.primaryOf(slot);
      const next = (await bench.primaries()).find((node) => node !== from) as ClusterNode;
      return { next, begin: () => bench.cluster.moveSlot(slot, next) };
    },
  ],
  [
    "a replica takes over",
    async (agent) => {
      const primary = await bench.cluster.primaryOf(slotOfPartition(partitionOf(agent, PARTITIONS)));
      const next = await bench.cluster.replicaOf(primary);
      const begin = async () => {
        await bench.cluster.kill(primary);
        await bench.cluster.takeOver(next);
      };
      return { next, begin };
    },
  ],
];

describe("a connection that was superseded", () => {
  // The window of the tests of moves has another number of partitions.
  beforeAll(async () => {
    for (const node of await bench.primaries()) await node.ask("FLUSHALL");
  });

  test.each(TURMOILS)("takes nothing back while %s and nobody hears its successor", async (_what, plan) => {
    const [former, successor] = [await started("pod-a"), await started("pod-b")];
    const agent = await agentAt((await bench.primaries())[0] as ClusterNode);
    await former.register(agent, "c1");
    const { epoch } = await successor.register(agent, "c2");
    const { next, begin } = await plan(agent);
    await next.ask("ACL SETUSER pod-b -ssubscribe");
    const siege = new Siege(former, agent);
    bench.later(() => siege.end());
    await until("messages come in", () => siege.promised.length > 10);

    await begin();
    await until("nobody hears the pod", () => !successor.channel.isReadyFor(agent));
    await until("its lease goes on", async () => (await successor.renewedAt(agent)) > 0);
    const since = await successor.renewedAt(agent);
    const before = siege.heartbeats.length;
    await until(
      "its lease goes on for longer than it lasts",
      async () => (await successor.renewedAt(agent)) > since + REDIS_LIMITS.podLeaseMs,
    );
    expect(siege.heartbeats.slice(before).map(({ outcome }) => outcome)).toContain("unavailable");

    await next.ask("ACL SETUSER pod-b +ssubscribe");
    await until("the pod is heard again", () => successor.channel.isReadyFor(agent));
    const promised = siege.promised.length;
    await until("messages come in again", () => siege.promised.length > promised + 10);
    await siege.end();
    const isDelivered = (id: string) => successor.delivered.includes(id);
    await until("all that was promised comes in", () => siege.promised.every(isDelivered));
    await successor.channel.caughtUp();

    expect(siege.heartbeats.filter(({ outcome }) => outcome === "accepted")).toEqual([]);
    expect(await successor.heartbeat(agent, "c2")).toMatchObject({ outcome: "accepted", epoch });
    expect(new Set(successor.delivered).size).toBe(successor.delivered.length);
  });

  test("gives way again when a replica took over that knows nothing of its successor, whose epoch nobody else is given", async () => {
    const [former, successor] = [await started("pod-a"), await started("pod-b")];
    const primary = (await bench.primaries())[1] as ClusterNode;
    const replica = await bench.cluster.replicaOf(primary);
    const agent = await agentAt(primary);
    const { clock } = successor.window.current.keys.partition(partitionOf(agent, PARTITIONS));
    // Epochs that no clock of a server catches up with.
    await successor.link.command("SET", clock, String(2 * Date.now() * 1000));
    await former.register(agent, "c1");
    await bench.cluster.untilReceived(primary, replica);
    await bench.cluster.pause(replica);
    await primary.ask("CLIENT KILL TYPE replica");
    const { epoch } = await successor.register(agent, "c2");
    await bench.cluster.kill(primary);
    await bench.cluster.resume(replica);
    await bench.cluster.takeOver(replica);
    await until("both are heard", () => [former, successor].every(({ channel }) => channel.isReadyFor(agent)));

    expect(await former.heartbeat(agent, "c1")).toMatchObject({ outcome: "accepted" });
    await successor.heartbeat(agent, "c2");
    expect(await successor.restore(agent, "c2", epoch as number)).toEqual([null]);
    expect(await former.heartbeat(agent, "c1")).toMatchObject({ outcome: "not_registered", epoch });
    await until("it hears so twice", () => former.superseded.length > 1);
    await former.channel.caughtUp();
    expect(former.superseded).toEqual([`c1 ${epoch}`, `c1 ${epoch}`]);
    expect((await former.register(agent, "c3")).epoch).toBeGreaterThan(epoch as number);
  });

  test("takes its agent back from a pod that died, once the pod's lease is over", async () => {
    const [former, successor] = [await started("pod-a"), await started("pod-b")];
    const agent = await agentAt((await bench.primaries())[2] as ClusterNode);
    await former.register(agent, "c1");
    await successor.register(agent, "c2");
    await successor.channel.stop();
    await successor.link.stop();
    expect(await former.accept(messageOf(ALICE, agent))).toMatchObject({ delivery: "stale" });
    expect(await former.heartbeat(agent, "c1")).toMatchObject({ outcome: "unavailable" });
    await until("it has the agent", async () => (await former.heartbeat(agent, "c1")).outcome === "accepted");
  });
});
