import { createHash } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import type { Refusal } from "../../src/intake/refusal.ts";
import { importSecret, sign } from "../../src/signing/algorithms.ts";
import { canonicalText, signedText } from "../../src/signing/canonical.ts";
import type { UnsignedEnvelope } from "../../src/wire/envelope.ts";
import { ENVELOPE_LIMITS } from "../../src/wire/limits.ts";
import { ED25519, HMAC, intake, MESSAGE, NOW, PUBLIC_KEY, signed } from "./support.ts";

const text = (...parameters: Parameters<typeof signed>) => JSON.stringify(signed(...parameters));
const refusedWith = (code: string) => ({ code, envelopeId: "env-1" });
const refusedForText = (envelope: UnsignedEnvelope) => ({
  ...refusedWith("bad_signature"),
  canonicalSha256: createHash("sha256").update(canonicalText(envelope)).digest("hex"),
});
const SESSION_ID = `ses_${"0".repeat(26)}`;

describe("An envelope that passes", () => {
  test.each([
    { key_id: "alice-hmac", key: HMAC },
    { key_id: "alice-ed", key: ED25519 },
  ])("is forwarded as canonical text with its signature ($key_id)", ({ key_id, key }) => {
    const envelope = signed({ key_id, payload: { b: 1.0, a: "ü" } }, key);
    const shuffled = JSON.stringify(Object.fromEntries(Object.entries(envelope).reverse()), null, 2);
    expect(intake(shuffled)).toEqual({
      envelope,
      kind: "message",
      keyId: key_id,
      key: expect.stringContaining(`${key_id} `),
      text: signedText(canonicalText(envelope), envelope.sig),
    });
  });

  test.each([
    ["agent.register", { capabilities: ["a"], label: "A" }, "register"],
    ["agent.heartbeat", {}, "heartbeat"],
    ["message.send", { anything: [1] }, "message"],
    ["message.offer_2", {}, "message"],
    ["session.request", { purpose: "talk", ttl_minutes: 5, extra: true }, "session_request"],
    ["session.approve", { session_id: SESSION_ID }, "session_decision"],
    ["session.reject", { session_id: SESSION_ID, reason: "busy" }, "session_decision"],
  ])("may be a %s", (type, payload, kind) => {
    const result = intake(text({ type, payload }));
    expect(result).toMatchObject({ kind, envelope: { type, payload } });
  });

  test("may come from a name in the key's namespace", () => {
    expect(intake(text({ from: "agent://alice.x" }))).toHaveProperty("text");
  });

  test("may be off by the whole skew, either way", () => {
    expect(intake(text({ ts: NOW - ENVELOPE_LIMITS.maxClockSkewMs }))).toHaveProperty("text");
    expect(intake(text({ ts: NOW + ENVELOPE_LIMITS.maxClockSkewMs }))).toHaveProperty("text");
  });
});

