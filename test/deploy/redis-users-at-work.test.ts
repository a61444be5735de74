import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { SURFACES, type SurfaceId } from "relay-protocol/contract/surfaces.ts";
import { Counters } from "relay-window/counters/counters.ts";
import { PresenceStore } from "relay-window/presence/presence.ts";
import { ProcessWindow } from "relay-window/window/process-window.ts";
import { AdminClient } from "../support/admin.ts";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { GuardedRelay } from "../support/guarded-redis.ts";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/until.ts";
import { given, use } from "../support/use-relay.ts";
import { readingWindow } from "../support/window-view.ts";

const PARTITIONS = 4;
/** They lie in every partition. */
const NAMES = ["ada", "berta", "carl", "dora", "emil", "frida", "gustav", "zoe"].map((name) => `${name}-hmac`);
const [ADA, BERTA] = NAMES as [string, string];
const SETTINGS = { RELAY_PARTITIONS: String(PARTITIONS), RELAY_BASE_URL: "https://relay.example" };
const relay = use(new GuardedRelay(...NAMES));
const http = new HttpClient();
const view = given(() => relay.view(PARTITIONS));
beforeAll(() => logRefusals());
const admin = given(() => AdminClient.make(`${relay.keysFile}.admin`));
const pods = given(
  async () =>
    [await relay.startWsConnector({ ...SETTINGS, ...admin.settings }), await relay.startWsConnector(SETTINGS)] as const,
);
const gateway = given(() => relay.startGateway(SETTINGS));
const reporting = given(() => relay.startOpsReporting(SETTINGS));
let agents: Map<string, AgentSocket>;

beforeEach(async () => {
  agents = await relay.allOnline(pods, NAMES);
});
/** Whatever was done, Redis refused nobody anything, and no service had reason to say so. */
afterEach(async () => {
  expect(await view.client.call("ACL", "LOG")).toEqual([]);
  expect(relay.log.filter((line) => /NOPERM|permission|user executing the script/.test(line))).toEqual([]);
});

test("agents of every partition reach each other over two pods, and are present until they leave", async () => {
  expect(new Set(NAMES.map((name) => view.partition(name))).size).toBe(PARTITIONS);
  await expectMessagesFlow();
  for (const name of NAMES) {
    expect(await socketOf(name).ask(relay.envelope(name, "agent.heartbeat"))).toMatchObject({ frame: "ack" });
    await socketOf(name).close();
    await until(`${name} is released`, async () => !(await view.isConnected(name)));
  }
});

test("a pod tells its operator of all agents, and has those of another pod disconnected", async () => {
  expect(await admin.get("/admin/counts")).toMatchObject({ status: 200, body: { agents: { online: NAMES.length } } });
  for (const name of NAMES) {
    const { key_id } = relay.envelope(name, "agent.heartbeat");
    const { body } = await admin.get(`/admin/agents?key=${key_id}`);
    expect(body.agents).toMatchObject([{ agent: `agent://${name}`, presence: "online" }]);
    expect(await admin.disconnect(`agent://${name}`)).toMatchObject({ status: 200 });
    expect(await socketOf(name).untilClosed()).toBe(1001);
    await until(`${name} is released`, async () => !(await view.isConnected(name)));
  }
});

test("sessions are requested, approved and looked up, and one that waits is told to its target", async () => {
  for (const target of NAMES.slice(1)) {
    const { session_id } = await socketOf(ADA).ask(sessionRequest(target));
    const decision = { to: `agent://${ADA}`, payload: { session_id } };
    const approval = relay.envelope(target, "session.approve", decision);
    expect(await socketOf(target).ask(approval)).toMatchObject({ session_status: "approved" });
    await socketOf(ADA).delivered(approval.id);
    const { body } = await http.get(`${gateway.url}/sessions/${session_id}`);
    expect(body).toMatchObject({ status: "approved", target: `agent://${target}` });
  }
  const request = sessionRequest(BERTA);
  const { session_id } = await socketOf(ADA).ask(request);
  expect(await socketOf(ADA).ask(request)).toMatchObject({ duplicate: true, session_id });
  const back = await relay.online(pods[0], BERTA);
  await back.next("pending sessions", ({ notice }) => notice === "pending_sessions");
});

