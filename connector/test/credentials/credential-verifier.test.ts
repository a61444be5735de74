import { beforeEach, expect, test } from "@jest/globals";
import { CredentialVerifier } from "../../src/credentials/credential-verifier.ts";
import { Issuers } from "../../src/credentials/issuers.ts";
import { SenderCredentials } from "../../src/credentials/sender-credentials.ts";
import { CONNECTOR_ERRORS } from "../../src/errors.ts";
import { BOB, envelopeOf, issued, NOW, newKeys, RECORD } from "./kit.ts";

const EVE = await newKeys();
const SEALING = await newKeys("X25519");
const enc = { jwk: { kty: "OKP", crv: "X25519", x: SEALING.x } };

/** What the relay answers to any look-up. */
let token: string;
let isDown: boolean;
let verifier: CredentialVerifier;

async function verifierWith(pinned: readonly object[], ofRelay: readonly object[] = []): Promise<CredentialVerifier> {
  const relayIssuers = await Issuers.from(ofRelay);
  const ask = () => {
    if (isDown) return Promise.reject(new TypeError("fetch failed"));
    return Promise.resolve({ status: 200, headers: {}, text: JSON.stringify({ credential: token }) });
  };
  return new CredentialVerifier(new SenderCredentials(ask), {
    pinned: await Issuers.from(pinned),
    ofRelay: () => Promise.resolve(relayIssuers),
    hasPinnedKeys: () => false,
    relay: "relay.example",
  });
}

beforeEach(async () => {
  token = issued({ enc });
  isDown = false;
  verifier = await verifierWith([RECORD]);
});

test("An envelope is its agent's when a pinned issuer vouches for the key, and the relay's word when only it names the issuer", async () => {
  const vouched = { issuer: "acme", credential: { token, agent: "agent://acme.bob" } };
  expect(await verifier.check(envelopeOf(BOB))).toMatchObject({ verified: "agent", ...vouched });
  const unpinned = await verifierWith([], [RECORD]);
  expect(await unpinned.check(envelopeOf(BOB))).toMatchObject({ verified: "relay_issuer", ...vouched });
});

test("The term is judged at the time of the envelope, and an issuer that nobody named vouches for nothing", async () => {
  expect(await verifier.check(envelopeOf(BOB, { ts: NOW + 3_600_000 }))).toEqual({
    verified: "unverified",
    reason: "expired",
  });
  const nobody = await verifierWith([]);
  expect(await nobody.check(envelopeOf(BOB))).toEqual({ verified: "unverified", reason: "unknown_issuer" });
});

test("An envelope that its key did not sign is forged, whoever issued the credential", async () => {
  const envelope = envelopeOf(BOB);
  expect(await verifier.check({ ...envelope, payload: { n: 2 } })).toBe("forged");
  const forged = { ...envelopeOf(EVE), key_id: envelope.key_id };
  expect(await verifier.check(forged)).toBe("forged");
  token = issued({}, {}, EVE);
  expect(await (await verifierWith([RECORD])).check(forged)).toBe("forged");
});

test("A look-up that fails, or answers with another's credential, is no verdict", async () => {
  isDown = true;
  expect(await verifier.check(envelopeOf(BOB))).toEqual({ verified: "unverified" });
  isDown = false;
  expect(await verifier.check(envelopeOf(EVE))).toEqual({ verified: "unverified" });
  expect(await verifier.check(envelopeOf(BOB, { from: "agent://acme.eve" }))).toEqual({ verified: "unverified" });
});

test("A key that has no credential is not looked up", async () => {
  const envelope = { ...envelopeOf(BOB), key_id: "bob-1" };
  expect(await verifier.check(envelope)).toEqual({ verified: "unverified" });
});

test("Payloads are sealed to a key that a pinned issuer vouches for now, and to no other", async () => {
  const bob = "agent://acme.bob";
  const codeOf = async (by: CredentialVerifier, now = NOW) =>
    await by.sealingKeyOf(bob, now, performance.now()).then(
      () => "sealed",
      ({ code, hint }) => [code, hint === CONNECTOR_ERRORS.recipient_unverified.hint],
    );
  expect(await verifier.sealingKeyOf(bob, NOW, performance.now())).toBe(SEALING.x);
  expect(await codeOf(await verifierWith([], [RECORD]))).toEqual(["recipient_unverified", true]);
  expect(await codeOf(verifier, NOW + 3_600_000)).toEqual(["recipient_unverified", false]);
  token = issued();
  expect(await codeOf(await verifierWith([RECORD]))).toEqual(["recipient_unsealable", false]);
  isDown = true;
  expect(await codeOf(await verifierWith([RECORD]))).toEqual(["recipient_unknown", false]);
});
