import { beforeEach, describe, expect, test } from "@jest/globals";
import { IssuerRecord as RelaysRecord } from "relay-protocol/contract/keys-file.ts";
import { CredentialVerifier } from "../../src/credentials/credential-verifier.ts";
import { Issuers } from "../../src/credentials/issuers.ts";
import { SenderCredentials } from "../../src/credentials/sender-credentials.ts";
import { vouchingFor } from "../../src/credentials/vouching.ts";
import { CONNECTOR_ERRORS } from "../../src/errors.ts";
import { CREDENTIAL_LIMITS } from "../../src/limits.ts";
import {
  BOB,
  CLAIMS,
  credential,
  envelopeOf,
  ISSUER,
  issued,
  type Keys,
  NOW,
  newKeys,
  RECORD,
  SECONDS,
} from "./kit.ts";

const [OTHER, EVE, SEALING] = [await newKeys(), await newKeys(), await newKeys("X25519")];
const enc = { jwk: { kty: "OKP", crv: "X25519", x: SEALING.x } };
const at = (ms: number) => new Date(ms).toISOString();
const other = (...agents: string[]) => ({ issuer: "other", keys: [{ public_key: OTHER.x }], agents });
const ofOther = { iss: "other" };

interface Case {
  readonly pinned?: readonly object[];
  readonly ofRelay?: readonly object[];
  readonly claims?: object;
  readonly header?: object;
  readonly signer?: Keys;
  readonly time?: number;
  readonly keysOf?: string;
}

/** Who vouches: `agent`, `relay_issuer`, or the reason why nobody does. */
async function judged({ pinned = [RECORD], ofRelay = [], claims, header, signer, time = NOW, keysOf }: Case = {}) {
  const relayIssuers = await Issuers.from(ofRelay);
  const vouching = await vouchingFor(await credential(claims, header, signer), time, {
    pinned: await Issuers.from(pinned),
    ofRelay: () => Promise.resolve(relayIssuers),
    hasPinnedKeys: (agent) => agent === keysOf,
    relay: "relay.example",
  });
  return vouching.verified === "unverified" ? vouching.reason : `${vouching.verified} ${vouching.issuer}`;
}

const byOther = { claims: ofOther, header: { kid: OTHER.thumbprint }, signer: OTHER };

describe("A credential", () => {
  test("is vouched for by the issuer that was pinned, or by one that only the relay names", async () => {
    expect(await judged()).toBe("agent acme");
    expect(await judged({ pinned: [], ofRelay: [RECORD] })).toBe("relay_issuer acme");
    expect(await judged({ pinned: [RECORD], ofRelay: [RECORD] })).toBe("agent acme");
    expect(await judged({ pinned: [] })).toBe("unknown_issuer");
  });

  test("ends with its term, to the second, and begins at most a minute early", async () => {
    const end = CLAIMS.exp * 1000;
    expect(await judged({ time: end - 1 })).toBe("agent acme");
    expect(await judged({ time: end })).toBe("expired");
    const ahead = CREDENTIAL_LIMITS.maxAheadMs / 1000;
    for (const claim of ["iat", "nbf"]) {
      expect(await judged({ claims: { [claim]: SECONDS + ahead } })).toBe("agent acme");
      expect(await judged({ claims: { [claim]: SECONDS + ahead + 1 } })).toBe("not_yet_valid");
    }
  });

  test("holds in the term of its issuer's key only", async () => {
    const key = { public_key: ISSUER.x, not_before: at(NOW + 1000), expires_at: at(NOW + 9000) };
    const pinned = [{ ...RECORD, keys: [key] }];
    const found = await Promise.all([0, 1000, 8999, 9000].map((after) => judged({ pinned, time: NOW + after })));
    expect(found).toEqual(["not_yet_valid", "agent acme", "agent acme", "expired"]);
  });

  test("that was issued before a revocation of its agent, or of all, does not hold; a newer one does", async () => {
    for (const agent of ["agent://acme.bob", "*"]) {
      const revoked = [30, 10].map((after) => ({ agent, issued_before: at(NOW + after * 1000) }));
      const pinned = [{ ...RECORD, revoked }];
      expect(await judged({ pinned, claims: { iat: SECONDS + 29 } })).toBe("revoked");
      expect(await judged({ pinned, claims: { iat: SECONDS + 30 } })).toBe("agent acme");
    }
    const revoked = [{ agent: "agent://acme.eve", issued_before: at(NOW + 30_000) }];
    expect(await judged({ pinned: [{ ...RECORD, revoked }] })).toBe("agent acme");
  });

  test("that another key signed is not its issuer's, however often it is judged", async () => {
    const pinned = await Issuers.from([RECORD]);
    const forged = await credential({}, {}, OTHER);
    expect([await pinned.problemAt(forged, NOW), await pinned.problemAt(forged, NOW)]).toEqual([
      "signature",
      "signature",
    ]);
    expect(await pinned.problemAt(await credential(), NOW)).toBeUndefined();
  });

  test("that names an issuer's other key is of an unknown issuer", async () => {
    expect(await judged({ header: { kid: OTHER.thumbprint }, signer: OTHER })).toBe("unknown_issuer");
  });

  test("for other relays holds at none but those", async () => {
    expect(await judged({ claims: { aud: ["elsewhere.example"] } })).toBe("wrong_relay");
    expect(await judged({ claims: { aud: ["elsewhere.example", "relay.example"] } })).toBe("agent acme");
  });
});

