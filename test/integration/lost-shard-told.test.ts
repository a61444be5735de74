import { afterEach, expect, test } from "@jest/globals";
import { OnlineAgents } from "protocol/contract/responses.ts";
import { createLogger } from "runtime/logging.ts";
import { CONTROL_SLOT, everyPartition, partitionOf, slotOfPartition } from "window/redis/partitions.ts";
import { Shell } from "../../connector/test/cli/shell.ts";
import type { ClusterNode } from "../../deploy/local/cluster-node.ts";
import { startRelay } from "../../deploy/local/relay.ts";
import { ClusterRelay, PARTITIONS } from "../cluster/support/cluster-relay.ts";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/until.ts";
import { given, use } from "../support/use-relay.ts";

/** What an operator and the owner of an agent are told while a shard is lost, by a relay as `npm run start:cluster` runs it. */

const NAMES = Array.from({ length: 8 }, (_, n) => `a${n}-hmac`);
const relay = use(new ClusterRelay(...NAMES));
const shell = use(new Shell());
const http = new HttpClient();
const log: string[] = [];
const whole = given(async () => {
  // Addresses are counted in partitions, too: without the limit only the partition that is asked about matters.
  const environment = { ...relay.environment, RELAY_PUBLIC_REQUESTS_PER_MINUTE: "0" };
  const logger = createLogger({ service: "agent-relay", level: "warn" }, { write: (line) => void log.push(line) });
  const started = await startRelay({ environment, logger, cluster: true });
  relay.defer(() => started.stop());
  return started;
});

const agentOf = (name: string) => `agent://${name}`;
const ready = async () => (await http.get(`${whole.url}/ready`)).body as Record<string, unknown>;

const lostNodes: ClusterNode[] = [];

/** Stops a shard that does not have the control slot. */
async function loseShard() {
  const control = await relay.cluster.primaryOf(CONTROL_SLOT);
  const owners = await Promise.all(everyPartition(PARTITIONS).map((p) => relay.cluster.primaryOf(slotOfPartition(p))));
  const lost = owners.find((owner) => owner !== control) as typeof control;
  const partitions = everyPartition(PARTITIONS).filter((p) => owners[p] === lost);
  const isLost = (name: string) => partitions.includes(partitionOf(agentOf(name), PARTITIONS));
  lostNodes.push(lost, await relay.cluster.replicaOf(lost));
  for (const node of lostNodes) await relay.cluster.pause(node);
  await relay.cluster.untilGivenUp(lost);
  await until("the relay says so", async () => "unavailable_partitions" in (await ready()));
  return {
    partitions,
    there: NAMES.find(isLost) as string,
    elsewhere: NAMES.find((name) => !isLost(name)) as string,
  };
}

/** The shard goes on; after each test in any case. */
async function bringBack(): Promise<void> {
  for (const node of lostNodes.splice(0)) await relay.cluster.resume(node);
  await until("the relay is whole", async () => !("degraded" in (await ready())));
}
afterEach(bringBack);

/** The steps of `relay check`, by their names. */
async function check(name: string) {
  await shell.write(`${name}.json`, relay.keys.keyFiles.get(name) as object);
  const { code, stdout } = await shell.run([
    "check",
    "--json",
    "--key",
    shell.file(`${name}.json`),
    "--url",
    whole.url,
  ]);
  const { ok, steps } = JSON.parse(stdout) as { ok: boolean; steps: { step: string; ok: boolean; message: string }[] };
  return { code, ok, steps: Object.fromEntries(steps.map((step) => [step.step, step])) };
}

/** The warnings since the last look. */
// biome-ignore lint/suspicious/noExplicitAny: lines of the log have no type.
const warnings = (): any[] => log.splice(0).map((line) => JSON.parse(line));
const SERVICES = ["gateway", "ops-reporting", "ws-connector 1", "ws-connector 2"];
const writerOf = ({ link, pod }: { link: string; pod?: string }) => (pod === undefined ? link : `${link} ${pod}`);

