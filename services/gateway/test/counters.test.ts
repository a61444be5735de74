import { beforeAll, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { post, useGateway, useGatewayKit } from "./kit.ts";

const kit = useGatewayKit();
const gateway = useGateway(kit);

beforeAll(async () => {
  await kit.online("agent://bob");
});

const get = (path: string, headers = {}, method = "GET") => fetch(gateway.url + path, { headers, method });

test("a known mix of requests gives exactly its counts", async () => {
  const key = { "x-api-key": kit.freshKey() };
  const parties = { from: "agent://alice", to: "agent://bob" };
  const send = (body: object) => post(`${gateway.url}/v1/messages/send`, body, key);
  const request = (to: string) =>
    post(`${gateway.url}/v1/sessions/request`, { ...parties, to, purpose: "to talk" }, key);

  for (let n = 0; n < 3; n += 1) await send({ ...parties, message: "hi" });
  await send({ ...parties });
  await request("agent://bob");
  for (let n = 0; n < 2; n += 1) await request("agent://nobody");
  await post(`${gateway.url}/api/feedback`, { sentiment: "helpful" });

  for (let n = 0; n < 4; n += 1) await get("/api/onboarding/check-online?agent_id=agent://bob");
  await get("/api/onboarding/check-online");
  await get("/api/onboarding/check-online?agent_id=agent://bob", {}, "HEAD");
  await get("/.well-known/signing-manifest.json", { "user-agent": "another visitor" });
  await get("/api/self-test");
  await get("/health");
  await get("/ready");
  await get("/nowhere");
  await until("the counters are written", async () => (await kit.snapshot()).traffic.get("surface_views") === 6);

  const { counters, traffic, surfaces, feedback, visitors } = await kit.snapshot();
  expect(Object.fromEntries(counters)).toEqual({
    websocket_accepted: 1,
    published_envelopes: 6,
    published_to_offline_target: 2,
    simple_send_accepted: 3,
    session_requests: 3,
    session_requests_to_online_target: 1,
    simple_session_request_accepted: 3,
    simple_session_request_accepted_to_online_target: 1,
    simple_session_request_accepted_to_offline_target: 2,
  });
  expect(Object.fromEntries(traffic)).toEqual({ surface_views: 6, onboarding_checks: 4 });
  expect(Object.fromEntries(surfaces)).toEqual({ checkOnline: 4, signingManifest: 1, selfTestGuide: 1 });
  expect(feedback.get("total")).toBe(1);
  expect(visitors).toBe(2);
});

test("a gateway that stops writes what it has counted", async () => {
  const before = (await kit.snapshot()).traffic.get("surface_views") ?? 0;
  const leaving = await kit.gateway();
  await Promise.all(Array.from({ length: 20 }, () => fetch(`${leaving.url}/api/self-test`)));
  await leaving.stop();
  await leaving.stop();
  expect((await kit.snapshot()).traffic.get("surface_views")).toBe(before + 20);
});
