import { execFile } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { json } from "node:stream/consumers";
import { promisify } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { SESSION_LIMITS } from "protocol/contract/limits.ts";
import type { AgentSocket } from "../support/agent.ts";
import { GuidedCaller } from "../support/guided-caller.ts";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** Callers who follow only the JSON, against the three services behind one address. */

const GO = "go_fresh_relay_negotiation_proof_available";
const NO_GO = "no_go_refresh_relay_proof_before_marketplace_handoff";
const BOB = "agent://bob";
const NAMED = `?from=agent://alice&target_agent_id=${BOB}`;

const relay = useRelay("alice", "bob");
const http = new HttpClient();
const pod = given(() => relay.startWhole());
const view = given(() => relay.view());
let bob: AgentSocket;

const pathOf = (url: string) => decodeURIComponent(url.replace(pod.url, ""));
const guideUrl = (query = `?target_agent_id=${BOB}`) => `${pod.url}/api/public/session-request-guide${query}`;
const apiKey = () => relay.keys.apiKeys.get("alice") as string;
const newCaller = () => new GuidedCaller({ agent: "agent://alice", apiKey: apiKey() }, BOB);
const gate = async () => (await http.get(`${pod.url}/api/public/marketplace-handoff-status`)).body;

test("a caller whose target is not there is stopped before it spends a request", async () => {
  const caller = newCaller();
  await expect(caller.walk(guideUrl())).rejects.toThrow("can_deliver_realtime is false");
  expect(caller.calls.filter(({ method }) => method === "POST")).toEqual([]);
  expect(await gate()).toMatchObject({ status: NO_GO, allowed_next_step: "connect_target_connector" });
});

test("guide, request, proof and gate lead to go", async () => {
  bob = await relay.online(pod, "bob");
  const nextStep = async () => (await gate()).allowed_next_step;
  await until("the gate sees bob", async () => (await nextStep()) === "request_session_with_online_target");
  expect((await gate()).status).toBe(NO_GO);
  const caller = newCaller();
  const { accepted, proof, gate: passed } = await caller.walk(guideUrl());
  expect(passed).toMatchObject({ status: GO, target_decision: "pending", next: { who: "target" } });
  expect(proof).toMatchObject({ requester: "agent://alice", target: BOB, target_status: "online" });
  expect((await bob.delivered(accepted.envelope_id)).session_id).toBe(accepted.session_id);
  expect(caller.calls.map(({ method, url, status }) => [method, pathOf(url), status])).toEqual([
    ["GET", "/api/public/session-request-guide?target_agent_id=agent://bob", 200],
    ["GET", "/api/public/session-request-guide?target_agent_id=agent://bob&from=agent://alice", 200],
    ["GET", "/api/onboarding/check-online?agent_id=agent://bob", 200],
    ["POST", "/v1/sessions/request", 202],
    ["GET", "/api/ops/traffic-daily", 200],
    ["GET", `/api/public/marketplace-handoff-status${NAMED}&session_id=${accepted.session_id}`, 200],
  ]);
});

test("a caller that names no target is told what is missing, names it and arrives too", async () => {
  expect((await newCaller().walk(guideUrl(""))).gate.status).toBe(GO);
});

/** Lets the last proof be of a time for which none is fresh any more. */
async function ageProof(): Promise<void> {
  const { lastOnlineProof } = await view.keysOf("bob");
  const [session, requester, target, acceptedAt, ...rest] = `${await view.client.hget(lastOnlineProof, "proof")}`.split(
    " ",
  );
  const aged = [session, requester, target, Number(acceptedAt) - SESSION_LIMITS.proofFreshnessMs, ...rest];
  await view.client.hset(lastOnlineProof, "proof", aged.join(" "));
}

test("a proof that expired is refreshed by following the gate's own link", async () => {
  await ageProof();
  await until("the proof expires", async () => (await gate()).refresh_urgency === "expired_refresh_now");
  expect(await gate()).toMatchObject({ status: NO_GO, allowed_next_step: "refresh_session_request_proof" });
  const caller = newCaller();
  const { next_step_url } = await caller.read(`${pod.url}/api/public/marketplace-handoff-status`);
  const packet = await caller.read(next_step_url);
  expect(packet).toMatchObject({ status: "refresh_due", should_refresh_before_handoff: true });
  expect((await caller.walk(guideUrl())).gate.status).toBe(GO);
  expect((await gate()).next_step_url).toMatch(/marketplace-first-job-handoff$/);
});