test("At its default level the log tells once, of each service and pod, which partitions are lost, that all are back, and that links are", async () => {
  expect(warnings().filter(({ link }) => link !== undefined)).toEqual([]);
  const { partitions } = await loseShard();
  const lines: ReturnType<typeof warnings> = [];
  const reach = () => {
    lines.push(...warnings());
    return lines.filter(({ out_of_reach }) => out_of_reach !== undefined);
  };
  await until("all have told of the loss", () => reach().length === SERVICES.length);
  expect(reach().map(writerOf).sort()).toEqual(SERVICES);
  for (const line of reach()) expect(line).toMatchObject({ out_of_reach: partitions, back: [] });
  await bringBack();
  await until("all have told of the end", () => reach().length === 2 * SERVICES.length);
  const ends = reach().slice(SERVICES.length);
  expect(ends.map(writerOf).sort()).toEqual(SERVICES);
  for (const line of ends) expect(line).toMatchObject({ out_of_reach: [], back: partitions });
  const lastOfEach = () => {
    lines.push(...warnings());
    const ofLinks = lines.filter(({ msg }) => /^redis link is/.test(msg));
    return new Map(ofLinks.map((line) => [writerOf(line), line.msg as string]));
  };
  expect(lastOfEach().size).toBeGreaterThanOrEqual(SERVICES.length);
  await until("all links are told to be up", () =>
    [...lastOfEach().values()].every((msg) => msg === "redis link is up"),
  );
});

test("While a shard is lost who is refused is told which partition is out of reach, over HTTP and the websocket", async () => {
  const sockets = await relay.allOnline([whole], NAMES);
  const { partitions, there, elsewhere } = await loseShard();
  const own = partitionOf(agentOf(there), PARTITIONS);
  const heartbeat = await sockets.get(there)?.ask(relay.envelope(there, "agent.heartbeat"));
  expect(heartbeat).toMatchObject({ code: "unavailable", message: expect.stringContaining(`Partition ${own} of`) });
  const asked = await http.get(`${whole.url}/api/onboarding/check-online?agent_id=${agentOf(there)}`);
  expect(asked).toMatchObject({ status: 503, body: { code: "unavailable", retry: "later" } });
  expect(asked.body).toMatchObject({ detail: expect.stringContaining(`Partition ${own} of`) });

  const { status, body } = await http.get(`${whole.url}/api/onboarding/online-agents`);
  const online_agents = NAMES.filter((name) => !partitions.includes(partitionOf(agentOf(name), PARTITIONS))).length;
  expect(status).toBe(200);
  expect(OnlineAgents.parse(body)).toMatchObject({
    complete: false,
    unavailable_partitions: partitions,
    online_agents,
  });
  const { stdout } = await shell.run(["status", "--url", whole.url]);
  expect(stdout).toContain("in the part of the relay that is in reach");

  // Each with an API key of its own, whose requests are counted somewhere.
  const send = async (from: string, to: string) => {
    const body = { from: agentOf(from), to: agentOf(to), message: "hi" };
    return await http.post(`${whole.url}/v1/messages/send`, body, relay.credentials(from));
  };
  const toLost = await Promise.all(NAMES.map((name) => send(name, there)));
  const toLiving = await Promise.all(NAMES.map((name) => send(name, elsewhere)));
  for (const { status } of toLost) expect(status).toBe(503);
  expect(toLiving.map(({ status }) => status)).toContain(202);
  const refused = [...toLost, ...toLiving].filter(({ status }) => status === 503).map(({ body }) => body);
  for (const { code, detail } of refused as { code: string; detail: string }[]) {
    expect(code).toBe("unavailable");
    expect(partitions).toContain(Number(/^Partition (\d+) of/.exec(detail)?.[1]));
  }
  expect(refused).toContainEqual(expect.objectContaining({ detail: (heartbeat as { message: string }).message }));
  await bringBack();
  const after = await http.get(`${whole.url}/api/onboarding/online-agents`);
  expect(OnlineAgents.parse(after.body)).toMatchObject({ complete: true, online_agents: NAMES.length });
  expect(after.body).not.toHaveProperty("unavailable_partitions");
  for (const socket of sockets.values()) socket.socket.terminate();
});

test("While a shard is lost relay check finds fault for its agents alone, and names the partitions to all", async () => {
  const { partitions, there, elsewhere } = await loseShard();
  const [lost, living] = [await check(there), await check(elsewhere)];
  expect(lost).toMatchObject({ code: 4, ok: false, steps: { presence: { ok: false, code: "unavailable" } } });
  expect(living).toMatchObject({ code: 0, ok: true, steps: { presence: { ok: true } } });
  for (const { steps } of [lost, living]) expect(steps.ready?.message).toContain(`partition ${partitions.join(", ")},`);
  await bringBack();
  await until("its presence can be asked for", async () => (await check(there)).ok);
  expect((await check(there)).steps.ready?.message).toBe("it is ready");
});
