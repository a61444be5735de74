import { describe, expect, test } from "@jest/globals";
import type { Envelope } from "protocol/contract/envelope.ts";
import type { ClusterNode } from "../../../deploy/local/cluster-node.ts";
import { TestCluster } from "../../../test/support/redis-cluster.ts";
import { until } from "../../../test/support/until.ts";
import type { Acceptance } from "../src/acceptance/acceptance.ts";
import { PodChannel } from "../src/pod-channel.ts";
import type { ClusterLinks } from "../src/redis/cluster-links.ts";
import { slotOfPartition } from "../src/redis/partitions.ts";
import { readSession } from "../src/sessions.ts";
import { readSnapshot } from "../src/snapshot.ts";
import { clusterBench } from "./cluster-kit.ts";
import { decisionOf, messageOf } from "./envelopes.ts";
import { IGNORED, type Pod, podOn } from "./kit.ts";

const [ALICE, BOB] = ["agent://alice", "agent://bob"] as const;
/** All that is in this test lies in one partition. */
const SLOT = slotOfPartition(0);
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
    const asked = (await link.command("GET", window.current.keys.partition(0).asked(BOB))) as string | null;
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
