import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { OnlineAgents } from "relay-protocol/contract/responses.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { createLogger } from "relay-runtime/logging.ts";
import { CONTROL_SLOT, everyPartition, partitionOf, slotOfPartition } from "relay-window/redis/partitions.ts";
import { Shell } from "../../connector/test/cli/shell.ts";
import type { ClusterNode } from "../../deploy/local/cluster-node.ts";
import { startRelay } from "../../deploy/local/relay.ts";
import { ClusterRelay, PARTITIONS } from "../cluster/support/cluster-relay.ts";
import type { AgentSocket } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import type { Pod } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { given, giveUpCalls, use } from "../support/use-relay.ts";

/** What goes on while a shard is lost, and who is told, by a relay as `npm run start:cluster` runs it. */

const NAMES = Array.from({ length: 8 }, (_, n) => `a${n}-hmac`);
/** They come when a shard is lost. */
const LATE = Array.from({ length: 4 }, (_, n) => `late${n}-hmac`);
const relay = use(new ClusterRelay(...NAMES, ...LATE));
giveUpCalls();
const shell = use(new Shell());
const http = new HttpClient();
const log: string[] = [];
const whole = given(async () => {
  const logger = createLogger({ service: "agent-relay", level: "warn" }, { write: (line) => void log.push(line) });
  const started = await startRelay({ environment: relay.environment, logger, cluster: true });
  relay.defer(() => started.stop());
  return started;
});

const agentOf = (name: string) => `agent://${name}`;
const ready = async () => await readinessOf(whole);

const sockets = given(() => relay.allOnline([whole], NAMES));
/** The shard that is lost. It does not have the control slot. */
const shard = given(async () => {
  const control = await relay.cluster.primaryOf(CONTROL_SLOT);
  const owners = await Promise.all(everyPartition(PARTITIONS).map((p) => relay.cluster.primaryOf(slotOfPartition(p))));
  const lost = owners.find((owner) => owner !== control) as typeof control;
  const partitions = everyPartition(PARTITIONS).filter((p) => owners[p] === lost);
  const isLost = (name: string) => partitions.includes(partitionOf(agentOf(name), PARTITIONS));
  return {
    nodes: [lost, await relay.cluster.replicaOf(lost)],
    partitions,
    lost: NAMES.filter(isLost),
    living: NAMES.filter((name) => !isLost(name)),
    late: LATE.filter((name) => !isLost(name)),
    there: NAMES.find(isLost) as string,
    elsewhere: NAMES.find((name) => !isLost(name)) as string,
  };
});
const socketOf = (name: string) => sockets.get(name) as AgentSocket;
const heartbeat = async (name: string) => await socketOf(name).ask(relay.envelope(name, "agent.heartbeat"));
/** Sends a message, and has it arrive. */
async function converse(from: string, to: string): Promise<void> {
  const envelope = relay.envelope(from, "message.send", { to: agentOf(to), payload: {} });
  expect(await socketOf(from).ask(envelope)).toMatchObject({ frame: "ack" });
  await socketOf(to).delivered(envelope.id as string);
}
/** Services that start while the shard is lost. */
const started: Pod[] = [];
const readinessOf = async ({ url }: Pod) => (await http.get(`${url}/ready`)).body as Record<string, unknown>;
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
const told: ReturnType<typeof warnings> = [];
/** The warnings about partitions, since the first look. */
const reach = () => {
  told.push(...warnings());
  return told.filter(({ out_of_reach }) => out_of_reach !== undefined);
};
const SERVICES = ["gateway", "ops-reporting", "ws-connector 1", "ws-connector 2"];
const writerOf = ({ link, pod }: { link: string; pod?: string }) => (pod === undefined ? link : `${link} ${pod}`);

const REPORTS = [
  SURFACES.trafficDaily,
  SURFACES.activationFunnel,
  SURFACES.sessionProofRetention,
  SURFACES.economicReadiness,
  SURFACES.sessionJourneys,
  SURFACES.diagnostics,
  SURFACES.restartSurvivalCheck,
  SURFACES.feedbackSummary,
].map(({ path }) => path);
const ask = async (path: string) => await http.get(whole.url + path);

/** Asks for every report, as soon as there is one. */
async function reports() {
  const asked = REPORTS.map(async (path) => {
    await until(`${path} is there`, async () => (await ask(path)).status === 200);
    return (await ask(path)).body;
  });
  return await Promise.all(asked);
}

/** Resolves when the shard that was lost serves again, and the relay knows. */
async function comeBack(): Promise<void> {
  for (const node of shard.nodes) await relay.cluster.resume(node);
  await until("the relay is whole", async () => !("degraded" in (await ready())));
}

test("Every report of a whole cluster is complete", async () => {
  for (const report of await reports()) {
    expect(report).toMatchObject({ complete: true, may_lack_since: null });
    expect(report.partitions).toEqual({ total: PARTITIONS, missing: [], may_lack: [], control_may_lack: false });
  }
});