test("the metric that the guide names for a way of sending moves by each request that is sent so", async () => {
  const { endpoint, metrics } = (await http.get(guideUrl())).body.acceptance_monitoring;
  const read = async (metric: string) => (await http.get(endpoint)).body.monitors[metric];
  const alice = await relay.online(pod, "alice");
  const ways = {
    gateway: () =>
      http.post(
        `${pod.url}/v1/sessions/request`,
        { from: "agent://alice", to: BOB, purpose: "talk" },
        relay.credentials("alice"),
      ),
    websocket_envelope: () =>
      alice.ask(relay.envelope("alice", "session.request", { to: BOB, payload: { purpose: "talk" } })),
  };
  expect(Object.keys(metrics).sort()).toEqual(Object.keys(ways).sort());
  for (const [way, send] of Object.entries(ways)) {
    const before = await read(metrics[way]);
    await send();
    await until(`${metrics[way]} moves`, async () => (await read(metrics[way])) === before + 1);
  }
  alice.close();
});

test("the target's approval stands where the first-job handoff looks for it", async () => {
  const { accepted } = await newCaller().walk(guideUrl());
  const { session_id } = accepted;
  const bridgeUrl = `${pod.url}/api/public/marketplace-first-job-handoff${NAMED}&session_id=${session_id}`;
  const { next, steps } = (await http.get(bridgeUrl)).body;
  expect(next).toMatchObject({ step: "wait_for_target_decision", who: "target", request: null });
  const { url } = steps.find(({ step }: { step: string }) => step === "target_decision");
  expect(next.watch).toBe(url);
  const status = async () => (await http.get(url)).body.status;
  expect(await status()).toBe("pending_until_session.approve_or_session.reject");
  await bob.ask(relay.envelope("bob", "session.approve", { to: "agent://alice", payload: { session_id } }));
  expect(await status()).toBe("approved");
  await until("the handoff tells of it", async () => (await http.get(bridgeUrl)).body.target_decision === "approved");
  expect((await http.get(bridgeUrl)).body.next).toMatchObject({ who: "person", request: null });
});

test("what bob proved opens no gate for anybody else, and for bob whoever asks", async () => {
  await newCaller().walk(guideUrl());
  const gateOf = async (query: string) =>
    (await http.get(`${pod.url}/api/public/marketplace-handoff-status${query}`)).body;
  expect(await gateOf("?target_agent_id=agent://nobody")).toMatchObject({ status: NO_GO, proof_freshness: "none" });
  expect(await gateOf(`?from=agent://eve&target_agent_id=${BOB}`)).toMatchObject({
    status: GO,
    proof_requester_is_you: false,
  });
  const first = await http.get(`${pod.url}/api/public/marketplace-first-job-handoff?target_agent_id=agent://nobody`);
  expect(first.body.steps[0]).toMatchObject({ step: "target_online", done: false });
});

test("the commands of the activation plan work as they stand, one after the other, and end at go", async () => {
  const plan = (await http.get(`${pod.url}/api/public/activation-plan${NAMED}`)).body;
  expect(plan.ready_to_run).toBe(true);
  const answers = [];
  const env: NodeJS.ProcessEnv = { ...process.env, RELAY_API_KEY: apiKey() };
  for (const { command } of plan.copy_paste_steps) {
    const run = await promisify(execFile)("sh", ["-c", command], { env });
    const answer = JSON.parse(run.stdout);
    answers.push(answer);
    env.RELAY_SESSION_ID = answer.session_id;
  }
  expect(answers.map(({ ok }) => ok)).toEqual(answers.map(() => true));
  expect(answers.at(-1)).toMatchObject({ status: GO, target_decision: "pending" });
});

describe("every link of a guide", () => {
  test("leads somewhere", async () => {
    const { links, templates, feedback } = (await http.get(guideUrl())).body;
    const { session, ...read } = links;
    expect(templates).toEqual(["session", "next"]);
    for (const url of Object.values(read) as string[]) expect([url, (await http.get(url)).status]).toEqual([url, 200]);
    expect((await http.get(session)).body.code).toBe("unknown_session");
    expect((await http.post(feedback.url, {})).status).toBe(202);
  });

  test("stays with the settings, whatever the Host header says", async () => {
    const headers = { host: "evil.example", "x-forwarded-host": "evil.example", forwarded: "host=evil.example" };
    const [answer] = await once(request(guideUrl(), { headers, agent: false }).end(), "response");
    const guide = await json(answer);
    expect(JSON.stringify(guide)).not.toContain("evil.example");
    expect(guide).toMatchObject({ next: { request: { url: `${guideUrl()}{&from}` } } });
  });
});

test("from that is the target is refused: a session is between two agents", async () => {
  const { status, body } = await http.get(guideUrl(`?from=${BOB}&target_agent_id=${BOB}`));
  expect([status, body.code, body.errors[0].field]).toEqual([400, "invalid_request", "target_agent_id"]);
});

test.each(["bob", "agent://BOB", "agent://*", ""])("a target that is no agent id is refused: %j", async (target) => {
  const url = guideUrl(`?target_agent_id=${encodeURIComponent(target)}`);
  const { status, body } = await http.get(url);
  expect([status, body.code, body.errors[0].field]).toEqual([400, "invalid_request", "target_agent_id"]);
});
