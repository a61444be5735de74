import { SURFACES, type SurfaceId } from "@agent-relay/shared/contract/surfaces.ts";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { HttpClient } from "../support/http.ts";
import { watchLeaks } from "../support/leaks.ts";
import { type Pod, TestRelay } from "../support/relay.ts";

const relay = new TestRelay("alice", "bob");
const noLeaks = watchLeaks();
const http = new HttpClient({ "x-forwarded-host": "forged.example" });
let gateway: Pod;
let reporting: Pod;

beforeAll(async () => {
  await relay.start();
  const links = { RELAY_BASE_URL: "https://relay.example" };
  const pod = await relay.startWsConnector();
  gateway = await relay.startGateway(links);
  reporting = await relay.startOpsReporting(links);
  await relay.online(pod, "bob");
});
afterAll(async () => {
  await relay.stop();
  await noLeaks();
});

const REPORTS = [
  "trafficDaily",
  "activationFunnel",
  "sessionProofRetention",
  "economicReadiness",
  "feedbackSummary",
  "restartSurvivalCheck",
] as const satisfies readonly SurfaceId[];
const PATHS = REPORTS.flatMap((id) => {
  const { path, aliases } = SURFACES[id];
  return [path, ...aliases].map((at) => [at, id] as const);
});

describe.each(["before", "after"])("%s a session request", (when) => {
  beforeAll(async () => {
    if (when === "before") return;
    const key = { "x-api-key": relay.keys.apiKeys.get("alice") as string };
    const request = { from: "agent://alice", to: "agent://bob", purpose: "talk" };
    expect((await http.post(`${gateway.url}/v1/sessions/request`, request, key)).status).toBe(202);
  });

  test.each(PATHS)("GET %s is what the catalogue says of %s", async (path, id) => {
    const { status, body, headers } = await http.get(reporting.url + path);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toMatch(/^application\/json/);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(SURFACES[id].response.parse(body)).toEqual(body);
    expect(body).toMatchObject({ ok: true, privacy: { aggregate_only: true, payloads: false } });
    expect(JSON.stringify(body)).not.toContain("forged.example");
  });
});

test("a request to an online target makes every report say that the proof is fresh", async () => {
  const read = async (id: SurfaceId) => (await http.get(reporting.url + SURFACES[id].path)).body;
  expect((await read("trafficDaily")).session_proof_retention.proof_freshness).toBe("fresh");
  expect((await read("sessionProofRetention")).activation_status).toBe("proof_fresh");
  expect((await read("economicReadiness")).status).toBe("ready_for_negotiation_handoff");
  expect((await read("restartSurvivalCheck")).refresh_gate.proof_freshness).toBe("fresh");
  const { recommended_next_step } = await read("activationFunnel");
  expect(recommended_next_step.url).toBe("https://relay.example/api/public/marketplace-handoff-status");
});

test("the suggested feedback is taken as it stands and leads the recommended actions", async () => {
  const summary = async () => (await http.get(`${reporting.url}/api/ops/feedback`)).body;
  const { submit_endpoint, suggested_blocked_feedback } = await summary();
  expect((await http.post(gateway.url + submit_endpoint, suggested_blocked_feedback)).status).toBe(202);
  for (let n = 0; n < 2; n += 1) {
    await http.post(gateway.url + submit_endpoint, { category: "smoke test", message: "is feedback taken?" });
  }
  const { feedback, feedback_actions } = await summary();
  expect(feedback).toMatchObject({
    total: 3,
    message_provided: 2,
    by_surface: { [suggested_blocked_feedback.surface]: 1, other: 2 },
  });
  expect(feedback_actions).toMatchObject({
    actionable_total: 1,
    smoke_or_deploy_check_total: 2,
    leading_action: { category: suggested_blocked_feedback.category, count: 1 },
  });
});
