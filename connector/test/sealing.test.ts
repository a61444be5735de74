import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { SEALED_PAYLOAD_TEST_VECTOR } from "relay-protocol/signing/test-vectors.ts";
import { fc } from "../../test/support/fast-check.ts";
import { Clock } from "../src/clock.ts";
import { thumbprintOf } from "../src/credentials/public-jwk.ts";
import { MAX_FRAME_BYTES, MAX_SEALED_BYTES, SEALING_KEY_KEPT_MS } from "../src/limits.ts";
import type { SealingKeyPair } from "../src/options.ts";
import { openBytes, sealBytes } from "../src/sealing/hpke.ts";
import { OwnSealingKeys } from "../src/sealing/own-sealing-keys.ts";
import { isSealed, openPayload, plaintextOf, type SealedPayload, sealPayload } from "../src/sealing/sealed-payload.ts";
import { newSealingKey, SealingKeys } from "../src/sealing/sealing-keys.ts";
import type { Envelope, JsonObject } from "../src/types.ts";
import { credential, NOW, SECONDS } from "./credentials/kit.ts";

const hex = (text: string) => Uint8Array.from(Buffer.from(text, "hex"));
const base64url = (text: string) => Buffer.from(text, "hex").toString("base64url");

/** RFC 9180, appendix A.1.1, and its first encryption: the one of a single-shot. */
const VECTOR = {
  info: "4f6465206f6e2061204772656369616e2055726e",
  pkRm: "3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d",
  skRm: "4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8",
  skEm: "52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736",
  enc: "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431",
  pt: "4265617574792069732074727574682c20747275746820626561757479",
  aad: "436f756e742d30",
  ct: "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a",
};

async function keysOf(publicKey: string, privateKey: string) {
  const keys = await SealingKeys.from([{ publicKey, privateKey }]);
  const pair = keys.get(await thumbprintOf(publicKey, "X25519"));
  if (pair === undefined) throw new Error("no key");
  return pair;
}

describe("RFC 9180, A.1.1", () => {
  const context = { info: hex(VECTOR.info), aad: hex(VECTOR.aad) };
  const ciphertext = { enc: hex(VECTOR.enc), ct: hex(VECTOR.ct) };
  const recipient = () => keysOf(base64url(VECTOR.pkRm), base64url(VECTOR.skRm));

  test("opens", async () => {
    expect(Buffer.from(await openBytes(await recipient(), ciphertext, context)).toString("hex")).toBe(VECTOR.pt);
  });

  test.each([
    ["info", { ...context, info: hex("00") }, ciphertext],
    ["aad", { ...context, aad: hex("436f756e742d31") }, ciphertext],
    ["ct", context, { ...ciphertext, ct: hex(VECTOR.ct.replace("f9", "f8")) }],
    ["enc", context, { ...ciphertext, enc: hex(VECTOR.enc.replace("37", "36")) }],
    ["enc of small order", context, { ...ciphertext, enc: hex("00".repeat(32)) }],
  ])("does not open with another %s", async (_, changed, text) => {
    await expect(openBytes(await recipient(), text, changed)).rejects.toThrow();
  });

  test("seals what the key of the vector opens, each time with another key of its own", async () => {
    const sealed = [1, 2].map(() => sealBytes(hex(VECTOR.pkRm), hex(VECTOR.pt), context));
    const [one, two] = await Promise.all(sealed);
    expect(Buffer.from(await openBytes(await recipient(), one as never, context)).toString("hex")).toBe(VECTOR.pt);
    expect(one?.enc).not.toEqual(two?.enc);
    expect(one?.ct).not.toEqual(two?.ct);
  });
});

