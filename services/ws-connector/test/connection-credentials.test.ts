import { expect, test } from "@jest/globals";
import { KeysFile } from "relay-protocol/contract/keys-file.ts";
import { KeyRing } from "relay-protocol/signing/key-ring.ts";
import {
  AGENT,
  CLAIMS,
  credential,
  NOW,
  newKeys,
  publicJwk,
  RECORD,
} from "../../../shared/protocol/test/signing/issuing.ts";
import { ConnectionCredentials } from "../src/agents/credentials.ts";

const RING = KeyRing.from(KeysFile.parse({ issuers: [RECORD] }));
const WITHOUT_ISSUER = KeyRing.from(KeysFile.parse({}));
const OF_ANOTHER = KeyRing.from(KeysFile.parse({ issuers: [{ ...RECORD, agents: ["agent://other.*"] }] }));
const BOB = "agent://acme.bob";
const END = CLAIMS.exp * 1000;

/** A credential for another key of the agent, that ends some seconds later. */
async function another(seconds = 0) {
  const { x } = newKeys();
  return await credential({ cnf: { jwk: { kty: "OKP", crv: "Ed25519", x } }, exp: CLAIMS.exp + seconds });
}

const keyIds = (held: ConnectionCredentials, ...candidates: { keyId: string }[]) =>
  candidates.map(({ keyId }) => held.keyOf(keyId, BOB, RING, NOW)?.keyId === keyId);

test("a key signs once its register was accepted, and its agent is held from its presentation on", async () => {
  const held = new ConnectionCredentials();
  const bobs = await credential();
  held.presented(bobs);
  expect([held.keyOf(bobs.keyId, BOB, RING, NOW), held.mayAct(BOB, RING, NOW)]).toEqual([undefined, true]);
  held.accepted(bobs);
  expect(held.keyOf(bobs.keyId, BOB, RING, NOW)).toMatchObject({ keyId: `jkt-${AGENT.thumbprint}`, issuer: "acme" });
  expect([held.mayAct(BOB, RING, NOW), held.mayAct("agent://acme.eve", RING, NOW)]).toEqual([true, false]);
});

test("a register that is refused leaves nothing, and takes nothing away", async () => {
  const held = new ConnectionCredentials();
  const [first, second] = [await credential(), await another()];
  held.presented(second);
  held.refused(second);
  expect(held.mayAct(BOB, RING, NOW)).toBe(false);
  held.accepted(first);
  held.presented(second);
  held.refused(second);
  held.refused(first);
  expect(keyIds(held, first, second)).toEqual([true, false]);
});

test("of an agent the last two keys sign", async () => {
  const held = new ConnectionCredentials();
  const [first, second, third] = [await credential(), await another(), await another()];
  for (const each of [first, second]) held.accepted(each);
  expect(keyIds(held, first, second)).toEqual([true, true]);
  held.accepted(third);
  expect(keyIds(held, first, second, third)).toEqual([false, true, true]);
});

test("a renewed credential takes the place of the one for its key", async () => {
  const held = new ConnectionCredentials();
  const [other, first, renewed] = [await another(), await credential(), await credential({ exp: CLAIMS.exp + 60 })];
  for (const each of [other, first, renewed]) held.accepted(each);
  expect(keyIds(held, other, first)).toEqual([true, true]);
  expect(held.keyOf(first.keyId, BOB, RING, END)).toBeDefined();
  expect([held.lastEnd(BOB, RING), held.nextEnd]).toEqual([END + 60_000, END]);
  held.forgetEnded(END);
  expect([held.nextEnd, keyIds(held, other, first)]).toEqual([END + 60_000, [false, true]]);
});

test("of two credentials for one key the last counts, also where it ends sooner", async () => {
  const held = new ConnectionCredentials();
  const [long, brief] = [await credential({ exp: CLAIMS.exp + 60 }), await credential()];
  for (const each of [long, brief]) held.accepted(each);
  expect(held.lastEnd(BOB, RING)).toBe(END);
  expect([END - 1, END].map((now) => held.mayAct(BOB, RING, now))).toEqual([true, false]);
  expect(known(held)).toEqual([[brief.token], END]);
});

test("an agent is held until its last credential ends, or its issuer goes", async () => {
  const held = new ConnectionCredentials();
  for (const each of [await credential(), await another(60)]) held.accepted(each);
  expect([END, END + 60_000].map((now) => held.mayAct(BOB, RING, now))).toEqual([true, false]);
  const { keyId } = await credential();
  expect([END - 1, END].map((now) => held.keyOf(keyId, BOB, RING, now)?.keyId)).toEqual([keyId, undefined]);
  expect(held.problemOf(BOB, RING, END + 60_000)).toBe("expired");
  expect(held.mayAct(BOB, WITHOUT_ISSUER, NOW)).toBe(false);
  expect(held.problemOf(BOB, WITHOUT_ISSUER, NOW)).toBe("unknown_issuer");
});

test("a key signs by the keys file that is, not by one that was", async () => {
  const held = new ConnectionCredentials();
  const bobs = await credential();
  held.accepted(bobs);
  const signs = [RING, WITHOUT_ISSUER, RING, OF_ANOTHER].map(
    (ring) => held.keyOf(bobs.keyId, BOB, ring, NOW) !== undefined,
  );
  expect(signs).toEqual([true, false, true, false]);
});

test("an agent is held, and its end told, by the keys file that is, before its register is answered and after", async () => {
  const held = new ConnectionCredentials();
  const bobs = await credential();
  const judged = () =>
    [RING, WITHOUT_ISSUER, RING, OF_ANOTHER].map((ring) => [held.mayAct(BOB, ring, NOW), held.lastEnd(BOB, ring)]);
  const expected = [
    [true, END],
    [false, undefined],
    [true, END],
    [false, undefined],
  ];
  held.presented(bobs);
  expect(judged()).toEqual(expected);
  held.accepted(bobs);
  expect(judged()).toEqual(expected);
});

