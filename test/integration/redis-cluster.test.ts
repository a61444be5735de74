import { expect, test } from "@jest/globals";
import { partitionKeys } from "relay-window/redis/keys.ts";
import { partitionOf } from "relay-window/redis/partitions.ts";
import { ClusterRelay, PARTITIONS } from "../cluster/support/cluster-relay.ts";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/until.ts";
import { given, use } from "../support/use-relay.ts";

const NAMES = Array.from({ length: 16 }, (_, n) => `agent${n}-hmac`);
const relay = use(new ClusterRelay(...NAMES, "rover-hmac"));
const ROVER = "agent://rover-hmac";
const pods = given(async () => [await relay.startWsConnector(), await relay.startWsConnector()] as const);
const gateway = given(() => relay.startGateway());
const otherGateway = given(() => relay.startGateway());
const reports = given(() => relay.startOpsReporting());
const http = new HttpClient();
const agents = given(() => relay.allOnline(pods, NAMES));

test("every agent reaches every other one in order, whichever primaries have them", async () => {
  const pairs = NAMES.flatMap((from) => NAMES.filter((to) => to !== from).map((to) => ({ from, to })));
  for (let n = 0; n < 3; n += 1) {
    for (const { from, to } of pairs) socketOf(from).send(message(from, to, n));
  }
  for (const { from, to } of pairs) {
    await until(`${from} reaches ${to}`, () => receivedFrom(from, to).length === 3);
    expect(receivedFrom(from, to)).toEqual([0, 1, 2]);
  }
});

test("a session is requested over HTTP and decided on a websocket, and a keyed send is done once", async () => {
  const [requester, target] = NAMES as [string, string];
  const headers = { ...relay.credentials(requester), "idempotency-key": "once" };
  const send = () =>
    http.post(`${gateway.url}/v1/messages/send`, { ...ends(requester, target), message: "hi" }, headers);
  const [first, again] = [await send(), await send()];
  expect(first).toMatchObject({ status: 202 });
  expect(again.body).toMatchObject({ envelope_id: first.body.envelope_id });
  const asked = await http.post(
    `${gateway.url}/v1/sessions/request`,
    { ...ends(requester, target), purpose: "talk" },
    relay.credentials(requester),
  );
  const { session_id } = asked.body;
  const decision = relay.envelope(target, "session.approve", { to: `agent://${requester}`, payload: { session_id } });
  expect(await socketOf(target).ask(decision)).toMatchObject({ session_id, session_status: "approved" });
  await socketOf(requester).delivered(decision.id);
});

test("a key has thirty requests a minute over two gateways that are asked at once", async () => {
  const [from, to] = NAMES.slice(2) as [string, string];
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, n) =>
      http.post(
        `${[gateway, otherGateway][n % 2]?.url}/v1/messages/send`,
        { ...ends(from, to), message: "hi" },
        relay.credentials(from),
      ),
    ),
  );
  const statuses = answers.map(({ status }) => status);
  expect(statuses.filter((status) => status === 202)).toHaveLength(30);
  expect(statuses.filter((status) => status === 429)).toHaveLength(30);
});

test("reports add the partitions up", async () => {
  expect((await http.get(`${reports.url}/ready`)).body).toMatchObject({ ready: true, online_agents: NAMES.length });
});

test("while a primary is lost agents of the others go on, and its own once a replica has taken its place", async () => {
  const lost = await relay.cluster.primaryOf(partitionKeys.window(partition(NAMES[0] as string)));
  const owners = await Promise.all(NAMES.map((name) => relay.cluster.primaryOf(partitionKeys.window(partition(name)))));
  const staying = NAMES.filter((_, n) => owners[n] !== lost);
  const [from, to] = staying as [string, string];
  const replica = await relay.cluster.replicaOf(lost);
  await relay.cluster.kill(lost);
  const answers: Frame[] = [];
  const goOn = async (n: number) => {
    answers.push(await socketOf(from).ask(message(from, to, n)));
  };
  await goOn(100);
  await relay.cluster.takeOver(replica);
  await goOn(101);
  expect(answers).toMatchObject(answers.map(() => ({ accepted: true, target_delivery: { status: "online" } })));

  for (const [n, name] of NAMES.entries()) {
    const sender = NAMES[(n + 1) % NAMES.length] as string;
    await until(`${name} is reached again`, async () => {
      const answer = await socketOf(sender).ask(message(sender, name, 200 + n));
      return answer.target_delivery?.can_deliver_realtime === true;
    });
  }
  for (const name of NAMES) {
    const ids = socketOf(name).deliveries.map(({ envelope }) => envelope.id);
    expect(new Set(ids).size).toBe(ids.length);
  }
});

