import { isDeepStrictEqual } from "node:util";
import { expect, test } from "@jest/globals";
import { REPORT_LIMITS } from "protocol/contract/limits.ts";
import type { Frame } from "../support/agent.ts";
import { type Answer, HttpClient } from "../support/http.ts";
import { ownTime } from "../support/own-time.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

const relay = useRelay("alice-hmac", "bob-hmac");
const http = new HttpClient();
/** The paths of the reports that were read. */
const reportsRead: string[] = [];
const pod = given(() => relay.startWsConnector());
const gateway = given(() => relay.startGateway());
const reporting = given(() => relay.startOpsReporting());
const view = given(() => relay.view());
const alice = given(() => relay.online(pod, "alice-hmac"));
const bob = given(() => relay.online(pod, "bob-hmac"));

test("after a mix of requests the totals are exact", async () => {
  await sendOverWebsocket();
  await sendThroughGateway();
  await viewSurfaces();

  const counts = {
    surface_views: 13,
    onboarding_checks: 5,
    websocket_accepted: 10,
    published_envelopes: 6 + 12,
    simple_send_accepted: 7,
    simple_session_request_accepted: 5,
    feedback_total: 3,
  };
  const selfTestsPassed = 2;
  const expected = {
    ...counts,
    total_events: Object.values(counts).reduce((sum, n) => sum + n, selfTestsPassed),
    simple_session_request_accepted_to_online_target: 3,
    simple_session_request_accepted_to_offline_target: 2,
  };
  let totals: object = {};
  const asExpected = async () => {
    totals = await readTotals();
    return JSON.stringify(sorted(totals)) === JSON.stringify(sorted(expected));
  };
  await until("the totals are exact", asExpected).catch(() => {});
  expect(totals).toEqual(expected);
});

/** What a report counts of messages, which Redis counts with them, and of checks of presence, which a gateway gathers. */
const COUNTED: readonly [string, (report: Frame) => number[]][] = [
  ["/api/ops/traffic-daily", ({ totals }) => [totals.published_envelopes, totals.onboarding_checks]],
  ["/api/diagnostics", ({ counters }) => [counters.published_envelopes, counters.onboarding_checks]],
  [
    "/api/ops/activation-funnel",
    ({ stages }) => [stages.find(({ stage }: Frame) => stage === "message_delivery").count],
  ],
];

test.each(COUNTED)("what was acknowledged is in %s within half a second", async (path, countedIn) => {
  const counted = async () => countedIn((await readReport(path)).body);
  for (let n = 0; n < 2; n += 1) {
    const next = (await counted()).map((count) => count + 1);
    await alice.ask(from("alice-hmac", "message.send", { to: "agent://bob-hmac" }));
    await http.get(`${gateway.url}/api/onboarding/check-online?agent_id=agent://bob-hmac`);
    const isCounted = until("both are counted", async () => isDeepStrictEqual(await counted(), next));
    expect(await Promise.race([isCounted, ownTime(REPORT_LIMITS.maxBehindMs)])).not.toBe("late");
  }
});

test("an alias counts under the name of its main surface", async () => {
  for (const path of ["/api/ops/traffic-summary", "/api/ops/traffic-daily"]) await readReport(path);
  const readings = reportsRead.filter((path) => path.startsWith("/api/ops/traffic-")).length;
  const counted = async () => Number(await view.client.hget((await view.wholeKeys()).surfaces, "trafficDaily"));
  await until("every reading is counted", async () => (await counted()) === readings);
  const surfaces = await view.client.hkeys((await view.wholeKeys()).surfaces);
  expect(surfaces.sort()).toEqual([
    ...["activationFunnel", "checkOnline", "diagnostics", "onlineAgents"],
    ...["readSession", "selfTestGuide", "signingManifest", "trafficDaily"],
  ]);
});

test("what a gateway counted is written when it stops", async () => {
  const leaving = await relay.startGateway();
  const before = await view.client.hget((await view.wholeKeys()).surfaces, "onlineAgents");
  await Promise.all(Array.from({ length: 20 }, () => http.get(`${leaving.url}/api/onboarding/online-agents`)));
  await leaving.stop();
  expect(Number(await view.client.hget((await view.wholeKeys()).surfaces, "onlineAgents"))).toBe(Number(before) + 20);
});

