import { createHash } from "node:crypto";
import { beforeAll, expect, test } from "@jest/globals";
import { SESSION_LIMITS } from "protocol/contract/limits.ts";
import { SURFACES } from "protocol/contract/surfaces.ts";
import { generateApiKey } from "protocol/signing/api-key.ts";
import { makeEd25519Key } from "../../deploy/keys/make.ts";
import { ed25519Key, signed } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** One key that requests sessions between its own agents, and everybody else. Such a request opens gates like any other. */

const [A, B] = ["agent://team.a", "agent://team.b"];
const GO = "go_fresh_relay_negotiation_proof_available";
const relay = useRelay("alice", "bob");
const http = new HttpClient();
const team = makeEd25519Key({ id: "team-1", agents: ["agent://team.*"] });
const key = ed25519Key("team-1", team.privateKey);
const apiKey = generateApiKey();
beforeAll(async () => {
  const { api_keys, signing_keys } = relay.keys.file as { api_keys: object[]; signing_keys: object[] };
  const sha256 = createHash("sha256").update(apiKey).digest("hex");
  await relay.writeKeys({
    api_keys: [...api_keys, { id: "team-gateway", sha256, agents: ["agent://team.*"] }],
    signing_keys: [...signing_keys, team.record],
  });
});
const pod = given(() => relay.startWhole());
const crowd = given(async () => {
  const socket = await relay.connect(pod);
  for (const from of [A, B]) await socket.ask(signed(key, { type: "agent.register", from }));
  return socket;
});

const request = async (from: string, to: string, headers: Record<string, string>) =>
  (await http.post(pod.url + SURFACES.requestSession.path, { from, to, purpose: "talk" }, headers)).body.session_id;
const proofs = async (): Promise<{ session_id: string; same_principal: boolean }[]> =>
  (await http.get(pod.url + SURFACES.trafficDaily.path)).body.recent_session_proofs;
const gate = async (query = "") => (await http.get(pod.url + SURFACES.marketplaceHandoffStatus.path + query)).body;

/** Both ways to send: more than are kept. Resolves with the last session. */
async function floods(): Promise<string> {
  let last = "";
  for (let n = 0; n < 13; n += 1) {
    await crowd.ask(signed(key, { type: "session.request", from: A, to: B, payload: { purpose: "talk" } }));
    last = await request(A, B, { "x-api-key": apiKey });
  }
  return last;
}

test("what it requests is listed as of one principal, and opens the gates of the window and of its target", async () => {
  const session_id = await floods();
  await until("the last one is listed", async () => (await proofs()).some((proof) => proof.session_id === session_id));
  const listed = await proofs();
  expect(listed).toHaveLength(SESSION_LIMITS.retainedProofs);
  for (const proof of listed) expect(proof).toMatchObject({ same_principal: true, target_status: "online" });
  for (const query of ["", `?target_agent_id=${B}`, `?from=${A}&target_agent_id=${B}&session_id=${session_id}`])
    expect(await gate(query)).toMatchObject({ status: GO, proof_freshness: "fresh" });
});

test("another's proof is not pushed out by it; no report says which key it is", async () => {
  await relay.online(pod, "bob");
  const others = await request("agent://alice", "agent://bob", relay.credentials("alice"));
  const last = await floods();
  await until("the last one is listed", async () => (await proofs()).some(({ session_id }) => session_id === last));
  const listed = await proofs();
  expect(listed).toHaveLength(SESSION_LIMITS.retainedProofs);
  expect(listed.map(({ session_id }) => session_id)).toContain(others);
  expect(JSON.stringify(listed)).not.toMatch(/team-1|team-gateway/);
});

test("what agents of two keys request of each other is of no common principal", async () => {
  const session_id = await request("agent://alice", "agent://bob", relay.credentials("alice"));
  const proofOfIt = async () => (await proofs()).find((proof) => proof.session_id === session_id);
  await until("it is listed", async () => (await proofOfIt()) !== undefined);
  expect(await proofOfIt()).toMatchObject({ requester: "agent://alice", same_principal: false });
});
