import { beforeAll, describe, expect, test } from "@jest/globals";
import { SURFACES, type SurfaceId } from "protocol/contract/surfaces.ts";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

const SETTINGS = { RELAY_BASE_URL: "https://relay.example" };
const relay = useRelay("alice", "bob");
const http = new HttpClient({ "x-forwarded-host": "forged.example" });
const pod = given(() => relay.startWsConnector());
const gateway = given(() => relay.startGateway(SETTINGS));
const reporting = given(() => relay.startOpsReporting(SETTINGS));
beforeAll(() => relay.online(pod, "bob"));

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
    const key = relay.credentials("alice");
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
  const freshness = async () => (await read("trafficDaily")).session_proof_retention.proof_freshness;
  await until("the proof shows", async () => (await freshness()) === "fresh");
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
  await until("all feedback shows", async () => (await summary()).feedback.total === 3);
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
