import { execFile } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { json } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createRelay } from "../../deploy/local/relay.ts";
import type { AgentSocket } from "../support/agent.ts";
import { freePort } from "../support/free-port.ts";
import { GuidedCaller } from "../support/guided-caller.ts";
import { HttpClient } from "../support/http.ts";
import { watchLeaks } from "../support/leaks.ts";
import { type Pod, TestRelay } from "../support/relay.ts";
import { until } from "../support/until.ts";

/** Callers who follow only the JSON, against the three services behind one address. */

const GO = "go_fresh_relay_negotiation_proof_available";
const NO_GO = "no_go_refresh_relay_proof_before_marketplace_handoff";
const BOB = "agent://bob";
/** Long enough for a walk, short enough to wait for its end. */
const FRESHNESS_MS = 3000;

const relay = new TestRelay("alice", "bob");
const noLeaks = watchLeaks();
const http = new HttpClient();
let pod: Pod;
let bob: AgentSocket;

beforeAll(async () => {
  await relay.start();
  const port = await freePort();
  const { service } = createRelay(
    {
      ...relay.environment,
      PORT: String(port),
      LOG_LEVEL: "silent",
      RELAY_PROOF_FRESHNESS_MS: String(FRESHNESS_MS),
    },
    ({ baseUrl }) => {
      pod = { port, url: baseUrl, stop: () => service.stop() };
    },
  );
  await service.start();
});
afterAll(async () => {
  await pod.stop();
  await relay.stop();
  await noLeaks();
});

const guideUrl = (query = `?target_agent_id=${BOB}`) => `${pod.url}/api/public/session-request-guide${query}`;
const apiKey = () => relay.keys.apiKeys.get("alice") as string;
const newCaller = () => new GuidedCaller({ agent: "agent://alice", apiKey: apiKey() }, BOB);
const gate = async () => (await http.get(`${pod.url}/api/public/marketplace-handoff-status`)).body;

test("a caller whose target is not there is stopped before it spends a request", async () => {
  const caller = newCaller();
  await expect(caller.walk(guideUrl())).rejects.toThrow("The target is online. can_deliver_realtime is false");
  expect(caller.calls.filter(({ method }) => method === "POST")).toEqual([]);
  expect(await gate()).toMatchObject({ status: NO_GO, allowed_next_step: "connect_target_connector" });
});

test("guide, refresh packet, request, proof and gate lead to go", async () => {
  bob = await relay.online(pod, "bob");
  expect(await gate()).toMatchObject({ status: NO_GO, allowed_next_step: "request_session_with_online_target" });
  const caller = newCaller();
  const { accepted, proof, gate: status } = await caller.walk(guideUrl());
  expect(status).toBe(GO);
  expect(proof).toMatchObject({ requester: "agent://alice", target: BOB, target_status: "online" });
  expect((await bob.delivered(accepted.envelope_id)).session_id).toBe(accepted.session_id);
  expect(caller.calls.map(({ method, url, status }) => [method, url.replace(pod.url, ""), status])).toEqual([
    ["GET", "/api/public/session-request-guide?target_agent_id=agent://bob", 200],
    ["GET", "/api/public/session-request-refresh-packet?target_agent_id=agent://bob", 200],
    ["GET", "/api/onboarding/check-online?agent_id=agent://bob", 200],
    ["POST", "/v1/sessions/request", 202],
    ["GET", "/api/ops/session-proof-retention", 200],
    ["GET", "/api/public/marketplace-handoff-status?target_agent_id=agent://bob", 200],
  ]);
});

test("a caller that names no target fills in the placeholders and arrives too", async () => {
  expect((await newCaller().walk(guideUrl(""))).gate).toBe(GO);
});

test("a proof that expired is refreshed by following the gate's own link", async () => {
  await until("the proof expires", async () => (await gate()).refresh_urgency === "expired_refresh_now");
  expect(await gate()).toMatchObject({ status: NO_GO, allowed_next_step: "refresh_session_request_proof" });
  const caller = newCaller();
  const { next_step_url } = await caller.read(`${pod.url}/api/public/marketplace-handoff-status`);
  const packet = await caller.read(next_step_url);
  expect(packet).toMatchObject({ status: "refresh_due", should_refresh_before_handoff: true });
  expect((await caller.walk(packet.links.session_request_guide)).gate).toBe(GO);
  expect((await gate()).next_step_url).toMatch(/marketplace-first-job-handoff$/);
});

test("the target's approval stands where the first-job handoff looks for it", async () => {
  const { accepted, guide } = await newCaller().walk(guideUrl());
  const bridge = (await http.get(guide.links.marketplace_first_job_handoff)).body;
  const { url } = bridge.steps.find(({ step }: { step: string }) => step === "target_decision");
  const { session_id } = accepted;
  const status = async () => (await http.get(url.replace("{session_id}", session_id))).body.status;
  expect(await status()).toBe("pending_until_session.approve_or_session.reject");
  await bob.ask(relay.envelope("bob", "session.approve", { to: "agent://alice", payload: { session_id } }));
  expect(await status()).toBe("approved");
});

test("the commands of the activation plan work as they stand, and end at go", async () => {
  const plan = (await http.get(`${pod.url}/api/public/activation-plan?target_agent_id=${BOB}`)).body;
  const answers = [];
  for (const { command } of plan.copy_paste_steps) {
    const env = { ...process.env, RELAY_API_KEY: apiKey() };
    const run = await promisify(execFile)("sh", ["-c", command.replaceAll("agent://YOUR_AGENT", "agent://alice")], {
      env,
    });
    answers.push(JSON.parse(run.stdout));
  }
  expect(answers.map(({ ok }) => ok)).toEqual(answers.map(() => true));
  expect(answers.at(-1).status).toBe(GO);
});

describe("every link of a guide", () => {
  test("leads somewhere", async () => {
    const { links } = (await http.get(guideUrl())).body;
    const { websocket, session, session_request, feedback, ...read } = links;
    for (const url of Object.values(read) as string[]) expect([url, (await http.get(url)).status]).toEqual([url, 200]);
    expect((await http.get(session)).body.code).toBe("unknown_session");
    expect((await http.post(session_request, {})).body.code).toBe("invalid_api_key");
    expect((await http.post(feedback, {})).status).toBe(202);
    expect(websocket).toBe(`${pod.url.replace("http", "ws")}/ws`);
  });

  test("stays with the settings, whatever the Host header says", async () => {
    const headers = { host: "evil.example", "x-forwarded-host": "evil.example", forwarded: "host=evil.example" };
    const [answer] = await once(request(guideUrl(), { headers, agent: false }).end(), "response");
    const guide = await json(answer);
    expect(JSON.stringify(guide)).not.toContain("evil.example");
    expect(guide).toMatchObject({ links: { session_request_guide: guideUrl() } });
  });
});

test.each(["bob", "agent://BOB", "agent://*", ""])("a target that is no agent id is refused: %j", async (target) => {
  const url = guideUrl(`?target_agent_id=${encodeURIComponent(target)}`);
  const { status, body } = await http.get(url);
  expect([status, body.code, body.errors[0].field]).toEqual([400, "invalid_request", "target_agent_id"]);
});
