import { createHash, generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import type { ApiKeyRecord, SigningKeyRecord } from "../../src/contract/keys-file.ts";
import { apiKeyOf, generateApiKey, hashApiKey } from "../../src/signing/api-key.ts";
import { KeyRing, KeysFileError, keyIdOf } from "../../src/signing/key-ring.ts";

const SECRET = Buffer.alloc(32, 1).toString("base64url");
const signingKey = (record: { key_id: string } & Partial<SigningKeyRecord>) =>
  ({ alg: "hmac-sha256", secret: SECRET, agents: ["agent://bob"], ...record }) as SigningKeyRecord;
const ed25519Key = (key_id: string): SigningKeyRecord => {
  const { x = "" } = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
  return { key_id, alg: "ed25519", public_key: x, agents: ["agent://bob"] };
};
const apiKey = (record: Partial<ApiKeyRecord>): ApiKeyRecord => ({
  id: "bob-gateway",
  sha256: "0".repeat(64),
  agents: ["agent://bob"],
  ...record,
});
const ring = (signing: SigningKeyRecord[], api: ApiKeyRecord[] = []) =>
  KeyRing.from({ signing_keys: signing, api_keys: api, issuers: [] });

const START = "2027-01-01T00:00:00Z";
const END = "2027-06-01T02:00:00+02:00";
const START_MS = Date.UTC(2027, 0, 1);
const END_MS = Date.UTC(2027, 5, 1);

describe("A signing key", () => {
  test("may act for the exact ids of its list", () => {
    const entry = ring([signingKey({ key_id: "k", agents: ["agent://bob", "agent://carol"] })]).signingKey("k", 0);
    expect(["agent://bob", "agent://carol", "agent://dave", "agent://bob.x"].map((id) => entry?.mayAct(id))).toEqual([
      ...[true, true, false, false],
    ]);
  });

  test("may act for a team's namespace, not for the team's own name or one that begins alike", () => {
    const entry = ring([signingKey({ key_id: "k", agents: ["agent://bob.*"] })]).signingKey("k", 0);
    expect(entry?.mayAct("agent://bob.x")).toBe(true);
    expect(entry?.mayAct("agent://bob.x.y")).toBe(true);
    expect(entry?.mayAct("agent://bob")).toBe(false);
    expect(entry?.mayAct("agent://bobby")).toBe(false);
    expect(entry?.mayAct("agent://bob.*")).toBe(true);
  });

  test("is in force from not_before, inclusive, until expires_at, exclusive", () => {
    const keys = ring([signingKey({ key_id: "k", not_before: START, expires_at: END })]);
    const times = [START_MS - 1, START_MS, END_MS - 1, END_MS];
    expect(times.map((now) => keys.signingKey("k", now) !== undefined)).toEqual([false, true, true, false]);
    const { identity = "" } = keys.signingKey("k", START_MS) ?? {};
    expect(times.map((now) => keys.mayAct(identity, "agent://bob", now))).toEqual([false, true, true, false]);
  });

  test("is another key when its public key, its secret or its algorithm is another, and no longer acts for anyone", () => {
    const other = Buffer.alloc(32, 2).toString("base64url");
    const records = [
      signingKey({ key_id: "k" }),
      signingKey({ key_id: "k", secret: other }),
      ed25519Key("k"),
      ed25519Key("k"),
    ];
    const rings = records.map((record) => ring([record]));
    const identities = rings.map((keys) => keys.signingKey("k", 0)?.identity ?? "");
    expect(new Set(identities).size).toBe(4);
    expect(identities.map(keyIdOf)).toEqual(["k", "k", "k", "k"]);
    for (const [index, keys] of rings.entries()) {
      const acting = identities.filter((identity) => keys.mayAct(identity, "agent://bob", 0));
      expect(acting).toEqual([identities[index]]);
    }
  });

  test("is the same key when only its term or its agents change", () => {
    const record = signingKey({ key_id: "k" });
    const [one, other] = [record, { ...record, agents: ["agent://bob", "agent://carol"], expires_at: END }].map(
      (each) => ring([each]).signingKey("k", 0)?.identity,
    );
    expect(one).toBe(other);
  });

  test("that is not in the file is unknown, whatever its name", () => {
    const keys = ring([signingKey({ key_id: "k" })]);
    for (const name of ["other", "", "__proto__", "constructor", "gateway-k"]) {
      expect(keys.signingKey(name, 0)).toBeUndefined();
      expect(keys.mayAct(name, "agent://bob", 0)).toBe(false);
    }
  });

  test("is rotated by a second key for the same agent, each in its own term", () => {
    const keys = ring([
      signingKey({ key_id: "old", expires_at: END }),
      signingKey({ key_id: "new", not_before: START }),
    ]);
    const inForce = (now: number) =>
      ["old", "new"].filter((keyId) => keys.signingKey(keyId, now)?.mayAct("agent://bob"));
    expect(inForce(START_MS - 1)).toEqual(["old"]);
    expect(inForce(START_MS)).toEqual(["old", "new"]);
    expect(inForce(END_MS)).toEqual(["new"]);
  });
});

describe("An API key", () => {
  const text = generateApiKey();
  const other = generateApiKey();
  const keys = ring([], [apiKey({ sha256: hashApiKey(text), not_before: START, expires_at: END })]);

  test("is found by its text while it is in force", () => {
    expect(keys.apiKey(text, START_MS)?.id).toBe("bob-gateway");
    expect(keys.apiKey(text, START_MS)?.mayAct("agent://bob")).toBe(true);
    expect(keys.apiKey(text, START_MS)?.mayAct("agent://carol")).toBe(false);
    expect(keys.apiKey(text, START_MS - 1)).toBeUndefined();
    expect(keys.apiKey(text, END_MS)).toBeUndefined();
  });

  test("that is unknown is not found", () => {
    expect(keys.apiKey(other, START_MS)).toBeUndefined();
    expect(keys.apiKey("", START_MS)).toBeUndefined();
  });
});

describe("A key ring", () => {
  test("tells when the next key comes into force or expires", () => {
    const keys = ring([signingKey({ key_id: "k", expires_at: END })], [apiKey({ not_before: START })]);
    expect(keys.nextTransition(0)).toBe(START_MS);
    expect(keys.nextTransition(START_MS)).toBe(END_MS);
    expect(keys.nextTransition(END_MS)).toBe(Number.POSITIVE_INFINITY);
    expect(ring([]).nextTransition(0)).toBe(Number.POSITIVE_INFINITY);
  });

  test("refuses a file with all its faults at once, and quotes no key", () => {
    const weak = Buffer.alloc(32).toString("base64url");
    const build = () =>
      ring(
        [
          signingKey({ key_id: "twice" }),
          signingKey({ key_id: "twice" }),
          signingKey({ key_id: "weak", alg: "ed25519", public_key: weak } as Partial<SigningKeyRecord> & {
            key_id: string;
          }),
          signingKey({ key_id: "short", secret: "c2hvcnQ" } as Partial<SigningKeyRecord> & { key_id: string }),
        ],
        [apiKey({}), apiKey({}), apiKey({ id: "same-hash" })],
      );
    expect(build).toThrow(KeysFileError);
    try {
      build();
    } catch (error) {
      const places = (error as KeysFileError).problems.map((problem) => problem.split(": ")[0]);
      expect(places).toEqual([
        "signing_keys.1.key_id",
        "api_keys.1.id",
        "api_keys.1.sha256",
        "api_keys.2.sha256",
        "signing_keys.2",
        "signing_keys.3",
      ]);
      expect(String(error)).not.toContain(weak);
      expect(String(error)).not.toContain("c2hvcnQ");
    }
  });
});

test("A signer speaks for an agent whose record matches, its key's or that of the issuer of its credential, and for no other", () => {
  const { x = "" } = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
  const issuer = { issuer: "acme", keys: [{ public_key: x }], agents: ["agent://acme.*"], revoked: [] };
  const listed = signingKey({ key_id: "k", agents: ["agent://bob", "agent://team.*"], expires_at: END });
  const keys = KeyRing.from({ signing_keys: [listed], api_keys: [], issuers: [issuer] });
  const agents = ["agent://bob", "agent://team.a", "agent://acme.a", "agent://carol"];
  const spokenForBy = (signer: { keyId: string; issuer?: string }, now: number) =>
    agents.filter((agent) => keys.speaksFor(signer, agent, now));
  expect(spokenForBy({ keyId: "k" }, END_MS - 1)).toEqual(["agent://bob", "agent://team.a"]);
  expect(spokenForBy({ keyId: "k" }, END_MS)).toEqual([]);
  expect(spokenForBy({ keyId: "jkt-x", issuer: "acme" }, 0)).toEqual(["agent://acme.a"]);
});

describe("The agents that a record lists one by one", () => {
  const record = (terms: object = {}) =>
    signingKey({ key_id: "k", agents: ["agent://bob", "agent://team.*"], ...terms });

  test("are those of a key in force, without its namespaces", () => {
    const keys = ring([record({ not_before: START, expires_at: END })]);
    expect(keys.agentsOfKey("k", START_MS)).toEqual(["agent://bob"]);
    expect([
      keys.agentsOfKey("k", START_MS - 1),
      keys.agentsOfKey("k", END_MS),
      keys.agentsOfKey("other", START_MS),
    ]).toEqual([undefined, undefined, undefined]);
  });

  test("are those of an issuer while a key of it is in force, also where it may speak for any agent", () => {
    const { x = "" } = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
    const issuer = {
      issuer: "acme",
      keys: [{ public_key: x, expires_at: END }],
      agents: ["*", "agent://bob"],
      revoked: [],
    };
    const keys = KeyRing.from({ signing_keys: [], api_keys: [], issuers: [issuer] });
    expect(keys.agentsOfIssuer("acme", END_MS - 1)).toEqual(["agent://bob"]);
    expect([keys.agentsOfIssuer("acme", END_MS), keys.agentsOfIssuer("globex", 0)]).toEqual([undefined, undefined]);
  });
});

describe("An API key", () => {
  test("looks like rk_, 30 base62 characters and 6 of checksum, and is a new one each time", () => {
    const keys = Array.from({ length: 200 }, generateApiKey);
    for (const key of keys) {
      expect(key).toMatch(/^rk_[0-9A-Za-z]{36}$/);
      expect(apiKeyOf(key.slice(3, 33))).toBe(key);
    }
    expect(new Set(keys).size).toBe(keys.length);
    expect(new Set(keys.flatMap((key) => [...key.slice(3, 33)])).size).toBe(62);
  });

  test("carries the CRC-32 of its 30 characters, in base62 with leading zeros", () => {
    expect(apiKeyOf("Relay0123456789abcdefghijkLMNO")).toBe("rk_Relay0123456789abcdefghijkLMNO2d1faw");
    expect(apiKeyOf("000000000000000000000000000405")).toBe("rk_00000000000000000000000000040500azb7");
  });

  test("is kept as the SHA-256 of its whole text", () => {
    const key = generateApiKey();
    expect(hashApiKey(key)).toBe(createHash("sha256").update(key).digest("hex"));
  });
});