/** Of the agent, as look-ups find them. */
const known = (held: ConnectionCredentials, ring = RING, now = NOW) => {
  const { records, expiresAt } = held.holding(BOB, ring, now) ?? {};
  return [records?.map(({ token }) => token), expiresAt];
};
const NOTHING = [undefined, undefined];

test("what is held of an agent for look-ups is what its last registers brought, the newest first, one of each key", async () => {
  const held = new ConnectionCredentials();
  const [first, second, third] = [await credential(), await another(60), await another(30)];
  expect(known(held)).toEqual(NOTHING);
  held.presented(first);
  expect(known(held)).toEqual(NOTHING);
  for (const each of [first, second]) held.accepted(each);
  expect(known(held)).toEqual([[second.token, first.token], END + 60_000]);
  const renewed = await credential({ exp: CLAIMS.exp + 10 });
  held.accepted(renewed);
  expect(known(held)).toEqual([[renewed.token, second.token], END + 60_000]);
  held.accepted(third);
  expect(known(held)).toEqual([[third.token, renewed.token], END + 30_000]);
  held.forget(BOB);
  expect(known(held)).toEqual(NOTHING);
});

test("of two that differ in nothing but a sealing key the accepted one is held", async () => {
  const held = new ConnectionCredentials();
  const jwk = await publicJwk(newKeys("x25519"));
  const [plain, sealing] = [await credential(), await credential({ enc: { jwk } })];
  for (const each of [plain, sealing]) held.presented(each);
  held.accepted(sealing);
  expect(known(held)[0]).toEqual([sealing.token]);
});

test("a refused register takes away what it brought, and nothing else for its key", async () => {
  const held = new ConnectionCredentials();
  const [brief, long] = [await credential(), await credential({ exp: CLAIMS.exp + 60 })];
  for (const each of [brief, long]) held.presented(each);
  held.refused(brief);
  expect(held.lastEnd(BOB, RING)).toBe(END + 60_000);
});

test("for look-ups only what holds by the keys file and the time is held", async () => {
  const held = new ConnectionCredentials();
  const old = await another();
  const revoking = { revoked: [{ agent: BOB, issued_before: new Date(CLAIMS.iat * 1000 + 1).toISOString() }] };
  const issued = await credential({ iat: CLAIMS.iat + 1, exp: CLAIMS.exp + 60 });
  for (const each of [old, issued]) held.accepted(each);
  const REVOKING = KeyRing.from(KeysFile.parse({ issuers: [{ ...RECORD, ...revoking }] }));
  expect(known(held, REVOKING)).toEqual([[issued.token], END + 60_000]);
  expect(known(held, RING, END)).toEqual([[issued.token], END + 60_000]);
  expect(known(held, RING, END + 60_000)).toEqual(NOTHING);
  for (const ring of [WITHOUT_ISSUER, OF_ANOTHER]) expect(known(held, ring)).toEqual(NOTHING);
});

test("a key that is held keeps no memory but its own", async () => {
  const held = new ConnectionCredentials();
  const bobs = await credential();
  held.accepted(bobs);
  const key = held.keyOf(bobs.keyId, BOB, RING, NOW)?.key;
  expect(key?.alg === "ed25519" && key.publicKey.buffer.byteLength).toBe(32);
});

test("the keys of many agents are kept apart", async () => {
  const held = new ConnectionCredentials();
  const theirs = await Promise.all(Array.from({ length: 300 }, () => another()));
  const keys = theirs.map((each, n) => {
    held.accepted({ ...each, agent: `agent://acme.a${n}` });
    return held.keyOf(each.keyId, `agent://acme.a${n}`, RING, NOW)?.key;
  });
  const expected = theirs.map(({ publicKey }) => Buffer.from(publicKey, "base64url"));
  expect(keys).toEqual(expected.map((publicKey) => ({ alg: "ed25519", publicKey })));
});

test("of an agent that is forgotten nothing is held", async () => {
  const held = new ConnectionCredentials();
  const bobs = await credential();
  held.accepted(bobs);
  held.presented(await another());
  expect([held.lastEnd(BOB, RING), held.lastEnd(BOB, WITHOUT_ISSUER)]).toEqual([END, undefined]);
  held.forget(BOB);
  expect(held.lastEnd(BOB, RING)).toBeUndefined();
  expect([held.mayAct(BOB, RING, NOW), held.keyOf(bobs.keyId, BOB, RING, NOW)]).toEqual([false, undefined]);
});

test("of agents that share a key each signs under its own credential, and loses nothing with another's", async () => {
  const EVE = "agent://acme.eve";
  const held = new ConnectionCredentials();
  const [bobs, eves] = [await credential(), await credential({ sub: EVE })];
  const { keyId } = bobs;
  const signers = () => [BOB, EVE].filter((agent) => held.keyOf(keyId, agent, RING, NOW)?.mayAct(agent));
  for (const each of [bobs, eves]) held.accepted(each);
  expect(signers()).toEqual([BOB, EVE]);
  held.accepted(await credential({ exp: CLAIMS.exp + 60 }));
  expect(signers()).toEqual([BOB, EVE]);
  expect(held.keyOf(keyId, "agent://acme.stranger", RING, NOW)?.mayAct("agent://acme.stranger")).toBe(false);
  held.forget(EVE);
  expect(signers()).toEqual([BOB]);
  held.forget(BOB);
  expect(held.keyOf(keyId, BOB, RING, NOW)).toBeUndefined();
});
