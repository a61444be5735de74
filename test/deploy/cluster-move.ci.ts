import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { everyPartition, slotOfPartition } from "relay-window/redis/partitions.ts";
import type { ClusterNode } from "../../deploy/local/cluster-node.ts";
import { PARTITIONS } from "../cluster/support/cluster-relay.ts";
import { GuardedClusterRelay } from "../cluster/support/guarded-cluster-relay.ts";
import type { Frame } from "../support/agent.ts";
import { GuardedCluster } from "../support/deployed-users.ts";
import { until } from "../support/until.ts";
import { given, use } from "../support/use-relay.ts";

const DOCUMENT = await readFile(new URL("../../docs/operations.md", import.meta.url), "utf8");
const [, CHAPTER = ""] = /\n### Adding and removing a primary\n(.*?)\n### /s.exec(DOCUMENT) ?? [];
const USER = "cluster-move";
const [, RULES = ""] = /```\nuser cluster-move on #\w+ (.*?)```/s.exec(CHAPTER) ?? [];
/** What redis-cli is given after `--cluster`, in the order in which the chapter has it. */
const COMMANDS = [...CHAPTER.matchAll(/`((?:add-node|rebalance|del-node) [^`]*)`/g)].map(([, line]) => line as string);
const [ADD, ADD_REPLICA, FILL, DRAIN, REMOVE] = COMMANDS as [string, string, string, string, string];
/** Thousands of slots, one by one. */
const MOVED_WITHIN_MS = 180_000;

/** A cluster as it is deployed, with the user who may move slots, and two empty nodes that it does not know. */
class GrowingCluster extends GuardedCluster {
  further: readonly ClusterNode[] = [];

  constructor() {
    super({ [USER]: RULES.replace(/\s+/g, " ").trim() });
  }

  override async start(): Promise<void> {
    await super.start();
    this.further = await this.makeNodes(2);
    await Promise.all(this.further.map((node) => node.start()));
  }

  override async stop(): Promise<void> {
    await Promise.all(this.further.map((node) => node.stop()));
    await super.stop();
  }
}

class GrowingRelay extends GuardedClusterRelay {
  override readonly cluster = new GrowingCluster();
}

const NAMES = Array.from({ length: 8 }, (_, n) => `a${n}-hmac`);
const relay = use(new GrowingRelay(...NAMES));
const pod = given(() => relay.startWsConnector());
const agents = given(() => relay.allOnline([pod], NAMES));

test(
  "a primary is added and removed by the lines of docs/operations.md, as their user, and what was accepted stays known",
  async () => {
    const { cluster } = relay;
    const [added, replica] = cluster.further as [ClusterNode, ClusterNode];
    const any = cluster.nodes[0] as ClusterNode;
    const accepted = await Promise.all(NAMES.map((name) => sent(message(name))));
    const names = {
      "<any>": placeOf(any),
      "<new>": placeOf(added),
      "<new replica>": placeOf(replica),
      "<id of new>": await added.id(),
      "<id>": await added.id(),
    };
    expect(COMMANDS).toHaveLength(5);

    await move(ADD, names);
    await untilKnown(7);
    await move(ADD_REPLICA, names);
    await untilKnown(8);
    await move(FILL, names);
    expect(await partitionsAt(added)).toBe(PARTITIONS / 4);
    await expectServed(accepted);

    await move(DRAIN, names);
    expect(await partitionsAt(added)).toBe(0);
    await move(REMOVE, { ...names, "<id>": await replica.id() });
    await move(REMOVE, names);
    await untilKnown(6);
    await expectServed(accepted);
    expect([...agents.values()].map(({ closed }) => closed)).toEqual(NAMES.map(() => undefined));

    /** Each node but those that left knows so many. */
    async function untilKnown(count: number): Promise<void> {
      await until("all nodes know who belongs to the cluster", async () => {
        const seen = await Promise.all(cluster.nodes.map((node) => node.ask("CLUSTER NODES")));
        return seen.every((said) => [...said.matchAll(/ connected(?: |\r?$)/gm)].length === count);
      });
    }

    async function partitionsAt(node: ClusterNode): Promise<number> {
      const seen = await any.ask("CLUSTER NODES");
      const [, slots = ""] = new RegExp(`^${await node.id()} .* connected(.*)$`, "m").exec(seen) ?? [];
      const ranges = [...slots.matchAll(/(\d+)-?(\d*)/g)].map(([, first, last]) => [
        Number(first),
        Number(last || first),
      ]);
      const isThere = (slot: number) => ranges.some(([first = 0, last = 0]) => first <= slot && slot <= last);
      return everyPartition(PARTITIONS).filter((p) => isThere(slotOfPartition(p))).length;
    }
  },
  2 * MOVED_WITHIN_MS,
);

function placeOf({ port }: ClusterNode): string {
  return `127.0.0.1:${port}`;
}

/** @param line with words in angle brackets, which `names` has something for. */
async function move(line: string, names: Readonly<Record<string, string>>): Promise<void> {
  const given = line.replace(/<[^>]*>/g, (word) => names[word] ?? word).split(" ");
  const env = { PATH: process.env.PATH ?? "", REDISCLI_AUTH: relay.cluster.passwordOf(USER) };
  await promisify(execFile)("redis-cli", ["--user", USER, "--cluster", ...given], { env, timeout: MOVED_WITHIN_MS });
}

/** A message to the agent itself. */
function message(name: string): Frame {
  return relay.envelope(name, "message.send", { to: `agent://${name}`, payload: {} });
}

async function sent(envelope: Frame): Promise<Frame> {
  const socket = agents.get((envelope.from as string).slice("agent://".length));
  await until("it is accepted", async () => (await socket?.ask(envelope))?.accepted === true);
  return envelope;
}

/** Everybody is present and reached, and what was accepted before is a repeat. */
async function expectServed(before: readonly Frame[]): Promise<void> {
  const served = NAMES.map(async (name, n) => {
    const socket = agents.get(name);
    expect(await socket?.ask(before[n] as Frame)).toMatchObject({ duplicate: true });
    // The moves may have taken longer than an agent is online without a heartbeat.
    await sent(relay.envelope(name, "agent.heartbeat"));
    const next = message(name);
    expect(await socket?.ask(next)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
    await socket?.delivered(next.id as string);
  });
  await Promise.all(served);
}
