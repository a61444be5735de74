import { describe, expect, test } from "@jest/globals";
import { SEALED_PAYLOAD_TEST_VECTOR } from "relay-protocol/signing/test-vectors.ts";
import { fc } from "../../../test/support/fast-check.ts";
import { thumbprintOf } from "../../src/credentials/public-jwk.ts";
import { MAX_FRAME_BYTES, MAX_SEALED_BYTES } from "../../src/limits.ts";
import { sealBytes } from "../../src/sealing/hpke.ts";
import {
  isSealed,
  openPayload,
  plaintextOf,
  type SealedPayload,
  sealPayload,
} from "../../src/sealing/sealed-payload.ts";
import { newSealingKey, SealingKeys } from "../../src/sealing/sealing-keys.ts";
import type { Envelope, JsonObject } from "../../src/types.ts";

const BOB = await newSealingKey();
const BOBS_OLD = await newSealingKey();
const keys = await SealingKeys.from([BOB, BOBS_OLD]);
const KID = await thumbprintOf(BOB.publicKey, "X25519");

const SURROUNDINGS = {
  id: "env-1",
  type: "message.send",
  from: "agent://alice",
  to: "agent://bob",
  task_id: "task-1",
};

function envelope(payload: object, changes: Partial<Envelope> = {}): Envelope {
  return { ...SURROUNDINGS, payload: payload as JsonObject, ts: 1, key_id: "k", sig: "s", ...changes };
}
const sealed = async (payload: object = { message: "hi" }, key = BOB.publicKey) =>
  await sealPayload(plaintextOf(payload), SURROUNDINGS, key);
const openChanged = async (changes: object) => {
  const { sealed: members } = await sealed();
  return await openPayload(envelope({ sealed: { ...members, ...changes } }), keys);
};

test("The test vector that the relay publishes opens, in its envelope and in no other", async () => {
  const { recipient_key, envelope, plaintext } = SEALED_PAYLOAD_TEST_VECTOR;
  const { private_key: privateKey, public_key: publicKey } = recipient_key;
  const vectorKeys = await SealingKeys.from([{ publicKey, privateKey }]);
  const received = { ts: 1, key_id: "k", sig: "s", ...envelope } as unknown as Envelope;
  expect(await openPayload(received, vectorKeys)).toEqual(JSON.parse(plaintext));
  expect(await openPayload({ ...received, id: "another" }, vectorKeys)).toBeUndefined();
});

describe("A sealed payload", () => {
  test("has one member, which names the key and shows nothing else", async () => {
    const payload = await sealed({ message: "the secret" });
    expect(payload).toEqual({
      sealed: {
        v: 1,
        kid: KID,
        enc: expect.stringMatching(/^[\w-]{43}$/),
        ct: expect.stringMatching(/^[\w-]+$/),
      },
    });
    expect(isSealed(payload)).toBe(true);
    for (const open of [{ message: "sealed" }, { sealed: 1, more: 2 }, {}]) expect(isSealed(open)).toBe(false);
  });

  test("opens with the key that kid names, the present one or one before it", async () => {
    expect(await openPayload(envelope(await sealed()), keys)).toEqual({ message: "hi" });
    expect(await openPayload(envelope(await sealed({}, BOBS_OLD.publicKey)), keys)).toEqual({});
  });

  test("opens whatever it holds, and is what it was", async () => {
    const name = fc.string({ unit: "grapheme" }).filter((text) => text !== "__proto__");
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        fc.string({ unit: "grapheme" }),
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie("value"), { maxLength: 4 }),
        fc.dictionary(name, tie("value"), { maxKeys: 4, noNullPrototype: true }),
      ),
    }));
    const payloads = fc.dictionary(name, value, { maxKeys: 5, noNullPrototype: true });
    const ids = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,20}$/);
    const tasks = fc.option(fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }), { nil: undefined });
    await fc.assert(
      fc.asyncProperty(payloads, ids, tasks, async (payload, id, task) => {
        const around = { ...SURROUNDINGS, id, ...(task === undefined ? {} : { task_id: task }) };
        const { sealed: members } = await sealPayload(plaintextOf(payload), around, BOB.publicKey);
        const opened = await openPayload(envelope({ sealed: members }, around), keys);
        expect(JSON.stringify(sortedIn(opened))).toBe(JSON.stringify(sortedIn(payload)));
      }),
    );
  });
});