/** 2 registers were accepted before; here 8 more envelopes, 6 of them published. */
async function sendOverWebsocket(): Promise<void> {
  const messages = [1, 2, 3].map((n) => from("alice-hmac", "message.send", { to: "agent://bob-hmac", payload: { n } }));
  for (const message of [...messages, messages[0]]) await alice.ask(message);
  await alice.ask({ ...from("alice-hmac", "message.send", { to: "agent://bob-hmac" }), sig: "A".repeat(43) });
  await bob.ask(from("alice-hmac", "message.send", { to: "agent://bob-hmac" }));

  const request = { to: "agent://bob-hmac", payload: { purpose: "talk" } };
  const { session_id } = await alice.ask(from("alice-hmac", "session.request", request));
  await alice.ask(from("alice-hmac", "session.request", { ...request, to: "agent://absent" }));
  const approval = { to: "agent://alice-hmac", payload: { session_id } };
  await bob.ask(from("bob-hmac", "session.approve", approval));
  expect(await bob.ask(from("bob-hmac", "session.approve", approval))).toMatchObject({ code: "session_closed" });

  const heartbeat = from("bob-hmac", "agent.heartbeat");
  for (const beat of [heartbeat, heartbeat, from("alice-hmac", "agent.heartbeat")]) await bob.ask(beat);
  await alice.ask(from("alice-hmac", "agent.heartbeat"));
}

/** 7 sends and 5 session requests, 3 of them to an agent that is online. */
async function sendThroughGateway(): Promise<void> {
  const key = relay.credentials("alice-hmac");
  const send = (body: object, headers: Record<string, string> = key) =>
    http.post(`${gateway.url}/v1/messages/send`, { from: "agent://alice-hmac", message: "hi", ...body }, headers);
  const request = (body: object) =>
    http.post(`${gateway.url}/v1/sessions/request`, { from: "agent://alice-hmac", purpose: "talk", ...body }, key);
  const [online, absent] = [{ to: "agent://bob-hmac" }, { to: "agent://absent" }];

  for (const to of [online, online, online, online, absent, absent]) expect((await send(to)).status).toBe(202);
  for (let n = 0; n < 2; n += 1) {
    expect((await send(online, { ...key, "idempotency-key": "once" })).status).toBe(202);
  }
  expect((await send(online, {})).status).toBe(401);
  expect((await send({ ...online, unknown: 1 })).status).toBe(400);
  expect((await send({ ...online, from: "agent://bob-hmac" })).status).toBe(401);
  for (const to of [online, online, online, absent, absent]) expect((await request(to)).status).toBe(202);
  expect((await request({ ...online, ttl_minutes: 1 })).status).toBe(400);
}

/** 13 views, 5 of them checks of presence; 2 self-tests passed and 3 feedbacks. */
async function viewSurfaces(): Promise<void> {
  const get = (path: string) => http.get(gateway.url + path).then(({ status }) => status);
  const post = (path: string, body: unknown) => http.post(gateway.url + path, body).then(({ status }) => status);
  for (const name of ["alice-hmac", "bob-hmac", "absent", "bob-hmac", "bob-hmac"]) {
    expect(await get(`/api/onboarding/check-online?agent_id=agent://${name}`)).toBe(200);
  }
  expect(await get("/api/onboarding/check-online")).toBe(400);
  for (let n = 0; n < 3; n += 1) expect(await get("/api/self-test")).toBe(200);
  for (let n = 0; n < 2; n += 1) expect(await get("/.well-known/signing-manifest.json")).toBe(200);
  expect(await get("/api/onboarding/online-agents")).toBe(200);
  const { session_id } = alice.frames.find((frame) => frame.session_id !== undefined);
  for (let n = 0; n < 2; n += 1) expect(await get(`/sessions/${session_id}`)).toBe(200);
  expect(await get(`/sessions/ses_${"0".repeat(26)}`)).toBe(404);
  for (const path of ["/nothing", "/api/nothing", "/v1/messages/send/"]) expect(await get(path)).toBe(404);
  expect(await get("/v1/messages/send")).toBe(405);
  for (const path of ["/health", "/health", "/ready"]) expect(await get(path)).toBe(200);

  const envelope = from("alice-hmac", "message.send", { to: "agent://bob-hmac" });
  for (let n = 0; n < 2; n += 1) expect(await post("/api/self-test", envelope)).toBe(200);
  expect(await post("/api/self-test", { ...envelope, sig: "A".repeat(43) })).toBe(400);
  expect(await post("/api/public/feedback", { sentiment: "helpful" })).toBe(202);
  expect(await post("/api/public/feedback", {})).toBe(202);
  expect(await post("/api/feedback", { message: "fine" })).toBe(202);
  expect(await post("/api/feedback", { unknown: 1 })).toBe(400);
}

/** The totals that are exact, less the views that reading them makes. */
async function readTotals(): Promise<object> {
  const { body } = await readReport("/api/ops/traffic-daily");
  const { unique_sessions, surface_views, total_events, ...rest } = body.totals;
  const own = body.top_surfaces.find(({ name }: Frame) => name === "trafficDaily")?.count ?? 0;
  return { ...rest, surface_views: surface_views - own, total_events: total_events - own };
}

async function readReport(path: string): Promise<Answer> {
  reportsRead.push(path);
  return await http.get(reporting.url + path);
}

function sorted(counts: object): [string, unknown][] {
  return Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1));
}

function from(name: string, type: string, fields: object = {}): Frame {
  return relay.envelope(name, type, { ...fields });
}