describe("Shape", () => {
  const withField = (changes: object) => JSON.stringify({ ...signed(), ...changes });

  test.each([
    ["an unknown type", { type: "agent.delete" }, "type"],
    ["a type that only begins like a message", { type: "message.Send" }, "type"],
    ["a from that is no agent id", { from: "agent://Alice" }, "from"],
    ["a to with a line break", { to: "agent://bob\n" }, "to"],
    ["no to", { to: undefined }, "to"],
    ["a payload that is an array", { payload: [] }, "payload"],
    ["a payload that is null", { payload: null }, "payload"],
    ["an empty task_id", { task_id: "" }, "task_id"],
    ["a ts that is no integer", { ts: NOW + 0.5 }, "ts"],
    ["a ts that is a text", { ts: String(NOW) }, "ts"],
    ["no key_id", { key_id: undefined }, "key_id"],
    ["a sig with padding", { sig: `${"A".repeat(43)}=` }, "sig"],
    ["a sig in plain base64", { sig: `+/${"A".repeat(41)}` }, "sig"],
    ["a session without purpose", { type: "session.request", payload: {} }, "payload.purpose"],
    [
      "a session of four minutes",
      { type: "session.request", payload: { purpose: "p", ttl_minutes: 4 } },
      "payload.ttl_minutes",
    ],
    ["a session with itself", { type: "session.request", to: "agent://alice", payload: { purpose: "p" } }, "to"],
    [
      "a decision of its own request",
      { type: "session.reject", to: "agent://alice", payload: { session_id: SESSION_ID } },
      "to",
    ],
    ["a decision without session_id", { type: "session.approve", payload: {} }, "payload.session_id"],
    [
      "a digest of the request in hex",
      { type: "session.approve", payload: { session_id: SESSION_ID, request_sha256: "a".repeat(64) } },
      "payload.request_sha256",
    ],
    [
      "a digest of the request with padding",
      { type: "session.approve", payload: { session_id: SESSION_ID, request_sha256: `${"a".repeat(43)}=` } },
      "payload.request_sha256",
    ],
    [
      "a digest of the request in the alphabet of base64",
      { type: "session.approve", payload: { session_id: SESSION_ID, request_sha256: `${"a".repeat(42)}+` } },
      "payload.request_sha256",
    ],
    [
      "a digest of the request that is no text",
      { type: "session.approve", payload: { session_id: SESSION_ID, request_sha256: 7 } },
      "payload.request_sha256",
    ],
  ])("is refused with %s, and the field is named", (_, changes, field) => {
    expect(intake(withField(changes))).toEqual({
      code: "invalid_envelope",
      envelopeId: "env-1",
      errors: [{ field, message: expect.any(String) }],
    });
  });

  test.each(["[]", "null", "1", '"text"'])("is refused when the text is %s", (json) => {
    expect(intake(json)).toEqual({ code: "invalid_envelope", detail: expect.any(String) });
  });

  test("is refused without naming the envelope when its id is not one", () => {
    expect(intake(withField({ id: "<script>" }))).not.toHaveProperty("envelopeId");
  });

  test("is refused with the name of an unknown member, and without any value", () => {
    const refusal = intake(withField({ mesage: "hunter3", from: "hunter4", task_id: 5551234 }));
    expect(refusal).toMatchObject({
      errors: expect.arrayContaining([{ field: "mesage", message: "unknown field" }]),
    });
    expect(JSON.stringify(refusal)).not.toMatch(/hunter|5551234/);
  });

  test("is refused in a short answer, however many items are wrong", () => {
    const capabilities = Array.from({ length: 10_000 }, () => 1);
    const refusal = intake(withField({ type: "agent.register", payload: { capabilities } }));
    expect(JSON.stringify(refusal).length).toBeLessThan(2000);
  });
});