test("the gateway sends, requests sessions, claims, limits, counts feedback and answers what it is asked", async () => {
  const key = { ...relay.credentials(ADA), "idempotency-key": "once" };
  for (const target of NAMES.slice(1)) {
    const body = { from: `agent://${ADA}`, to: `agent://${target}` };
    const claimed = { ...key, "idempotency-key": target };
    const sent = await http.post(`${gateway.url}/v1/messages/send`, { ...body, message: "hi" }, claimed);
    await socketOf(target).delivered(sent.body.envelope_id);
    const again = await http.post(`${gateway.url}/v1/messages/send`, { ...body, message: "hi" }, claimed);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    const session = await http.post(`${gateway.url}/v1/sessions/request`, { ...body, purpose: "talk" }, claimed);
    expect(session.status).toBe(202);
    const presence = await http.get(`${gateway.url}/api/onboarding/check-online?agent_id=agent://${target}`);
    expect(presence.body).toMatchObject({ status: "online" });
  }
  expect((await http.post(`${gateway.url}/v1/messages/send`, {}, { "x-api-key": "rk_wrong" })).status).toBe(401);
  expect((await http.post(`${gateway.url}/api/public/feedback`, { sentiment: "helpful" })).status).toBe(202);
  expect((await http.post(`${gateway.url}/api/self-test`, relay.envelope(ADA, "agent.register"))).status).toBe(200);
  expect((await http.get(`${gateway.url}/.well-known/signing-manifest.json`)).body.gateway_keys).toHaveLength(1);
  expect((await http.get(`${gateway.url}/api/onboarding/online-agents`)).status).toBe(200);

  const limited = async () => (await http.post(`${gateway.url}/v1/messages/send`, {}, key)).status === 429;
  await until("the rate limit is met", limited);
});

test("every report is made, and what was viewed is counted, journeys and visitors included", async () => {
  const reports = (Object.keys(SURFACES) as SurfaceId[]).filter((id) => SURFACES[id].service === "ops-reporting");
  expect(reports.length).toBeGreaterThan(10);
  for (const id of reports) expect((await http.get(reporting.url + SURFACES[id].path)).status).toBe(200);
  const target = `?target_agent_id=agent://${BERTA}&session_id=${(await socketOf(ADA).ask(sessionRequest(BERTA))).session_id}`;
  const gate = await http.get(reporting.url + SURFACES.marketplaceHandoffStatus.path + target);
  expect(gate.body).toMatchObject({ scope: "target", proof_freshness: "fresh", target_decision: "pending" });
  for (const path of ["/health", "/ready"]) {
    for (const { url } of [gateway, reporting, ...pods]) expect((await http.get(url + path)).status).toBe(200);
  }
  await until("the views are counted", async () => {
    const { body } = await http.get(`${reporting.url}/api/ops/session-journeys`);
    return JSON.stringify(body.journeys).includes("trafficDaily");
  });
  expect(await view.client.pfcount((await view.wholeKeys()).visitors)).toBeGreaterThan(0);
});

test("the work that is seldom done is done too: journeys give way, agents unseen for a day are forgotten", async () => {
  for (const user of ["gateway", "ops-reporting"] as const) {
    const link = await relay.link(user);
    const window = new ProcessWindow({ link, partitions: PARTITIONS, deployId: null, logger: relay.logger(user) });
    const counters = new Counters({ link, window });
    await window.adoptOpenWindow();
    for (let half = 0; half < 2; half += 1) {
      for (let n = 0; n < 150; n += 1) counters.view("trafficDaily", `${user}-visitor-${half}-${n}`);
      await counters.flush();
    }
  }
  expect(await view.client.hlen((await view.wholeKeys()).journeys)).toBe(200);

  const link = await relay.link("ws-connector");
  const window = readingWindow(link, PARTITIONS);
  const presenceStore = new PresenceStore({ link, window, offlineAfterMs: 300_000 });
  await view.client.zadd((await view.keys(3)).presence, 1, "agent://forgotten");
  await presenceStore.prune();
  expect(await view.client.zscore((await view.keys(3)).presence, "agent://forgotten")).toBeNull();
});