describe("when a shard is lost", () => {
  beforeAll(async () => {
    expect(warnings().filter(({ link }) => link !== undefined)).toEqual([]);
    for (const node of shard.nodes) await relay.cluster.pause(node);
    await relay.cluster.untilGivenUp(shard.nodes[0] as ClusterNode);
    await until("the relay says so", async () => "unavailable_partitions" in (await ready()));
  });
  afterAll(() => comeBack());

  test("the log tells once, at its default level, of each service and pod, which partitions are lost", async () => {
    await until("all have told of the loss", () => reach().length === SERVICES.length);
    expect(reach().map(writerOf).sort()).toEqual(SERVICES);
    for (const line of reach()) expect(line).toMatchObject({ out_of_reach: shard.partitions, back: [] });
  });

  test("agents of the others go on, services start and serve them, and /ready names the lost partitions", async () => {
    const { partitions, lost, living, late } = shard;
    started.push(...(await Promise.all([relay.startWsConnector(), relay.startGateway()])));
    for (const each of [whole, ...started]) {
      await until("it names them", async () => {
        const { ready, unavailable_partitions: named } = await readinessOf(each);
        return ready === true && isDeepStrictEqual(named, partitions);
      });
    }
    for (const answer of await Promise.all(living.map(heartbeat))) expect(answer).toMatchObject({ frame: "ack" });
    for (const answer of await Promise.all(lost.map(heartbeat))) expect(answer).toMatchObject({ code: "unavailable" });
    await converse(living[0] as string, living[1] as string);
    expect(late.length).toBeGreaterThan(0);
    await relay.allOnline([started[0] as Pod], late);
  });

  test("whoever is refused is told which partition is out of reach, over HTTP and the websocket", async () => {
    const { partitions, there, elsewhere } = shard;
    const own = partitionOf(agentOf(there), PARTITIONS);
    const refused = await heartbeat(there);
    expect(refused).toMatchObject({ code: "unavailable", message: expect.stringContaining(`Partition ${own} of`) });
    const asked = await http.get(`${whole.url}/api/onboarding/check-online?agent_id=${agentOf(there)}`);
    expect(asked).toMatchObject({ status: 503, body: { code: "unavailable", retry: "later" } });
    expect(asked.body).toMatchObject({ detail: expect.stringContaining(`Partition ${own} of`) });

    const { status, body } = await http.get(`${whole.url}/api/onboarding/online-agents`);
    const online_agents = shard.living.length + shard.late.length;
    expect(status).toBe(200);
    expect(OnlineAgents.parse(body)).toMatchObject({
      complete: false,
      unavailable_partitions: partitions,
      online_agents,
    });
    const { stdout } = await shell.run(["status", "--url", whole.url]);
    expect(stdout).toContain("in the part of the relay that is in reach");

    // Each with an API key of its own, whose requests are counted somewhere, some in the lost partitions.
    const send = async (from: string, to: string) => {
      const body = { from: agentOf(from), to: agentOf(to), message: "hi" };
      return await http.post(`${whole.url}/v1/messages/send`, body, relay.credentials(from));
    };
    const toLost = await Promise.all(NAMES.map((name) => send(name, there)));
    const toLiving = await Promise.all(NAMES.map((name) => send(name, elsewhere)));
    for (const { status } of toLost) expect(status).toBe(503);
    for (const { status } of toLiving) expect(status).toBe(202);
    const { message: detail } = refused as { message: string };
    for (const { body } of toLost) expect(body).toMatchObject({ code: "unavailable", detail });
  });

  test("every report comes from the others and names what is missing, and guides go on", async () => {
    for (const report of await reports()) {
      expect(report).toMatchObject({ complete: false, may_lack_since: expect.any(Number) });
      expect(report.partitions).toMatchObject({ total: PARTITIONS, missing: shard.partitions });
    }
    expect((await ask(SURFACES.activationPlan.path)).status).toBe(200);
  });

  test("relay check finds fault for its agents alone, and names the partitions to all", async () => {
    const [lost, living] = [await check(shard.there), await check(shard.elsewhere)];
    expect(lost).toMatchObject({ code: 4, ok: false, steps: { presence: { ok: false, code: "unavailable" } } });
    expect(living).toMatchObject({ code: 0, ok: true, steps: { presence: { ok: true } } });
    for (const { steps } of [lost, living])
      expect(steps.ready?.message).toContain(`partition ${shard.partitions.join(", ")},`);
  });

  describe("and comes back", () => {
    beforeAll(() => comeBack());

    test("all agents are reached, also by what started meanwhile", async () => {
      for (const each of started) await until("it is whole", async () => !("degraded" in (await readinessOf(each))));
      const isHeard = (name: string) => until(`${name} is heard`, async () => (await heartbeat(name)).frame === "ack");
      await Promise.all(shard.lost.map(isHeard));
      await converse(shard.elsewhere, shard.there);
    });

    test("the log tells that all links are up, and clients are told that nothing is missing", async () => {
      const { body } = await http.get(`${whole.url}/api/onboarding/online-agents`);
      expect(OnlineAgents.parse(body)).toMatchObject({
        complete: true,
        online_agents: NAMES.length + shard.late.length,
      });
      expect(body).not.toHaveProperty("unavailable_partitions");
      await until("its presence can be asked for", async () => (await check(shard.there)).ok);
      expect((await check(shard.there)).steps.ready?.message).toBe("it is ready");

      const lastOfEach = () => {
        reach();
        const ofLinks = told.filter(({ msg }) => /^redis link is/.test(msg));
        return new Map(ofLinks.map((line) => [writerOf(line), line.msg as string]));
      };
      expect(lastOfEach().size).toBeGreaterThanOrEqual(SERVICES.length);
      await until("all links are told to be up", () =>
        [...lastOfEach().values()].every((msg) => msg === "redis link is up"),
      );
    });
  });
});

test("Without the control slot reports are unavailable, and there again with it", async () => {
  const primary = await relay.cluster.primaryOf(CONTROL_SLOT);
  const nodes = [await relay.cluster.replicaOf(primary), primary];
  for (const node of nodes) await relay.cluster.pause(node);
  try {
    await until("reports are refused", async () => (await ask(REPORTS[0] as string)).status === 503);
    expect((await ask(REPORTS[1] as string)).body).toMatchObject({ code: "unavailable" });
  } finally {
    for (const node of nodes.reverse()) await relay.cluster.resume(node);
  }
  await until("reports are back", async () => (await ask(REPORTS[0] as string)).status === 200);
});
