import { afterAll, beforeAll, beforeEach, expect, jest, test } from "@jest/globals";
import { KeysFile } from "relay-protocol/contract/keys-file.ts";
import { isRefusal } from "relay-protocol/intake/refusal.ts";
import { type Candidate, checkBeforeSignature } from "relay-protocol/intake/steps.ts";
import { privateKeyOfSeed, sign } from "relay-protocol/signing/algorithms.ts";
import { canonicalText } from "relay-protocol/signing/canonical.ts";
import { KeyRing } from "relay-protocol/signing/key-ring.ts";
import { AGENT, issued, NOW, newKeys, RECORD } from "../../../protocol/test/signing/issuing.ts";
import { EnvelopeVerifier, IssuedTokens } from "../../src/verification/envelope-verifier.ts";
import { SignatureVerifier } from "../../src/verification/signature-verifier.ts";

const HOST = "relay.example";
const KEYS = { ring: KeyRing.from(KeysFile.parse({ issuers: [RECORD] })), hosts: new Set([HOST]) };
const SEED = Buffer.from(AGENT.privateKey.export({ format: "jwk" }).d as string, "base64url");

const signatures = new SignatureVerifier();
beforeAll(() => signatures.start());
afterAll(() => signatures.stop());

/** A verifier that remembers nothing yet; each signature that it asks for is counted. */
let verifier: EnvelopeVerifier;
const checks = jest.spyOn(signatures, "verify");
beforeEach(() => {
  verifier = new EnvelopeVerifier(signatures);
  checks.mockClear();
});

test("a token that was seen before costs no second signature; its envelope costs one each time", async () => {
  const token = await issued();
  expect([await outcomeOf(register(token)), checks.mock.calls.length]).toEqual(["verified", 2]);
  expect([await outcomeOf(register(token)), checks.mock.calls.length]).toEqual(["verified", 3]);
  expect([await outcomeOf(register(await issued({ jti: "2" }))), checks.mock.calls.length]).toEqual(["verified", 5]);
});

test("a forged token is refused however often it comes, and so is one that differs from a good one in its signature", async () => {
  const good = await issued();
  const forged = await issued({}, {}, newKeys());
  const swapped = good.slice(0, good.lastIndexOf(".")) + forged.slice(forged.lastIndexOf("."));
  await outcomeOf(register(good));
  for (const token of [forged, forged, swapped, swapped]) {
    expect(await outcomeOf(register(token))).toBe("invalid_credential");
  }
});

test("a known token does not vouch for the signature of the envelope that brings it", async () => {
  const token = await issued();
  await outcomeOf(register(token));
  const candidate = register(token);
  const envelope = { ...candidate.envelope, sig: register(token, "env-2").envelope.sig };
  expect(await outcomeOf({ ...candidate, envelope })).toBe("bad_signature");
});

test("a fault in judging an envelope is its receiver's, and keeps no other from its answer that was verified with it", async () => {
  const candidate = register(await issued());
  const mayAct = () => {
    throw new Error("a fault of ours");
  };
  const answers: string[] = [];
  verifier.verify({ ...candidate, entry: { ...candidate.entry, mayAct } }, (judge) => {
    expect(judge).toThrow("a fault of ours");
    answers.push("failed");
  });
  answers.push(await outcomeOf(candidate));
  expect(answers).toEqual(["failed", "verified"]);
});

function register(token: string, id = "env-1"): Candidate {
  const envelope = {
    id,
    type: "agent.register",
    from: "agent://acme.bob",
    payload: { credential: token, relay: HOST },
    ts: NOW,
    key_id: `jkt-${AGENT.thumbprint}`,
  };
  const sig = sign({ alg: "ed25519", privateKey: privateKeyOfSeed(SEED) }, canonicalText(envelope));
  const candidate = checkBeforeSignature(JSON.stringify({ ...envelope, sig }), KEYS, NOW);
  if (isRefusal(candidate)) throw new Error(`refused before its signature: ${candidate.detail}`);
  return candidate;
}

async function outcomeOf(candidate: Candidate): Promise<string> {
  return await new Promise((resolve) => {
    verifier.verify(candidate, (judge) => {
      const result = judge();
      resolve(isRefusal(result) ? result.code : "verified");
    });
  });
}

/** So many fill half of what is remembered. */
const HALF = 7500;

const tokenOf = (n: number) => ({ token: String(n).padEnd(1000, "t"), signature: `signature-${n}` });

/** Those with these numbers were presented, in this order. */
function presented(from: number, to: number): IssuedTokens {
  const issued = new IssuedTokens();
  for (let n = from; n < to; n += 1) issued.add(tokenOf(n));
  return issued;
}

test("10,000 tokens of 740 characters are remembered, whatever came before them", () => {
  const common = (n: number) => ({ token: String(n).padEnd(740, "t"), signature: `signature-${n}` });
  const issued = presented(1_000_000, 1_000_000 + 3 * HALF);
  for (let n = 0; n < 10_000; n += 1) issued.add(common(n));
  expect(Array.from({ length: 10_000 }, (_, n) => issued.has(common(n)))).not.toContain(false);
});

test("of more tokens the first are forgotten, so that they never take more than twice what is sure to be remembered", () => {
  expect(presented(0, 2 * HALF + 1).has(tokenOf(0))).toBe(true);
  const issued = presented(0, 2 * HALF + 2);
  expect([HALF, HALF + 1].map((n) => issued.has(tokenOf(n)))).toEqual([false, true]);
});

test("one that is presented again is remembered for as long as one that is new", () => {
  const issued = presented(0, HALF + 1);
  expect(issued.has(tokenOf(0))).toBe(true);
  for (let n = HALF + 1; n < 2 * HALF + 1; n += 1) issued.add(tokenOf(n));
  expect([issued.has(tokenOf(0)), issued.has(tokenOf(1))]).toEqual([true, false]);
});

test("another token under the signature of one that is remembered is not, however long ago that was presented", () => {
  const forged = { ...tokenOf(0), token: tokenOf(1).token };
  for (const since of [1, HALF + 1]) {
    const issued = presented(0, since);
    expect([issued.has(forged), issued.has(tokenOf(0)), issued.has(forged)]).toEqual([false, true, false]);
  }
});

test("one token counts once, however often it was verified", () => {
  const issued = presented(0, 2);
  for (let n = 0; n < 3 * HALF; n += 1) issued.add(tokenOf(1));
  expect(issued.has(tokenOf(0))).toBe(true);
});