test("a reset opens a new window in all partitions, and the services go on in it", async () => {
  const last = await view.windowId();
  const { stdout } = await promisify(execFile)(process.execPath, ["deploy/redis/window-reset.ts"], {
    env: { ...SETTINGS, REDIS_URL: relay.redis.urlFor("window-reset"), RELAY_DEPLOY_ID: "next" },
  });
  expect(stdout).toMatch(/^window opened: win_/);
  await expectNewWindow(last);
});

test("a Redis that was emptied, or that lost its scripts or its life, is a new window that the services open", async () => {
  for (const befall of [
    () => view.client.flushall(),
    () => view.client.multi().flushall().script("FLUSH").exec(),
    () => relay.redis.restart(),
  ]) {
    const last = await view.windowId();
    await befall();
    await until("the view is back", async () => (await view.client.ping().catch(() => "")) === "PONG");
    await logRefusals();
    await expectNewWindow(last);
  }
});

test("a pod that stops releases its agents, and one that dies is found out by the next message", async () => {
  const pod = await relay.startWsConnector(SETTINGS);
  await relay.online(pod, BERTA);
  await pod.stop();
  expect(await view.isConnected(BERTA)).toBe(false);

  const doomed = await relay.startWsConnectorProcess(SETTINGS);
  for (const name of NAMES.slice(1)) await relay.online(doomed, name);
  await view.kill(doomed);
  for (const name of NAMES.slice(1)) {
    const lost = await socketOf(ADA).ask(message(ADA, name));
    expect(lost).toMatchObject({ target_delivery: { status: "stale" } });
  }
  await until("its leases are over", async () => {
    for (const name of NAMES.slice(1)) await socketOf(ADA).ask(message(ADA, name));
    const routes = await Promise.all(NAMES.slice(1).map((name) => view.route(name)));
    return routes.every((route) => route === null);
  });
});

/** As deployed, Redis keeps no log of what it refused. */
async function logRefusals(): Promise<void> {
  await view.client.config("SET", "acllog-max-len", 128);
}

async function expectNewWindow(last: string | null): Promise<void> {
  await until("every agent is present again", async () => {
    const acks = NAMES.map((name) => socketOf(name).ask(relay.envelope(name, "agent.heartbeat")));
    return (await Promise.all(acks)).every(({ presence }) => presence?.status === "online");
  });
  await until("the gateway and the reports are back", async () => {
    const ready = [gateway, reporting].map(({ url }) => http.get(`${url}/ready`));
    return (await Promise.all(ready)).every(({ status }) => status === 200);
  });
  const ids = await Promise.all(Array.from({ length: PARTITIONS }, (_, p) => view.windowId(p)));
  expect(new Set(ids).size).toBe(1);
  expect(ids).not.toContain(last);
  await expectMessagesFlow();
}

async function expectMessagesFlow(): Promise<void> {
  for (const [n, from] of NAMES.entries()) {
    const to = NAMES[(n + 1) % NAMES.length] as string;
    const envelope = message(from, to);
    expect(await socketOf(from).ask(envelope)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
    await socketOf(to).delivered(envelope.id);
  }
}

function socketOf(name: string): AgentSocket {
  return agents.get(name) as AgentSocket;
}

function message(from: string, to: string): Frame {
  return relay.envelope(from, "message.send", { to: `agent://${to}`, payload: { message: "hi" } });
}

function sessionRequest(target: string): Frame {
  return relay.envelope(ADA, "session.request", { to: `agent://${target}`, payload: { purpose: "talk" } });
}
