import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { SURFACES, type SurfaceId } from "relay-protocol/contract/surfaces.ts";
import { generateApiKey } from "relay-protocol/signing/api-key.ts";
import { SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { makeEd25519Key } from "../../deploy/keys/make.ts";
import { ed25519Key, type Frame, signed } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** What reports tell of what a gateway and a pod did, in this order: of visitors, of a proof, of feedback, of one key's own sessions. */

const SETTINGS = { RELAY_TRUSTED_PROXY_HOPS: "1", RELAY_BASE_URL: "https://relay.example" };
const [A, B] = ["agent://team.a", "agent://team.b"];
const relay = useRelay("alice", "bob");
const team = makeEd25519Key({ id: "team-1", agents: ["agent://team.*"] });
const teamKey = ed25519Key("team-1", team.privateKey);
const teamApiKey = generateApiKey();
beforeAll(async () => {
  const { api_keys, signing_keys } = relay.keys.file as { api_keys: object[]; signing_keys: object[] };
  const sha256 = createHash("sha256").update(teamApiKey).digest("hex");
  await relay.writeKeys({
    api_keys: [...api_keys, { id: "team-gateway", sha256, agents: ["agent://team.*"] }],
    signing_keys: [...signing_keys, team.record],
  });
});
const pod = given(() => relay.startWsConnector());
const gateway = given(() => relay.startGateway(SETTINGS));
const reporting = given(() => relay.startOpsReporting(SETTINGS));
const http = new HttpClient();

const read = async (id: SurfaceId, query = "") => (await http.get(reporting.url + SURFACES[id].path + query)).body;
const request = async (from: string, to: string, headers: Record<string, string>) => {
  const { status, body } = await http.post(
    gateway.url + SURFACES.requestSession.path,
    { from, to, purpose: "talk" },
    headers,
  );
  expect(status).toBe(202);
  return body.session_id as string;
};

describe("Journeys", () => {
  /** A visitor whom the trusted proxy saw at an address. */
  const visitorAt = (address: string, userAgent: string) =>
    new HttpClient({ "x-forwarded-for": address, "user-agent": userAgent });
  const operator = visitorAt("203.0.113.1", "operator");

  /** The journeys but the operator's own, once they hold so many actions. */
  async function journeysOf(actions: number): Promise<Frame[]> {
    let journeys: Frame[] = [];
    await until(`${actions} actions are written`, async () => {
      const { body } = await operator.get(reporting.url + SURFACES.sessionJourneys.path);
      journeys = body.journeys.filter((journey: Frame) => journey.actions[0].action !== "sessionJourneys");
      return journeys.reduce((sum, journey) => sum + journey.event_count, 0) >= actions;
    });
    return journeys;
  }

  test("lead over both services, through views and posts that were answered well, and nothing else", async () => {
    const alice = visitorAt("203.0.113.7", "alice/1.0");
    const key = relay.credentials("alice");
    const parties = { from: "agent://alice", to: "agent://bob" };
    const send = { ...parties, message: "hi" };
    const envelope = relay.envelope("alice", "agent.register");

    expect((await alice.get(`${reporting.url}/api/ops/traffic-summary`)).status).toBe(200);
    for (const path of ["/health", "/ready"]) await alice.get(gateway.url + path);
    await fetch(`${gateway.url}/api/self-test`, { method: "HEAD", headers: { "x-forwarded-for": "203.0.113.7" } });
    expect((await alice.get(`${gateway.url}/api/onboarding/check-online`)).status).toBe(400);
    expect((await alice.post(`${gateway.url}/v1/messages/send`, send)).status).toBe(401);
    expect((await alice.post(`${gateway.url}/api/self-test`, { ...envelope, sig: "A".repeat(43) })).status).toBe(400);
    await journeysOf(1);
    expect((await alice.post(`${gateway.url}/api/self-test`, envelope)).status).toBe(200);
    expect((await alice.post(`${gateway.url}/v1/messages/send`, send, key)).status).toBe(202);
    const terms = { ...parties, purpose: "talk" };
    expect((await alice.post(`${gateway.url}/v1/sessions/request`, terms, key)).status).toBe(202);
    expect((await alice.post(`${gateway.url}/api/feedback`, { sentiment: "helpful" })).status).toBe(202);

    const [journey, ...others] = await journeysOf(5);
    expect(others).toEqual([]);
    expect(journey?.actions.map(({ action }: Frame) => action)).toEqual([
      ...["trafficDaily", "selfTest", "sendMessage", "requestSession", "submitFeedback"],
    ]);
    expect(journey?.drop_off).toBeNull();
  });

  test("tell visitors apart by the address that the trusted proxy saw and by user agent, and no more", async () => {
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
    const counts = journeys.slice(0, 3).map(({ event_count }) => event_count);
    expect(counts.sort()).toEqual([1, 1, 2]);
  });
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

test("a request to an online target makes every report say that the proof is fresh", async () => {
  const said = async () => [
    (await read("trafficDaily")).session_proof_retention.proof_freshness,
    (await read("sessionProofRetention")).activation_status,
    (await read("economicReadiness")).status,
    (await read("restartSurvivalCheck")).refresh_gate.proof_freshness,
    (await read("activationFunnel")).recommended_next_step.url,
  ];
  expect((await said())[0]).toBe("none");
  await relay.online(pod, "bob");
  await request("agent://alice", "agent://bob", relay.credentials("alice"));
  const gate = "https://relay.example/api/public/marketplace-handoff-status";
  const fresh = ["fresh", "proof_fresh", "ready_for_negotiation_handoff", "fresh", gate];
  await until("every report says so", async () => isDeepStrictEqual(await said(), fresh));
});

test("the suggested feedback is taken as it stands and leads the recommended actions", async () => {
  const before = (await read("feedbackSummary")).feedback.total;
  const { submit_endpoint, suggested_blocked_feedback } = await read("feedbackSummary");
  expect((await http.post(gateway.url + submit_endpoint, suggested_blocked_feedback)).status).toBe(202);
  for (let n = 0; n < 2; n += 1) {
    await http.post(gateway.url + submit_endpoint, { category: "smoke test", message: "is feedback taken?" });
  }
  await until("all feedback shows", async () => (await read("feedbackSummary")).feedback.total === before + 3);
  const { feedback, feedback_actions } = await read("feedbackSummary");
  expect(feedback).toMatchObject({
    message_provided: 2,
    by_surface: expect.objectContaining({ [suggested_blocked_feedback.surface]: 1 }),
  });
  expect(feedback_actions).toMatchObject({
    actionable_total: 1,
    smoke_or_deploy_check_total: 2,
    leading_action: { category: suggested_blocked_feedback.category, count: 1 },
  });
});

describe("Sessions that one key requests between its own agents", () => {
  const GO = "go_fresh_relay_negotiation_proof_available";
  const crowd = given(async () => {
    const socket = await relay.connect(pod);
    for (const from of [A, B]) await socket.ask(signed(teamKey, { type: "agent.register", from }));
    return socket;
  });
  const proofs = async (): Promise<Frame[]> => (await read("trafficDaily")).recent_session_proofs;
  const untilListed = (session: string) =>
    until("it is listed", async () => (await proofs()).some(({ session_id }) => session_id === session));

  /** Both ways to send: more than are kept. Resolves with the last session. */
  async function floods(): Promise<string> {
    let last = "";
    for (let n = 0; n < 13; n += 1) {
      await crowd.ask(signed(teamKey, { type: "session.request", from: A, to: B, payload: { purpose: "talk" } }));
      last = await request(A as string, B as string, { "x-api-key": teamApiKey });
    }
    return last;
  }

  test("are listed as of one principal, open gates like any other, and push out no other's proof", async () => {
    const others = await request("agent://alice", "agent://bob", relay.credentials("alice"));
    const session_id = await floods();
    await untilListed(session_id);
    const listed = await proofs();
    expect(listed).toHaveLength(SESSION_LIMITS.retainedProofs);
    expect(listed.find((proof) => proof.session_id === others)).toMatchObject({ same_principal: false });
    const own = listed.filter(({ requester }) => requester === A);
    expect(own.length).toBeGreaterThan(SESSION_LIMITS.retainedProofs / 2);
    for (const proof of own) expect(proof).toMatchObject({ same_principal: true, target_status: "online" });
    for (const query of ["", `?target_agent_id=${B}`, `?from=${A}&target_agent_id=${B}&session_id=${session_id}`])
      expect(await read("marketplaceHandoffStatus", query)).toMatchObject({ status: GO, proof_freshness: "fresh" });
    expect(JSON.stringify(listed)).not.toMatch(/team-1|team-gateway/);
  });
});