describe("A sealed payload does not open", () => {
  test.each([
    ["id", { id: "env-2" }],
    ["type", { type: "message.reply" }],
    ["sender", { from: "agent://eve" }],
    ["recipient", { to: "agent://carol" }],
    ["task", { task_id: "task-2" }],
  ])("in an envelope with another %s", async (_, changes) => {
    expect(await openPayload(envelope(await sealed(), changes), keys)).toBeUndefined();
  });

  test("in an envelope whose task was taken away, or added", async () => {
    const { task_id, ...without } = SURROUNDINGS;
    const taskless: Envelope = { ...without, payload: {}, ts: 1, key_id: "k", sig: "s" };
    const { sealed: members } = await sealed();
    expect(await openPayload({ ...taskless, payload: { sealed: members } }, keys)).toBeUndefined();
    const payload = { ...(await sealPayload(plaintextOf({}), without, BOB.publicKey)) };
    expect(await openPayload({ ...taskless, payload }, keys)).toEqual({});
    expect(await openPayload({ ...taskless, task_id, payload }, keys)).toBeUndefined();
  });

  test.each([
    ["enc", async ({ enc }: SealedPayload["sealed"]) => ({ enc: flipped(enc) })],
    ["ct", async ({ ct }: SealedPayload["sealed"]) => ({ ct: flipped(ct) })],
    ["ct, which is shorter than its tag", async () => ({ ct: "AAAA" })],
    ["v", async () => ({ v: 2 })],
    ["kid of another of its keys", async () => ({ kid: await thumbprintOf(BOBS_OLD.publicKey, "X25519") })],
    ["kid of a key that is not here", async () => ({ kid: "A".repeat(43) })],
    ["kid that is no text", async () => ({ kid: 7 })],
    ["member of no name", async () => ({ more: 1 })],
    ["enc with padding", async ({ enc }: SealedPayload["sealed"]) => ({ enc: `${enc}=` })],
    ["enc that is longer", async () => ({ enc: "A".repeat(44) })],
    ["enc of small order", async () => ({ enc: "A".repeat(43) })],
  ])("with another %s", async (_, change) => {
    const { sealed: members } = await sealed();
    expect(await openChanged(await change(members))).toBeUndefined();
    expect(await openPayload(envelope({ sealed: { ...members, ...(await change(members)) } }), keys)).toBeUndefined();
  });

  test("beside another member, or in another form", async () => {
    const payload = await sealed();
    expect(await openPayload(envelope({ ...payload, message: "hi" }), keys)).toBeUndefined();
    for (const other of [null, 7, [], "text", {}]) {
      expect(await openPayload(envelope({ sealed: other }), keys)).toBeUndefined();
    }
  });

  test.each([
    ["no object", "[1]"],
    ["a member named __proto__", '{"__proto__":1}'],
    ["a lone surrogate", '{"a":"\\ud800"}'],
    ["a number beyond doubles", '{"a":1e400}'],
    ["too many levels", `{"a":${"[".repeat(32)}${"]".repeat(32)}}`],
    ["too many members", `{"a":[${Array.from({ length: 2000 }, () => 1)}]}`],
    ["no JSON", "{"],
    ["more than 23,000 bytes", `{"a":"${"x".repeat(MAX_SEALED_BYTES)}"}`],
  ])("when it is what the relay would not have taken: %s", async (_, text) => {
    const aad = `{"from":"agent://alice","id":"env-1","kid":"${KID}","task_id":"task-1","to":"agent://bob","type":"message.send","v":1}`;
    const info = "agent-relay sealed payload v1";
    const bytes = (part: string) => new TextEncoder().encode(part);
    const seal = async (plaintext: string) => {
      const context = { info: bytes(info), aad: bytes(aad) };
      const { enc, ct } = await sealBytes(Buffer.from(BOB.publicKey, "base64url"), bytes(plaintext), context);
      const [encText, ctText] = [enc, ct].map((part) => Buffer.from(part).toString("base64url"));
      return envelope({ sealed: { v: 1, kid: KID, enc: encText, ct: ctText } });
    };
    expect(await openPayload(await seal('{"a":1}'), keys)).toEqual({ a: 1 });
    expect(await openPayload(await seal(text), keys)).toBeUndefined();
  });
});

describe("Sealing refuses", () => {
  const cyclic: { self?: object } = {};
  cyclic.self = cyclic;
  const deep = JSON.parse(`${'{"a":'.repeat(33)}1${"}".repeat(33)}`);

  test.each([
    ["a list", [1]],
    ["a cycle", cyclic],
    ["33 levels", deep],
    ["2,001 members", { a: Array.from({ length: 2000 }, () => 1) }],
    ["a lone surrogate", { a: "\ud800" }],
    ["a number that is not finite", { a: Number.NaN }],
  ])("what the relay would not take as a payload: %s", async (_, payload) => {
    await expect(sealed(payload)).rejects.toMatchObject({ code: "invalid_envelope" });
  });

  test("more than fits, and the most that it takes fits into a frame", async () => {
    const most = { a: "x".repeat(MAX_SEALED_BYTES - '{"a":""}'.length) };
    const payload = await sealed(most);
    const rest = { ...envelope(payload), id: "i".repeat(128), task_id: "t".repeat(128), sig: "s".repeat(86) };
    expect(JSON.stringify(rest).length).toBeLessThan(MAX_FRAME_BYTES);
    expect(await openPayload(envelope(payload), keys)).toEqual(most);
    await expect(sealed({ a: `${most.a}x` })).rejects.toMatchObject({ code: "frame_too_large" });
  });
});

test("A key whose halves are none is refused", async () => {
  await expect(SealingKeys.from([{ ...BOB, privateKey: "AAAA" }])).rejects.toMatchObject({ code: "invalid_key" });
});

/** The same bytes but for one bit of the first. */
function flipped(text: string): string {
  const bytes = Buffer.from(text, "base64url");
  bytes[0] = (bytes[0] as number) ^ 1;
  return bytes.toString("base64url");
}

/** With members in one order. */
function sortedIn(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedIn);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .map(([name, member]) => [name, sortedIn(member)])
    .sort(([a], [b]) => ((a as string) < (b as string) ? -1 : 1));
}
