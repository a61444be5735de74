import { createHmac, createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { beforeAll, expect, test } from "@jest/globals";
import { type Frame, jcs } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** A recipient that knows the signing manifest, its partner's public key, and nothing of the relay's code. */

const relay = useRelay("alice", "bob-hmac");
const http = new HttpClient();
const pod = given(() => relay.startWsConnector());
const gateway = given(() => relay.startGateway());
beforeAll(() => relay.startGateway());
const manifest: Frame = given(async () => (await http.get(`${gateway.url}/.well-known/signing-manifest.json`)).body);
const alice = given(() => relay.online(pod, "alice"));
const bob = given(() => relay.online(pod, "bob-hmac"));

test("a recipient verifies an agent's signature by the manifest and the agent's public key", async () => {
  const payload = { message: "grüße ✓", nested: { z: [1.5, -0, 1e21], a: null, "\u20ac": true }, empty: {} };
  const sent = relay.envelope("alice", "message.send", { to: "agent://bob-hmac", task_id: "task 1", payload });
  await alice.ask(sent);
  const { envelope } = await bob.delivered(sent.id);
  expect(isSigned(envelope, alicePublicKey())).toBe(true);
  expect(isSigned({ ...envelope, payload: { message: "forged" } }, alicePublicKey())).toBe(false);
  expect(manifest.gateway_keys.some((key: Frame) => isSigned(envelope, key.public_key))).toBe(false);
});

test("a recipient verifies what a gateway made by the manifest alone, and can tell it from an agent's", async () => {
  const headers = relay.credentials("alice");
  const body = { from: "agent://alice", to: "agent://bob-hmac" };
  const send = await http.post(`${gateway.url}/v1/messages/send`, { ...body, message: "hi" }, headers);
  const request = await http.post(`${gateway.url}/v1/sessions/request`, { ...body, purpose: "talk" }, headers);
  expect([send.status, request.status]).toEqual([202, 202]);
  for (const { body } of [send, request]) {
    const { envelope } = await bob.delivered(body.envelope_id);
    const key = manifest.gateway_keys.find(({ key_id }: Frame) => key_id === envelope.key_id);
    expect(envelope.key_id).toMatch(/^gateway-/);
    expect(key.alg).toBe("ed25519");
    expect(isSigned(envelope, key.public_key)).toBe(true);
    expect(isSigned({ ...envelope, from: "agent://eve" }, key.public_key)).toBe(false);
    expect(isSigned(envelope, alicePublicKey())).toBe(false);
  }
});

test("the manifest lists the keys of all live gateways, and each once", () => {
  const ids = manifest.gateway_keys.map(({ key_id }: Frame) => key_id);
  expect(new Set(ids).size).toBe(2);
  expect(ids).toHaveLength(2);
});

test("an author can reproduce every test vector of the manifest", () => {
  expect(manifest.test_vectors.length).toBeGreaterThanOrEqual(2);
  for (const { alg, key, envelope, canonical, sig } of manifest.test_vectors) {
    expect(canonicalOf(envelope)).toBe(canonical);
    expect(alg === "ed25519" ? signEd25519(canonical, key) : signHmac(canonical, key)).toBe(sig);
  }
});

function canonicalOf(envelope: Frame): string {
  const names: string[] = manifest.canonical_signing_order.filter((name: string) => envelope[name] !== undefined);
  return `{${names.map((name) => `${JSON.stringify(name)}:${jcs(envelope[name])}`).join(",")}}`;
}

function isSigned(envelope: Frame, x: string): boolean {
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  return verify(null, Buffer.from(canonicalOf(envelope)), key, Buffer.from(envelope.sig, manifest.encoding));
}

function signEd25519(text: string, { private_key, public_key }: Frame): string {
  const jwk = { kty: "OKP", crv: "Ed25519", d: private_key, x: public_key };
  return sign(null, Buffer.from(text), createPrivateKey({ key: jwk, format: "jwk" })).toString("base64url");
}

function signHmac(text: string, { secret }: Frame): string {
  return createHmac("sha256", Buffer.from(secret, "base64url")).update(text).digest("base64url");
}

/** What alice told bob herself: the relay publishes no agent's key. */
function alicePublicKey(): string {
  const { signing_keys } = relay.keys.file as { signing_keys: Frame[] };
  return signing_keys.find(({ agents }) => agents.includes("agent://alice")).public_key;
}
