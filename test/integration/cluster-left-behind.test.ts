import { expect, test } from "@jest/globals";
import { partitionKeys } from "window/redis/keys.ts";
import { partitionOf } from "window/redis/partitions.ts";
import { ClusterRelay, PARTITIONS } from "../cluster/support/cluster-relay.ts";
import type { Frame } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given, use } from "../support/use-relay.ts";

const relay = use(new ClusterRelay("rover-hmac", "kept-hmac", "target-hmac", "sender-hmac"));
const pod = given(() => relay.startWsConnector());
const [ROVER, TARGET] = ["agent://rover-hmac", "agent://target-hmac"] as const;

/** From here on the replica of an agent's primary receives nothing. Returns what has it take over. */
async function lagOf(agent: string): Promise<{ readonly takeOver: () => Promise<void> }> {
  const { cluster } = relay;
  const primary = await cluster.primaryOf(partitionKeys.window(partitionOf(agent, PARTITIONS)));
  const replica = await cluster.replicaOf(primary);
  await cluster.untilReceived(primary, replica);
  await cluster.beginLag(primary, replica);
  return {
    takeOver: async () => {
      await cluster.kill(primary);
      await cluster.resume(replica);
      await cluster.takeOver(replica);
    },
  };
}

test("a replica takes over that lacks a release: whose key was revoked gets nothing, and the agent is stale again by the first message", async () => {
  const carrier = await relay.online(pod, "kept-hmac");
  const sender = await relay.online(pod, "sender-hmac");
  expect(await carrier.ask(relay.envelope("rover-hmac", "agent.register"))).toMatchObject({ frame: "ack" });
  const { takeOver } = await lagOf(ROVER);

  await relay.writeKeys(withoutRover(relay.keys.file));
  await carrier.next("the release", ({ notice, agent_id }) => notice === "released" && agent_id === ROVER);
  await until("the agent is stale", async () => (await statusOf()) === "stale");
  await takeOver();

  await until("the route that came back is believed", async () => (await statusOf()) === "online");
  await until("the agent is stale", async () => (await statusOf()) === "stale");
  const own = message("agent://kept-hmac");
  await until("the connection is reached", async () => (await sender.ask(own)).accepted === true);
  await carrier.delivered(own.id);
  expect(carrier.deliveries.filter(({ envelope }) => envelope.to === ROVER)).toEqual([]);
  await sender.close();

  async function statusOf(): Promise<string | undefined> {
    return (await sender.ask(message(ROVER))).target_delivery?.status;
  }
});

test("a replica takes over that has forgotten what was accepted: sent again it is accepted again, and its pod delivers it no second time", async () => {
  await relay.cluster.mend();
  const target = await relay.online(pod, "target-hmac");
  const sender = await relay.online(pod, "sender-hmac");
  const { takeOver } = await lagOf(TARGET);

  const envelope = message(TARGET);
  expect(await sender.ask(envelope)).toMatchObject({ accepted: true, target_delivery: { can_deliver_realtime: true } });
  await target.delivered(envelope.id);
  await takeOver();

  await until("the target is reached", async () => {
    const later = message(TARGET);
    const { target_delivery } = await sender.ask(later);
    return target_delivery?.can_deliver_realtime && (await target.delivered(later.id));
  });
  const again = await sender.ask(envelope);
  expect(again).toMatchObject({ accepted: true, target_delivery: { can_deliver_realtime: true } });
  expect(again.duplicate).not.toBe(true);
  const last = message(TARGET);
  await sender.ask(last);
  await target.delivered(last.id);
  expect(target.deliveries.filter(({ envelope: { id } }) => id === envelope.id)).toHaveLength(1);
});

function message(to: string): Frame {
  return relay.envelope("sender-hmac", "message.send", { to, payload: { message: "hi" } });
}

function withoutRover(file: object): object {
  const { signing_keys, ...rest } = file as { signing_keys: { agents: string[] }[] };
  return { ...rest, signing_keys: signing_keys.filter(({ agents }) => !agents.includes(ROVER)) };
}
