import { expect, test } from "@jest/globals";
import { partitionKeys } from "window/redis/keys.ts";
import { partitionOf } from "window/redis/partitions.ts";
import { ClusterRelay, PARTITIONS } from "../cluster/support/cluster-relay.ts";
import type { Frame } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given, use } from "../support/use-relay.ts";

const relay = use(new ClusterRelay("rover-hmac", "kept-hmac", "sender-hmac"));
const pod = given(() => relay.startWsConnector());
const ROVER = "agent://rover-hmac";

test("a replica takes over that lacks a release: whose key was revoked gets nothing, and the agent is stale again by the first message", async () => {
  const carrier = await relay.online(pod, "kept-hmac");
  const sender = await relay.online(pod, "sender-hmac");
  expect(await carrier.ask(relay.envelope("rover-hmac", "agent.register"))).toMatchObject({ frame: "ack" });
  const primary = await relay.cluster.primaryOf(partitionKeys.window(partitionOf(ROVER, PARTITIONS)));
  const replica = await relay.cluster.replicaOf(primary);
  await relay.cluster.untilReceived(primary, replica);
  await relay.cluster.beginLag(primary, replica);

  await relay.writeKeys(withoutRover(relay.keys.file));
  await carrier.next("the release", ({ notice, agent_id }) => notice === "released" && agent_id === ROVER);
  await until("the agent is stale", async () => (await statusOf()) === "stale");
  await relay.cluster.kill(primary);
  await relay.cluster.resume(replica);
  await relay.cluster.untilPrimary(replica);

  await until("the route that came back is believed", async () => (await statusOf()) === "online");
  await until("the agent is stale", async () => (await statusOf()) === "stale");
  const own = message("agent://kept-hmac");
  await until("the connection is reached", async () => (await sender.ask(own)).accepted === true);
  await carrier.delivered(own.id);
  expect(carrier.deliveries.filter(({ envelope }) => envelope.to === ROVER)).toEqual([]);

  async function statusOf(): Promise<string | undefined> {
    return (await sender.ask(message(ROVER))).target_delivery?.status;
  }
});

function message(to: string): Frame {
  return relay.envelope("sender-hmac", "message.send", { to, payload: { message: "hi" } });
}

function withoutRover(file: object): object {
  const { signing_keys, ...rest } = file as { signing_keys: { agents: string[] }[] };
  return { ...rest, signing_keys: signing_keys.filter(({ agents }) => !agents.includes(ROVER)) };
}
