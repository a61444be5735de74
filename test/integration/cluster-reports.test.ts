import { expect, test } from "@jest/globals";
import { SURFACES } from "protocol/contract/surfaces.ts";
import { CONTROL_SLOT, slotOfPartition } from "window/redis/partitions.ts";
import { ClusterRelay, PARTITIONS } from "../cluster/support/cluster-relay.ts";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/until.ts";
import { given, use } from "../support/use-relay.ts";

const ALL = Array.from({ length: PARTITIONS }, (_, p) => p);
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
const relay = use(new ClusterRelay("alice"));
const gateway = given(() => relay.startGateway());
const reports = given(() => relay.startOpsReporting());
const http = new HttpClient();
const { cluster } = relay;

const ask = async (path: string) => await http.get(reports.url + path);

test("every report of a whole cluster is complete", async () => {
  expect((await http.get(`${gateway.url}/health`)).status).toBe(200);
  for (const path of REPORTS) {
    await until(`${path} is there`, async () => (await ask(path)).status === 200);
    const { body } = await ask(path);
    expect(body).toMatchObject({ complete: true, may_lack_since: null });
    expect(body.partitions).toEqual({ total: PARTITIONS, missing: [], may_lack: [], control_may_lack: false });
  }
});

test("without the control slot reports are unavailable, and there again with it", async () => {
  const primary = await cluster.primaryOf(CONTROL_SLOT);
  const nodes = [await cluster.replicaOf(primary), primary];
  for (const node of nodes) await cluster.pause(node);
  try {
    await until("reports are refused", async () => (await ask(REPORTS[0] as string)).status === 503);
    expect((await ask(REPORTS[1] as string)).body).toMatchObject({ code: "unavailable" });
  } finally {
    for (const node of nodes.reverse()) await cluster.resume(node);
  }
  await until("reports are back", async () => (await ask(REPORTS[0] as string)).status === 200);
});

test("while a shard is lost every report comes from the others and names what is missing, and guides go on", async () => {
  const control = await cluster.primaryOf(CONTROL_SLOT);
  const owners = await Promise.all(ALL.map((p) => cluster.primaryOf(slotOfPartition(p))));
  const lost = owners.find((owner) => owner !== control) as typeof control;
  const missing = ALL.filter((p) => owners[p] === lost);
  await cluster.kill(await cluster.replicaOf(lost));
  await cluster.kill(lost);
  await cluster.untilGivenUp(lost);
  for (const path of REPORTS) {
    await until(`${path} is there`, async () => (await ask(path)).status === 200);
    const { body } = await ask(path);
    expect(body).toMatchObject({ complete: false, may_lack_since: expect.any(Number) });
    expect(body.partitions).toMatchObject({ total: PARTITIONS, missing });
  }
  expect((await ask(SURFACES.activationPlan.path)).status).toBe(200);
});
