import { describe, expect, test } from "@jest/globals";
import { type AgentSocket, canonical, type Frame, hmacKey, signed } from "../support/agent.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const relay = conformingRelay("alice", "bob-hmac", "carol");
const BOB = "agent://bob-hmac";
const SKEW_MS = 300_000;
const pod = given(() => relay.startWsConnectors());
const alice = given(() => relay.online(pod, "alice"));
const bob = given(() => relay.online(pod, "bob-hmac"));

function message(fields: { readonly [name: string]: unknown } = {}) {
  return relay.envelope("alice", "message.send", { to: BOB, ...fields });
}

function keyOf(name: string) {
  return relay.keys.agents.get(name) as NonNullable<ReturnType<typeof relay.keys.agents.get>>;
}

/** Every error names its envelope, and says in words what is wrong and what to do. */
async function expectRefused(socket: AgentSocket, envelope: Frame, code: string): Promise<Frame> {
  const answer = await socket.ask(envelope);
  expect(answer).toMatchObject({ frame: "error", code, envelope_id: envelope.id });
  expect(answer.message).toMatch(/\S/);
  expect(answer.hint).toMatch(/\S/);
  return answer;
}

test.each(["", "{", "nonsense", '{"id":"a"', "{'id':1}", '{"a":1}{"b":2}', "\ufeff{}", "NaN", '{"a":1,}'])(
  "'%s' is malformed_json, without an envelope_id",
  async (text) => {
    const answer = await alice.answerTo(text);
    expect(answer).toMatchObject({ frame: "error", code: "malformed_json" });
    expect(answer.envelope_id).toBeUndefined();
    expect(await alice.ask(message())).toMatchObject({ accepted: true });
  },
);

describe("frame_too_large", () => {
  const canonicalOf = (length: number) => {
    const empty = message({ payload: { text: "" } });
    const padding = "x".repeat(length - Buffer.byteLength(canonical(empty)));
    return message({ id: empty.id, ts: empty.ts, payload: { text: padding } });
  };

  test("is a canonical text over 32768 bytes, though its frame was shorter", async () => {
    const numbers = message({ payload: { numbers: Array(1999).fill(1e20) } });
    const frame = JSON.stringify(numbers).replaceAll("100000000000000000000", "1e20");
    expect(Buffer.byteLength(frame)).toBeLessThan(32_768);
    expect(await alice.answerTo(frame)).toMatchObject({ code: "frame_too_large", envelope_id: numbers.id });
  });

  test("is not a text close to the limit", async () => {
    const large = canonicalOf(32_600);
    expect(Buffer.byteLength(JSON.stringify(large))).toBeLessThanOrEqual(32_768);
    expect(await alice.ask(large)).toMatchObject({ accepted: true });
    expect((await bob.delivered(large.id)).envelope).toEqual(large);
  });
});

describe("clock_skew", () => {
  test.each([
    ["older", -SKEW_MS - 2000],
    ["later", SKEW_MS + 2000],
  ])("is a ts %s than the server's clock allows; the answer says its time", async (_side, offset) => {
    const { server_time } = await expectRefused(alice, message({ ts: Date.now() + offset }), "clock_skew");
    expect(Math.abs(server_time - Date.now())).toBeLessThan(5000);
  });

  test.each([
    ["old", -SKEW_MS + 5000],
    ["ahead", SKEW_MS - 5000],
  ])("is not a ts that is only almost too %s", async (_side, offset) => {
    expect(await alice.ask(message({ ts: Date.now() + offset }))).toMatchObject({ accepted: true });
  });
});

describe("unknown_key", () => {
  test("is a key that the keys file does not hold", async () => {
    await expectRefused(alice, message({ key_id: "nobody-1" }), "unknown_key");
  });

  test("is every key of a gateway", async () => {
    await expectRefused(alice, message({ key_id: "gateway-1" }), "unknown_key");
  });
});

describe("bad_signature", () => {
  test.each([
    ["id", { id: "another" }],
    ["type", { type: "message.other" }],
    ["to", { to: "agent://carol" }],
    ["task_id", { task_id: "another" }],
    ["payload", { payload: { message: "another" } }],
    ["ts", { ts: Date.now() - 1 }],
  ])("is an envelope whose %s was changed after it was signed", async (_field, change) => {
    await expectRefused(alice, { ...message({ payload: { message: "hi" } }), ...change }, "bad_signature");
  });

  test("is the signature of another key", async () => {
    await expectRefused(alice, { ...message(), key_id: keyOf("carol").keyId }, "bad_signature");
  });

  test("is a second spelling of a good signature", async () => {
    for (const [socket, good] of [
      [alice, message()],
      [bob, relay.envelope("bob-hmac", "message.send", { to: BOB })],
    ] as const) {
      await expectRefused(socket, { ...good, sig: respelled(good.sig) }, "bad_signature");
    }
  });

  test("is an HMAC made with a public key, since the key decides on the algorithm", async () => {
    const { public_key } = recordOf("alice");
    const confused = signed(hmacKey(keyOf("alice").keyId, String(public_key)), unsignedMessage("alice"));
    await expectRefused(alice, confused, "bad_signature");
  });

  test("is an Ed25519 signature under an HMAC key", async () => {
    const confused = signed({ ...keyOf("alice"), keyId: keyOf("bob-hmac").keyId }, unsignedMessage("bob-hmac"));
    await expectRefused(bob, confused, "bad_signature");
  });

  const unsignedMessage = (name: string) => ({ type: "message.send", from: `agent://${name}`, to: BOB });

  function recordOf(name: string) {
    const { signing_keys } = relay.keys.file as { signing_keys: Record<string, unknown>[] };
    return signing_keys.find(({ key_id }) => key_id === keyOf(name).keyId) as Record<string, unknown>;
  }

  /** The last character carries unused bits: another one decodes to the same bytes. */
  function respelled(sig: string): string {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const other = sig.slice(0, -1) + alphabet[alphabet.indexOf(sig.slice(-1)) ^ 1];
    expect(Buffer.from(other, "base64url")).toEqual(Buffer.from(sig, "base64url"));
    return other;
  }
});

test("key_not_allowed is a good signature of a key that may not sign for the sender", async () => {
  await expectRefused(alice, signed(keyOf("alice"), { type: "message.send", from: BOB, to: BOB }), "key_not_allowed");
  const register = signed(keyOf("alice"), { type: "agent.register", from: "agent://carol" });
  await expectRefused(alice, register, "key_not_allowed");
});

describe("not_registered", () => {
  test.each(["message.send", "session.request"])("is a %s of an agent without register", async (type) => {
    const envelope = relay.envelope("carol", type, { to: BOB, payload: { purpose: "p" } });
    await expectRefused(await relay.connect(pod), envelope, "not_registered");
  });

  test("is an envelope of an agent that another connection has", async () => {
    await expectRefused(bob, message(), "not_registered");
  });

  test("ends with the register, after which the same envelope is accepted", async () => {
    const socket = await relay.connect(pod);
    const envelope = relay.envelope("carol", "message.send", { to: BOB });
    await expectRefused(socket, envelope, "not_registered");
    await socket.ask(relay.envelope("carol", "agent.register"));
    const ack = await socket.ask(envelope);
    expect(ack).toMatchObject({ accepted: true });
    expect(ack.duplicate).toBeUndefined();
  });
});
