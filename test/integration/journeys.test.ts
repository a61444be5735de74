import { expect, test } from "@jest/globals";
import type { Frame } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

const SETTINGS = { RELAY_TRUSTED_PROXY_HOPS: "1", RELAY_BASE_URL: "https://relay.example" };
const relay = useRelay("alice-hmac");
const gateway = given(() => relay.startGateway(SETTINGS));
const reporting = given(() => relay.startOpsReporting(SETTINGS));

/** A visitor whom the trusted proxy saw at an address. */
const visitorAt = (address: string, userAgent: string) =>
  new HttpClient({ "x-forwarded-for": address, "user-agent": userAgent });
const operator = visitorAt("203.0.113.1", "operator");

async function readJourneys(): Promise<Frame> {
  return (await operator.get(`${reporting.url}/api/ops/session-journeys`)).body;
}

/** The journeys but the operator's own, once they hold so many actions. */
async function journeysOf(actions: number): Promise<Frame[]> {
  let journeys: Frame[] = [];
  await until(`${actions} actions are written`, async () => {
    journeys = (await readJourneys()).journeys.filter(
      (journey: Frame) => journey.actions[0].action !== "sessionJourneys",
    );
    return journeys.reduce((sum, journey) => sum + journey.event_count, 0) >= actions;
  });
  return journeys;
}

test("a journey leads over both services, through views and posts that were answered well, and nothing else", async () => {
  const alice = visitorAt("203.0.113.7", "alice/1.0");
  const key = relay.credentials("alice-hmac");
  const request = { from: "agent://alice-hmac", to: "agent://bob", purpose: "talk" };
  const send = { from: "agent://alice-hmac", to: "agent://bob", message: "hi" };
  const envelope = relay.envelope("alice-hmac", "agent.register");

  expect((await alice.get(`${reporting.url}/api/ops/traffic-summary`)).status).toBe(200);
  for (const path of ["/health", "/ready"]) await alice.get(gateway.url + path);
  await fetch(`${gateway.url}/api/self-test`, { method: "HEAD", headers: { "x-forwarded-for": "203.0.113.7" } });
  expect((await alice.get(`${gateway.url}/api/onboarding/check-online`)).status).toBe(400);
  expect((await alice.post(`${gateway.url}/v1/messages/send`, send)).status).toBe(401);
  expect((await alice.post(`${gateway.url}/api/self-test`, { ...envelope, sig: "A".repeat(43) })).status).toBe(400);
  await journeysOf(1);
  expect((await alice.post(`${gateway.url}/api/self-test`, envelope)).status).toBe(200);
  expect((await alice.post(`${gateway.url}/v1/messages/send`, send, key)).status).toBe(202);
  expect((await alice.post(`${gateway.url}/v1/sessions/request`, request, key)).status).toBe(202);
  expect((await alice.post(`${gateway.url}/api/feedback`, { sentiment: "helpful" })).status).toBe(202);

  const [journey, ...others] = await journeysOf(5);
  expect(others).toEqual([]);
  expect(journey?.actions.map(({ action }: Frame) => action)).toEqual([
    "trafficDaily",
    "selfTest",
    "sendMessage",
    "requestSession",
    "submitFeedback",
  ]);
  expect(journey?.drop_off).toBeNull();
});

test("visitors are told apart by the address that the trusted proxy saw and by user agent, and no more", async () => {
  const before = await journeysOf(5);
  for (const [address, userAgent] of [
    ["203.0.113.8", "agent/1.0"],
    ["203.0.113.8", "agent/2.0"],
    ["203.0.113.9", "agent/1.0"],
    ["198.51.100.1, 203.0.113.9", "agent/1.0"],
  ] as const) {
    await visitorAt(address, userAgent).get(`${gateway.url}/api/self-test`);
  }
  const journeys = await journeysOf(9);
  expect(journeys.length - before.length).toBe(3);
  expect(
    journeys
      .slice(0, 3)
      .map(({ event_count }) => event_count)
      .sort(),
  ).toEqual([1, 1, 2]);
});

test("the report names no visitor, not even by the hash, and links by its settings", async () => {
  await until("journeys are written", async () => (await readJourneys()).totals.journeys > 4);
  const answer = JSON.stringify(await readJourneys());
  const view = relay.view();
  const ids = await view.client.hkeys((await view.wholeKeys()).journeys);
  expect(ids.length).toBeGreaterThan(4);
  for (const secret of [...ids, "203.0.113", "alice/1.0", "agent/1.0", "127.0.0.1"]) {
    expect(answer).not.toContain(secret);
  }
  expect(answer).toContain("https://relay.example/v1/sessions/request");
});

test("whatever is sent, 200 journeys of 50 actions are kept", async () => {
  for (let page = 0; page < 10; page += 1) {
    const requests = Array.from({ length: 40 }, (_, n) => {
      const who = page % 2 === 0 ? `crowd-${page}-${n}` : "one";
      const path = n % 3 === 0 ? `/sessions/${who}` : "/api/self-test";
      return visitorAt("203.0.113.10", who).get(`${gateway.url}${path}?${who}`);
    });
    await Promise.all(requests);
  }
  const view = relay.view();
  const { journeys } = await view.wholeKeys();
  const full = async () => (await view.client.hvals(journeys)).some((text) => text.split(" ").length === 54);
  await until("the journey of the one is full", full);
  const texts = await view.client.hvals(journeys);
  expect(texts.length).toBeLessThanOrEqual(200);
  for (const text of texts) expect(text).toMatch(/^\d{13} \d{13} \d+ \d+( [A-Za-z]+@\d{13}){1,50}$/);
  expect((await readJourneys()).bounds).toEqual({ max_journeys: 200, max_actions_per_journey: 50 });
});

test("domain-routing tells of this request what a trusted proxy says, and keeps nothing of it", async () => {
  const headers = { "x-forwarded-host": "evil.test, old.example", "x-forwarded-proto": "https" };
  const answer = await new HttpClient(headers).get(`${reporting.url}/api/ops/domain-routing`);
  expect(answer.body.observed).toMatchObject({
    host: `127.0.0.1:${reporting.port}`,
    proxy_origin: "https://old.example",
  });
  expect(answer.body.host_matches_expected).toBe(false);
  const { body } = await new HttpClient().get(`${reporting.url}/api/ops/domain-routing`);
  expect(JSON.stringify(body)).not.toMatch(/old\.example|evil/);
  expect(relay.log.join("\n")).not.toMatch(/old\.example|evil/);
});

test("diagnostics tells of the gateway that is listed, under both of its paths", async () => {
  for (const path of ["/api/diagnostics", "/api/ops/diagnostics"]) {
    const { body } = await operator.get(reporting.url + path);
    expect(body).toMatchObject({ gateways: { live: 1 }, current_bottleneck: expect.stringMatching(/^(?!no_gateway)/) });
    expect(body.published_envelopes_last_5_minutes).toBe(2);
  }
});