describe("What was pinned decides alone: a relay", () => {
  test("adds no key to a pinned issuer", async () => {
    const ofRelay = [{ ...RECORD, keys: [{ public_key: OTHER.x }] }];
    expect(await judged({ ofRelay, header: { kid: OTHER.thumbprint }, signer: OTHER })).toBe("unknown_issuer");
  });

  test("gives a pinned issuer no other agents", async () => {
    const ofRelay = [{ ...RECORD, agents: ["*"] }];
    expect(await judged({ ofRelay, claims: { sub: "agent://eve" } })).toBe("agent_not_allowed");
  });

  test("names no other issuer for an agent that a pinned one names", async () => {
    expect(await judged({ ofRelay: [other("agent://acme.bob")], ...byOther })).toBe("agent_not_allowed");
    const everybody = [{ ...RECORD, agents: ["*"] }];
    expect(await judged({ pinned: everybody, ofRelay: [other("agent://acme.*")], ...byOther })).toBe(
      "relay_issuer other",
    );
  });

  test("vouches for no agent with pinned keys, and neither does a pinned issuer", async () => {
    expect(await judged({ keysOf: "agent://acme.bob" })).toBe("agent_not_allowed");
    expect(await judged({ pinned: [], ofRelay: [RECORD], keysOf: "agent://acme.bob" })).toBe("agent_not_allowed");
  });
});

describe("Whose an agent is, the most specific pattern says", () => {
  test.each([
    ["of nobody", [{ ...RECORD, agents: ["agent://bob.*"] }], "agent_not_allowed"],
    ["of another issuer, by its id", [RECORD, other("agent://acme.bob")], "agent_not_allowed"],
    ["of its issuer, though another has all others", [RECORD, other("*")], "agent acme"],
    [
      "of another, where its issuer has all others",
      [{ ...RECORD, agents: ["*"] }, other("agent://acme.*")],
      "agent_not_allowed",
    ],
    ["of who has all others", [{ ...RECORD, agents: ["*"] }], "agent acme"],
    ["of its issuer: a name space ends at its dot", [RECORD, other("agent://acme.bob.*")], "agent acme"],
  ])("%s", async (_, pinned, expected) => {
    expect(await judged({ pinned })).toBe(expected);
  });

  test("of two name spaces the longer counts", async () => {
    const pinned = [RECORD, other("agent://acme.bob.*")];
    expect(await judged({ pinned, claims: { sub: "agent://acme.bob.one" } })).toBe("agent_not_allowed");
    expect(await judged({ pinned, claims: { sub: "agent://acme.one.two" } })).toBe("agent acme");
  });
});

const revokedAt = (issued_before: string) => ({ ...RECORD, revoked: [{ agent: "*", issued_before }] });

test.each([
  "2026-01-01T00:00:00Z",
  "2024-02-29T23:59:59.1234567+23:59",
  "0000-02-29T00:00:00-00:00",
  "2026-02-29T00:00:00Z",
  "2026-02-30T00:00:00Z",
  "2026-01-00T00:00:00Z",
  "2026-13-01T00:00:00Z",
  "2026-01-01T24:00:00Z",
  "2026-01-01T23:59:60Z",
  "2026-01-01T00:00Z",
  "2026-01-01T00:00:00",
  "2026-01-01T00:00:00+24:00",
  "2026-01-01T00:00:00+12:60",
  "2026-01-01t00:00:00z",
])("a record with the time %s can be used where the relay can use it", async (time) => {
  const { success: relayTakesIt } = RelaysRecord.safeParse(revokedAt(time));
  const taken = Issuers.from([revokedAt(time)]).then(
    () => true,
    () => false,
  );
  expect(await taken).toBe(relayTakesIt);
});

test.each([
  ["nothing", undefined],
  ["no agents", { ...RECORD, agents: undefined }],
  ["an empty list of agents", { ...RECORD, agents: [] }],
  ["a pattern that is none", { ...RECORD, agents: ["agent://*"] }],
  ["no key", { ...RECORD, keys: [] }],
  ["a key of small order", { ...RECORD, keys: [{ public_key: "A".repeat(43) }] }],
  ["a time that is none", { ...RECORD, keys: [{ public_key: ISSUER.x, expires_at: "tomorrow" }] }],
  ["a time without an offset", { ...RECORD, keys: [{ public_key: ISSUER.x, expires_at: "2027-01-01T00:00:00" }] }],
  ["a name that is none", { ...RECORD, issuer: "a b" }],
  ["a misspelt member", { ...RECORD, revokd: [] }],
  ["a revocation of a name space", { ...RECORD, revoked: [{ agent: "agent://acme.*", issued_before: at(NOW) }] }],
  ["a revocation without a time", { ...RECORD, revoked: [{ agent: "*" }] }],
])("a record with %s is invalid", async (_, record) => {
  await expect(Issuers.from([record])).rejects.toMatchObject({ code: "invalid_issuer" });
});

test.each([
  ["one name", [RECORD, { ...other("agent://b"), issuer: "acme" }]],
  ["one key", [RECORD, { ...other("agent://b"), keys: RECORD.keys }]],
  ["one pattern", [RECORD, other("agent://acme.*")]],
])("two issuers with %s are invalid", async (_, records) => {
  await expect(Issuers.from(records)).rejects.toMatchObject({ code: "invalid_issuer" });
});

describe("The verifier of credentials", () => {
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
});
