import { expect, test } from "@jest/globals";
import { partitionKeys } from "window/redis/keys.ts";
import { partitionOf } from "window/redis/partitions.ts";
import { ClusterRelay, PARTITIONS } from "../cluster/support/cluster-relay.ts";
import type { Frame } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given, use } from "../support/use-relay.ts";

const relay = use(new ClusterRelay("target-hmac", "sender-hmac"));
const pod = given(() => relay.startWsConnector());
const TARGET = "agent://target-hmac";

test("a replica takes over that has forgotten what was accepted: sent again it is accepted again, and its pod delivers it no second time", async () => {
  const target = await relay.online(pod, "target-hmac");
  const sender = await relay.online(pod, "sender-hmac");
  const primary = await relay.cluster.primaryOf(partitionKeys.window(partitionOf(TARGET, PARTITIONS)));
  const replica = await relay.cluster.replicaOf(primary);
  await relay.cluster.untilReceived(primary, replica);
  await relay.cluster.beginLag(primary, replica);

  const envelope = message();
  expect(await sender.ask(envelope)).toMatchObject({ accepted: true, target_delivery: { can_deliver_realtime: true } });
  await target.delivered(envelope.id);
  await relay.cluster.kill(primary);
  await relay.cluster.resume(replica);
  await relay.cluster.untilPrimary(replica);

  await until("the target is reached", async () => {
    const later = message();
    const { target_delivery } = await sender.ask(later);
    return target_delivery?.can_deliver_realtime && (await target.delivered(later.id));
  });
  const again = await sender.ask(envelope);
  expect(again).toMatchObject({ accepted: true, target_delivery: { can_deliver_realtime: true } });
  expect(again.duplicate).not.toBe(true);
  const last = message();
  await sender.ask(last);
  await target.delivered(last.id);
  expect(target.deliveries.filter(({ envelope: { id } }) => id === envelope.id)).toHaveLength(1);
});

function message(): Frame {
  return relay.envelope("sender-hmac", "message.send", { to: TARGET, payload: { message: "hi" } });
}
