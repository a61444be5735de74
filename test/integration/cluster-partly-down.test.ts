import { isDeepStrictEqual } from "node:util";
import { expect, test } from "@jest/globals";
import { partitionKeys } from "window/redis/keys.ts";
import { everyPartition, partitionOf } from "window/redis/partitions.ts";
import type { ClusterNode } from "../../deploy/local/cluster-node.ts";
import { ClusterRelay, PARTITIONS } from "../cluster/support/cluster-relay.ts";
import type { AgentSocket } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import type { Pod } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { given, giveUpCalls, use } from "../support/use-relay.ts";

const NAMES = Array.from({ length: 12 }, (_, n) => `a${n}-hmac`);
/** They come when a shard is lost. */
const LATE = Array.from({ length: 4 }, (_, n) => `late${n}-hmac`);
const relay = use(new ClusterRelay(...NAMES, ...LATE));
giveUpCalls();
const http = new HttpClient();
const pod = given(() => relay.startWsConnector());
const gateway = given(() => relay.startGateway());
const agents = given(() => relay.allOnline([pod], NAMES));

const agentOf = (name: string) => `agent://${name}`;
const readinessOf = async ({ url }: Pod) => (await http.get(`${url}/ready`)).body as Record<string, unknown>;
const heartbeat = async (name: string) => await socketOf(name).ask(relay.envelope(name, "agent.heartbeat"));

function socketOf(name: string): AgentSocket {
  return agents.get(name) as AgentSocket;
}

/** Sends a message, and has it arrive. */
async function converse(from: string, to: string): Promise<void> {
  const envelope = relay.envelope(from, "message.send", { to: agentOf(to), payload: {} });
  expect(await socketOf(from).ask(envelope)).toMatchObject({ frame: "ack" });
  await socketOf(to).delivered(envelope.id as string);
}

/** The agents whose partitions one primary has, and the others; and those partitions. */
async function dividedBy(primary: ClusterNode) {
  const owners = await Promise.all(
    everyPartition(PARTITIONS).map((p) => relay.cluster.primaryOf(partitionKeys.window(p))),
  );
  const there = (name: string) => owners[partitionOf(agentOf(name), PARTITIONS)] === primary;
  return {
    partitions: everyPartition(PARTITIONS).filter((p) => owners[p] === primary),
    lost: NAMES.filter(there),
    living: NAMES.filter((name) => !there(name)),
    late: LATE.filter((name) => !there(name)),
  };
}

test("While a shard is lost agents of the others go on, services start, /ready names the lost partitions, and all are there after it", async () => {
  const primary = await relay.cluster.primaryOf(
    partitionKeys.window(partitionOf(agentOf(NAMES[0] as string), PARTITIONS)),
  );
  const { partitions, lost, living, late } = await dividedBy(primary);
  const [first, second] = living as [string, string];
  const shard = [primary, await relay.cluster.replicaOf(primary)];
  for (const node of shard) await relay.cluster.pause(node);
  await relay.cluster.untilGivenUp(primary);

  const started = await Promise.all([relay.startWsConnector(), relay.startGateway()]);
  for (const each of [pod, gateway, ...started]) {
    await until("it names them", async () => {
      const { ready, unavailable_partitions: named } = await readinessOf(each);
      return ready === true && isDeepStrictEqual(named, partitions);
    });
  }
  for (const answer of await Promise.all(living.map(heartbeat))) expect(answer).toMatchObject({ frame: "ack" });
  for (const answer of await Promise.all(lost.map(heartbeat))) expect(answer).toMatchObject({ code: "unavailable" });
  await converse(first, second);
  expect(late.length).toBeGreaterThan(0);
  await relay.allOnline([started[0]], late);

  for (const node of shard) await relay.cluster.resume(node);
  for (const each of [pod, gateway, ...started]) {
    await until("it is whole", async () => !("degraded" in (await readinessOf(each))));
  }
  await Promise.all(lost.map((name) => until(`${name} is heard`, async () => (await heartbeat(name)).frame === "ack")));
  await converse(second, lost[0] as string);
});

test("An emptied primary costs nobody its place: agents of its partitions are present again though nobody sends", async () => {
  const primary = await relay.cluster.primaryOf(
    partitionKeys.window(partitionOf(agentOf(NAMES[1] as string), PARTITIONS)),
  );
  const { lost, living } = await dividedBy(primary);
  const [sender] = living as [string];
  await primary.ask("FLUSHALL");
  await until("messages reach them", async () => {
    const sent = lost.map((name) => relay.envelope(sender, "message.send", { to: agentOf(name), payload: {} }));
    const acks = await Promise.all(sent.map((envelope) => socketOf(sender).ask(envelope)));
    return acks.every((ack) => (ack.target_delivery as { status?: string } | undefined)?.status === "online");
  });
});
