import { createHmac, createPublicKey, verify } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { type AgentSocket, canonical, type Frame } from "../support/agent.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const relay = conformingRelay("alice", "bob-hmac", "carol", "dave");
const PARTITIONS = { RELAY_PARTITIONS: "3" };
const one = given(() => relay.startWsConnector(PARTITIONS));
const two = given(() => relay.startWsConnector(PARTITIONS));
const alice = given(() => relay.online(one, "alice"));
let bob = given(() => relay.online(two, "bob-hmac"));

function message(from: string, to: string, fields: { readonly [name: string]: unknown } = {}): Frame {
  return relay.envelope(from, "message.send", { to: `agent://${to}`, ...fields });
}

/** What `npm run keys` gave out about a key. */
function recordOf(keyId: string): Record<string, string> {
  const { signing_keys } = relay.keys.file as { signing_keys: Record<string, string>[] };
  return signing_keys.find(({ key_id }) => key_id === keyId) as Record<string, string>;
}

/** Checks a delivered envelope as its recipient would: its text up to `sig`, the sender's key, `node:crypto`. */
function isSigned(deliverText: string): boolean {
  const envelopeText = deliverText.slice(deliverText.indexOf('"envelope":') + '"envelope":'.length, -1);
  const sigAt = envelopeText.lastIndexOf(',"sig":"');
  const signedBytes = Buffer.from(`${envelopeText.slice(0, sigAt)}}`);
  const { key_id, sig } = JSON.parse(envelopeText);
  const { alg, public_key, secret } = recordOf(key_id);
  if (alg === "hmac-sha256") {
    const key = Buffer.from(String(secret), "base64url");
    return createHmac("sha256", key).update(signedBytes).digest("base64url") === sig;
  }
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: String(public_key) }, format: "jwk" });
  return verify(null, signedBytes, key, Buffer.from(sig, "base64url"));
}

describe("a delivery", () => {
  test.each([
    ["to the same pod", "alice", "alice"],
    ["to another pod", "alice", "bob-hmac"],
    ["from another pod", "bob-hmac", "alice"],
  ])("%s carries the whole envelope, which its recipient can verify", async (_way, from, to) => {
    const [sender, recipient] = [from, to].map((name) => (name === "alice" ? alice : bob)) as [
      AgentSocket,
      AgentSocket,
    ];
    const payload = { text: 'é €\u2028 " \\ \u0000 😀', number: [0, -1.5, 1e21, 5e-324], b: { z: null, a: true } };
    const envelope = message(from, to, { payload, task_id: "task 1" });
    sender.send(envelope);
    expect(await recipient.delivered(envelope.id)).toEqual({ frame: "deliver", envelope });
    const text = recipient.texts.find((text) => text.includes(envelope.id) && text.startsWith('{"frame":"deliver"'));
    expect(isSigned(text as string)).toBe(true);
  });

  test("is the canonical text and `sig`, however the sender wrote the envelope", async () => {
    const envelope = message("alice", "bob-hmac", { payload: { b: 1, a: { d: 100, c: "é" } } });
    const { sig, payload, ...rest } = envelope;
    const written = JSON.stringify({ sig, payload, ...rest }, null, 2)
      .replace("100", "1.0E2")
      .replace('"é"', '"\\u00e9"');
    alice.send(written);
    await bob.delivered(envelope.id);
    const canonicalText = `${canonical(envelope).slice(0, -1)},"sig":"${sig}"}`;
    expect(bob.texts).toContain(`{"frame":"deliver","envelope":${canonicalText}}`);
  });

  test("has only the last of two members with one name", async () => {
    const envelope = message("alice", "bob-hmac", { payload: { said: "last" } });
    alice.send(JSON.stringify(envelope).replace('"said":', '"said":"first","said":'));
    expect((await bob.delivered(envelope.id)).envelope).toEqual(envelope);
  });

  test("goes to the one connection that owns the target", async () => {
    const [bystander, envelope] = [await relay.online(two, "carol"), message("alice", "bob-hmac")];
    alice.send(envelope);
    alice.send(message("alice", "carol"));
    await bob.delivered(envelope.id);
    await bystander.next("its own message", ({ frame }) => frame === "deliver");
    expect(bystander.deliveries).toHaveLength(1);
  });

  test("to a target that comes online later does not happen", async () => {
    await alice.ask(message("alice", "dave"));
    const dave = await relay.online(two, "dave");
    const marker = message("alice", "dave");
    alice.send(marker);
    await dave.delivered(marker.id);
    expect(dave.deliveries).toHaveLength(1);
  });
});

describe("what one connection sends to one target arrives in the order sent", () => {
  const ids = (envelopes: Frame[]) => envelopes.map(({ id }) => id);
  const isBetween = (first: string, last: string) => (all: string[]) =>
    all.slice(all.indexOf(first), all.indexOf(last) + 1);

  async function expectInOrder(sender: AgentSocket, target: AgentSocket, sent: Frame[]): Promise<void> {
    for (const envelope of sent) sender.send(envelope);
    await target.delivered(sent.at(-1).id);
    const arrived = ids(target.deliveries.map(({ envelope }) => envelope));
    expect(isBetween(sent[0].id, sent.at(-1).id)(arrived)).toEqual(ids(sent));
  }

  test("from two agents with Ed25519 and HMAC keys, sessions and messages mixed", async () => {
    const shared = await relay.connect(one);
    await shared.ask(relay.envelope("carol", "agent.register"));
    await shared.ask(relay.envelope("bob-hmac", "agent.register"));
    const dave = await relay.online(two, "dave");
    const request = (from: string, n: number) =>
      relay.envelope(from, "session.request", { to: "agent://dave", payload: { purpose: `number ${n}` } });
    const sent = Array.from({ length: 300 }, (_, n) => {
      const from = n % 2 === 0 ? "carol" : "bob-hmac";
      return n % 7 === 3 ? request(from, n) : message(from, "dave", { payload: { n } });
    });
    await expectInOrder(shared, dave, sent);
    bob = await relay.online(two, "bob-hmac");
  });

  test("with session decisions between the messages", async () => {
    const asked = Array.from({ length: 10 }, () =>
      relay.envelope("alice", "session.request", { to: "agent://bob-hmac", payload: { purpose: "p" } }),
    );
    const sessions = [];
    for (const envelope of asked) sessions.push((await alice.ask(envelope)).session_id);
    const sent = sessions.flatMap((session_id) => [
      message("bob-hmac", "alice"),
      relay.envelope("bob-hmac", "session.approve", { to: "agent://alice", payload: { session_id } }),
      message("bob-hmac", "alice"),
    ]);
    await expectInOrder(bob, alice, sent);
  });

  test("from the register on, without waiting for its ack", async () => {
    const socket = await relay.connect(two);
    const dave = await relay.online(one, "dave");
    const sent = Array.from({ length: 20 }, () => message("carol", "dave"));
    socket.send(relay.envelope("carol", "agent.register"));
    await expectInOrder(socket, dave, sent);
    await socket.next("the last ack", ({ envelope_id }) => envelope_id === sent.at(-1).id);
    const answers = socket.frames.filter(({ frame }) => frame === "ack" || frame === "error");
    expect(answers.map(({ frame }) => frame)).toEqual(Array(21).fill("ack"));
  });
});