describe("Another implementation", () => {
  const suite = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes128Gcm() });
  const info = new TextEncoder().encode("agent-relay sealed payload v1");
  const aad = new TextEncoder().encode('{"from":"agent://a"}');
  const plaintext = new TextEncoder().encode('{"message":"hi"}');

  test("opens what was sealed here", async () => {
    const { publicKey, privateKey } = await newSealingKey();
    const { enc, ct } = await sealBytes(Buffer.from(publicKey, "base64url"), plaintext, { info, aad });
    const key = await suite.kem.importKey("raw", Uint8Array.from(Buffer.from(privateKey, "base64url")), false);
    const opened = await suite.open({ recipientKey: key, enc, info }, ct, aad);
    expect(new Uint8Array(opened)).toEqual(plaintext);
  });

  test("seals what is opened here", async () => {
    const { publicKey, privateKey } = await newSealingKey();
    const recipientPublicKey = await suite.kem.importKey("raw", Uint8Array.from(Buffer.from(publicKey, "base64url")));
    const { enc, ct } = await suite.seal({ recipientPublicKey, info }, plaintext, aad);
    const ciphertext = { enc: new Uint8Array(enc), ct: new Uint8Array(ct) };
    expect(await openBytes(await keysOf(publicKey, privateKey), ciphertext, { info, aad })).toEqual(plaintext);
  });

  test("makes the ciphertext of the vector, which so is one of both", async () => {
    const skE = await suite.kem.importKey("raw", hex(VECTOR.skEm), false);
    const pkE = await suite.kem.importKey("raw", hex(VECTOR.enc));
    const sender = await suite.createSenderContext({
      recipientPublicKey: await suite.kem.importKey("raw", hex(VECTOR.pkRm)),
      info: hex(VECTOR.info),
      ekm: { privateKey: skE, publicKey: pkE },
    });
    expect(Buffer.from(await sender.seal(hex(VECTOR.pt), hex(VECTOR.aad))).toString("hex")).toBe(VECTOR.ct);
  });
});

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

describe("The sealing keys of an agent", () => {
  beforeEach(() => void jest.useFakeTimers({ now: NOW, doNotFake: ["setImmediate"] }));
  afterEach(() => void jest.useRealTimers());

  const kidOf = ({ publicKey }: SealingKeyPair) => thumbprintOf(publicKey, "X25519");
  const sealedTo = ({ publicKey: x }: SealingKeyPair, seconds: number) =>
    credential({ enc: { jwk: { kty: "OKP", crv: "X25519", x } }, exp: SECONDS + seconds });

  async function holding(pair: SealingKeyPair, seconds: number): Promise<OwnSealingKeys> {
    const keys = new OwnSealingKeys(new Clock());
    await keys.start([pair]);
    await keys.take(undefined, await sealedTo(pair, seconds));
    return keys;
  }

  test("A sealing key that was replaced opens until ten minutes after its last credential, and not longer", async () => {
    const [first, second] = [await newSealingKey(), await newSealingKey()];
    const keys = await holding(first, 100);
    await keys.take(undefined, await sealedTo(first, 200));
    await keys.take([second], await sealedTo(second, 3600));
    const opens = async () =>
      [keys.get(await kidOf(first)), keys.get(await kidOf(second))].map((pair) => pair !== undefined);
    jest.setSystemTime(NOW + 200_000 + SEALING_KEY_KEPT_MS - 1);
    expect(await opens()).toEqual([true, true]);
    jest.setSystemTime(NOW + 200_000 + SEALING_KEY_KEPT_MS);
    expect(await opens()).toEqual([false, true]);
  });

  test("A credential whose sealing key is not there changes nothing, unless the agent opens nothing at all", async () => {
    const [first, second] = [await newSealingKey(), await newSealingKey()];
    const keys = await holding(first, 3600);
    for (const pairs of [undefined, [first]]) {
      await expect(keys.take(pairs, await sealedTo(second, 3600))).rejects.toMatchObject({
        code: "invalid_credential",
      });
    }
    expect(keys.get(await kidOf(first))).toBeDefined();
    await new OwnSealingKeys(new Clock()).take(undefined, await sealedTo(second, 3600));
  });

  test("A former sealing key that was given with its end opens nothing from then on", async () => {
    const [present, former] = [await newSealingKey(), await newSealingKey()];
    const keys = new OwnSealingKeys(new Clock());
    await keys.start([present, { ...former, until: NOW + 1000 }]);
    const kid = await kidOf(former);
    expect(keys.get(kid)).toBeDefined();
    jest.setSystemTime(NOW + 1000);
    expect([keys.get(kid), keys.get(await kidOf(present)) === undefined]).toEqual([undefined, false]);
  });
});