describe("Every refusal of intake", () => {
  test("malformed_json: the text is not JSON", () => {
    expect(intake(text().slice(0, -1))).toEqual({ code: "malformed_json" });
  });

  test("invalid_envelope: JSON that the relay does not take", () => {
    expect(intake(text().replace('"hi"', '"\\ud800"'))).toMatchObject(refusedWith("invalid_envelope"));
  });

  test("frame_too_large: the canonical text is over 32768 bytes of UTF-8, however short the frame was", () => {
    const room =
      ENVELOPE_LIMITS.maxFrameBytes - Buffer.byteLength(canonicalText({ ...MESSAGE, payload: { message: "" } }));
    const ofBytes = (bytes: number) => `é${"x".repeat(bytes - 2)}`;
    expect(intake(text({ payload: { message: ofBytes(room) } }))).toHaveProperty("text");
    expect(intake(text({ payload: { message: ofBytes(room + 1) } }))).toEqual(refusedWith("frame_too_large"));

    const short = text().replace('"hi"', `[${"1e20,".repeat(1998)}1]`);
    expect(short.length).toBeLessThan(ENVELOPE_LIMITS.maxFrameBytes);
    expect(intake(short)).toEqual(refusedWith("frame_too_large"));
  });

  test("clock_skew: ts is too far off, either way", () => {
    const skew = ENVELOPE_LIMITS.maxClockSkewMs + 1;
    expect(intake(text({ ts: NOW - skew }))).toEqual(refusedWith("clock_skew"));
    expect(intake(text({ ts: NOW + skew }))).toEqual(refusedWith("clock_skew"));
  });

  test("clock_skew: of a ts in seconds, says so", () => {
    const hint = expect.stringContaining("seconds");
    expect(intake(text({ ts: Math.floor(NOW / 1000) }))).toEqual({ ...refusedWith("clock_skew"), hint });
    expect(intake(text({ ts: Math.floor(NOW / 1000) - 400 }))).not.toHaveProperty("hint");
  });

  test("unknown_key: the key is not in the file, is expired, or is a gateway's", () => {
    for (const key_id of ["nobody", "alice-old", "gateway-forged"]) {
      expect(intake(text({ key_id }))).toEqual({ ...refusedWith("unknown_key"), from: MESSAGE.from });
    }
  });

  test("unknown_key: comes before the schema and the canonical text, which cost more than the key's holder is known for", () => {
    const tooLarge = text({ key_id: "nobody" }).replace('"hi"', `[${"1e20,".repeat(1998)}1]`);
    const misshaped = JSON.stringify({ ...signed({ key_id: "nobody" }), extra: 1, payload: [] });
    for (const costly of [tooLarge, misshaped]) expect(intake(costly)).toMatchObject(refusedWith("unknown_key"));
  });

  test("clock_skew: comes before the key", () => {
    expect(intake(text({ ts: 1, key_id: "nobody" }))).toEqual(refusedWith("clock_skew"));
  });

  test("invalid_envelope: names ts and key_id, by which clock and key are judged, when they are missing or misshaped", () => {
    const { ts, ...rest } = signed({ key_id: "nobody" });
    expect(intake(JSON.stringify(rest))).toMatchObject({
      ...refusedWith("invalid_envelope"),
      errors: [{ field: "ts" }],
    });
  });

  test("invalid_envelope: who lacks one of these hears of every other member that is missing, too", () => {
    const fieldsOf = (result: object) => (result as Refusal).errors?.map(({ field }) => field);
    expect(fieldsOf(intake("{}"))).toEqual(["ts", "key_id", "id", "type", "from", "payload", "sig"]);
    const { ts, from, ...rest } = signed();
    expect(fieldsOf(intake(JSON.stringify(rest)))).toEqual(["ts", "from"]);
  });

  test("key_not_allowed: the signature is valid, and the key may not sign for the sender", () => {
    const refused = (from: string, keyId: string) => ({ ...refusedWith("key_not_allowed"), from, signer: { keyId } });
    for (const from of ["agent://bob", "agent://alicea"]) {
      expect(intake(text({ from }))).toEqual(refused(from, "alice-hmac"));
    }
    const byEd25519 = intake(text({ from: "agent://bob", key_id: "alice-ed" }, ED25519));
    expect(byEd25519).toEqual(refused("agent://bob", "alice-ed"));
  });

  test("bad_signature: comes before key_not_allowed, so that a guess learns nothing of a key's agents", () => {
    const forged = { ...signed({ from: "agent://bob" }), sig: "A".repeat(43) };
    expect(intake(JSON.stringify(forged))).toEqual(refusedForText(forged));
  });

  test("bad_signature: tells the digest of the text that was checked, and no key as its sender", () => {
    const changed = { ...signed(), payload: { message: "ho" } };
    expect(intake(JSON.stringify(changed))).toEqual(refusedForText(changed));
    expect(refusedForText(changed).canonicalSha256).not.toBe(refusedForText(signed()).canonicalSha256);
  });
});

describe("A signature", () => {
  const changes: [string, Partial<UnsignedEnvelope>][] = [
    ["id", { id: "env-2" }],
    ["type", { type: "message.other" }],
    ["from", { from: "agent://alice.x" }],
    ["to", { to: "agent://mallory" }],
    ["task_id", { task_id: "new" }],
    ["payload", { payload: { message: "ho" } }],
    ["ts", { ts: NOW + 1 }],
    ["key_id", { key_id: "alice-ed" }],
  ];

  test.each(changes)("covers %s", (_, change) => {
    for (const sig of [signed().sig, signed({}, ED25519).sig]) {
      expect(intake(JSON.stringify({ ...MESSAGE, ...change, sig }))).toMatchObject({ code: "bad_signature" });
    }
  });

  test("is checked by the algorithm of the key record: a public key is no HMAC secret", () => {
    const confused = { ...MESSAGE, key_id: "alice-ed" };
    const sig = sign({ alg: "hmac-sha256", secret: importSecret(PUBLIC_KEY) }, canonicalText(confused));
    expect(intake(JSON.stringify({ ...confused, sig }))).toMatchObject(refusedForText(confused));
  });

  test("of the other algorithm's length is refused for either key, which says its algorithm and length", () => {
    expect(intake(text({ key_id: "alice-ed" }, HMAC))).toEqual({
      ...refusedForText({ ...MESSAGE, key_id: "alice-ed" }),
      detail: expect.stringMatching(/ed25519.*86/),
    });
    expect(intake(text({ key_id: "alice-hmac" }, ED25519))).toEqual({
      ...refusedForText(MESSAGE),
      detail: expect.stringMatching(/hmac-sha256.*43/),
    });
  });

  test("cannot be led by an algorithm that the envelope names", () => {
    expect(intake(JSON.stringify({ ...signed(), alg: "none" }))).toMatchObject({
      ...refusedWith("invalid_envelope"),
      errors: [{ field: "alg", message: "unknown field" }],
    });
  });
});