/** From here on the replica of an agent's primary receives nothing. Returns what has it take over. */
async function lagOf(agent: string): Promise<{ readonly takeOver: () => Promise<void> }> {
  const { cluster } = relay;
  await cluster.mend();
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
  const [carrier, sender] = [socketOf(NAMES[0] as string), socketOf(NAMES[1] as string)];
  expect(await carrier.ask(relay.envelope("rover-hmac", "agent.register"))).toMatchObject({ frame: "ack" });
  const { takeOver } = await lagOf(ROVER);
  const statusOf = async () => (await sender.ask(message(NAMES[1] as string, "rover-hmac", 0))).target_delivery?.status;

  const { signing_keys, ...rest } = relay.keys.file as { signing_keys: { agents: string[] }[] };
  await relay.writeKeys({ ...rest, signing_keys: signing_keys.filter(({ agents }) => !agents.includes(ROVER)) });
  await carrier.next("the release", ({ notice, agent_id }) => notice === "released" && agent_id === ROVER);
  await until("the agent is stale", async () => (await statusOf()) === "stale");
  await takeOver();

  await until("the route that came back is believed", async () => (await statusOf()) === "online");
  await until("the agent is stale", async () => (await statusOf()) === "stale");
  const own = message(NAMES[1] as string, NAMES[0] as string, 0);
  await until("the connection is reached", async () => (await sender.ask(own)).accepted === true);
  await carrier.delivered(own.id);
  expect(carrier.deliveries.filter(({ envelope }) => envelope.to === ROVER)).toEqual([]);
});

test("a replica takes over that has forgotten what was accepted: sent again it is accepted again, and its pod delivers it no second time", async () => {
  const [from, to] = NAMES as [string, string];
  const [sender, target] = [socketOf(from), socketOf(to)];
  const { takeOver } = await lagOf(`agent://${to}`);

  const envelope = message(from, to, 300);
  expect(await sender.ask(envelope)).toMatchObject({ accepted: true, target_delivery: { can_deliver_realtime: true } });
  await target.delivered(envelope.id);
  await takeOver();

  await until("the target is reached", async () => {
    const later = message(from, to, 301);
    const { target_delivery } = await sender.ask(later);
    return target_delivery?.can_deliver_realtime && (await target.delivered(later.id));
  });
  const again = await sender.ask(envelope);
  expect(again).toMatchObject({ accepted: true, target_delivery: { can_deliver_realtime: true } });
  expect(again.duplicate).not.toBe(true);
  const last = message(from, to, 302);
  await sender.ask(last);
  await target.delivered(last.id);
  expect(target.deliveries.filter(({ envelope: { id } }) => id === envelope.id)).toHaveLength(1);
});

function partition(name: string): number {
  return partitionOf(`agent://${name}`, PARTITIONS);
}

function ends(from: string, to: string) {
  return { from: `agent://${from}`, to: `agent://${to}` };
}

function socketOf(name: string): AgentSocket {
  return agents.get(name) as AgentSocket;
}

function receivedFrom(from: string, to: string): unknown[] {
  const ofSender = socketOf(to).deliveries.filter(({ envelope }) => envelope.from === `agent://${from}`);
  return ofSender.map(({ envelope }) => envelope.payload.n);
}

function message(from: string, to: string, n: number): Frame {
  return relay.envelope(from, "message.send", { to: `agent://${to}`, payload: { n } });
}
