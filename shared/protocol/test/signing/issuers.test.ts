import { describe, expect, test } from "@jest/globals";
import { type IssuerRecord, KeysFile } from "../../src/contract/keys-file.ts";
import { KeyRing, KeysFileError } from "../../src/signing/key-ring.ts";
import { CREDENTIAL_LIMITS } from "../../src/wire/limits.ts";
import { CLAIMS, credential, ISSUER, NOW, newKeys, RECORD } from "./issuing.ts";

const at = (ms: number) => new Date(ms).toISOString();
const SIGNING_KEY = newKeys();
const listed = (id: string, ...agents: string[]) => ({ key_id: id, alg: "ed25519", public_key: SIGNING_KEY.x, agents });

function ring(issuers: readonly object[], signing: readonly object[] = []): KeyRing {
  return KeyRing.from(KeysFile.parse({ issuers, signing_keys: signing }));
}
const withRecord = (changes: Partial<IssuerRecord>, ...others: object[]) =>
  ring([{ ...RECORD, ...changes }, ...others]);
const judged = async (keys: KeyRing, claims = {}, now = NOW) => keys.issuers.problemOf(await credential(claims), now);

describe("a credential", () => {
  test("holds under the issuer that its agent belongs to", async () => {
    const keys = ring([RECORD]);
    expect(await judged(keys)).toBeUndefined();
    expect(keys.issuers.keyOf(await credential())).toEqual({
      alg: "ed25519",
      publicKey: Buffer.from(ISSUER.x, "base64url"),
    });
  });

  test.each([
    ["another name", { issuer: "other" }],
    ["another key", { keys: [{ public_key: newKeys().x }] }],
  ])("of an issuer with %s is of an unknown issuer", async (_, changes) => {
    const keys = withRecord(changes);
    expect(await judged(keys)).toBe("unknown_issuer");
    if ("keys" in changes) expect(keys.issuers.keyOf(await credential())).toBeUndefined();
  });

  test("ends with its term, to the second, without leeway", async () => {
    const end = CLAIMS.exp * 1000;
    expect(await judged(ring([RECORD]), {}, end - 1)).toBeUndefined();
    expect(await judged(ring([RECORD]), {}, end)).toBe("expired");
    expect(ring([RECORD]).issuers.endOf(await credential())).toBe(end);
  });

  test("ends with the term of its issuer's key, and does not hold before its begin", async () => {
    const keys = withRecord({
      keys: [{ public_key: ISSUER.x, not_before: at(NOW + 1000), expires_at: at(NOW + 9000) }],
    });
    const found = await Promise.all([0, 1000, 8999, 9000].map((after) => judged(keys, {}, NOW + after)));
    expect(found).toEqual(["not_yet_valid", undefined, undefined, "expired"]);
    expect(keys.issuers.endOf(await credential())).toBe(NOW + 9000);
    expect([0, 1000].map((after) => keys.nextTransition(NOW + after))).toEqual([NOW + 1000, NOW + 9000]);
  });

  test.each(["iat", "nbf"])("may have an %s that is a minute ahead, not more", async (claim) => {
    const ahead = CREDENTIAL_LIMITS.maxAheadMs / 1000;
    expect(await judged(ring([RECORD]), { [claim]: CLAIMS.iat + ahead })).toBeUndefined();
    expect(await judged(ring([RECORD]), { [claim]: CLAIMS.iat + ahead + 1 })).toBe("not_yet_valid");
  });

  test("that was issued before a revocation of its agent, or of all, does not hold; a newer one does", async () => {
    const later = { iat: CLAIMS.iat + 30 };
    for (const agent of ["agent://acme.bob", "*"]) {
      const keys = withRecord({ revoked: [{ agent, issued_before: at(NOW + 30_000) }] });
      expect([await judged(keys), await judged(keys, later)]).toEqual(["revoked", undefined]);
    }
    const keys = withRecord({ revoked: [{ agent: "agent://acme.eve", issued_before: at(NOW + 30_000) }] });
    expect(await judged(keys)).toBeUndefined();
  });

  test("of two revocations of one agent the later counts", async () => {
    const agent = "agent://acme.bob";
    const keys = withRecord({ revoked: [30_000, 10_000].map((after) => ({ agent, issued_before: at(NOW + after) })) });
    expect(await judged(keys, { iat: CLAIMS.iat + 20 })).toBe("revoked");
  });
});

describe("whose an agent is, the most specific pattern says", () => {
  const OTHER = newKeys();
  const other = (...agents: string[]) => ({ issuer: "other", keys: [{ public_key: OTHER.x }], agents });

  test.each([
    ["of the issuer of its name space", [RECORD], [], undefined],
    ["of nobody", [{ ...RECORD, agents: ["agent://bob.*"] }], [], "agent_not_allowed"],
    ["of another issuer, by its id", [RECORD, other("agent://acme.bob")], [], "agent_not_allowed"],
    ["of its issuer, though another has all others", [RECORD, other("*")], [], undefined],
    [
      "of another issuer, where this one has all others",
      [{ ...RECORD, agents: ["*"] }, other("agent://acme.*")],
      [],
      "agent_not_allowed",
    ],
    ["of who has all others", [{ ...RECORD, agents: ["*"] }], [], undefined],
    ["of a listed key, by its id", [RECORD], [listed("k", "agent://acme.bob")], "agent_not_allowed"],
    [
      "of a listed key, where the issuer has all others",
      [{ ...RECORD, agents: ["*"] }],
      [listed("k", "agent://acme.*")],
      "agent_not_allowed",
    ],
    [
      "of its issuer, by its id",
      [{ ...RECORD, agents: ["agent://acme.bob"] }],
      [listed("k", "agent://acme.*")],
      undefined,
    ],
  ])("%s", async (_, issuers, signing, problem) => {
    expect(await judged(ring(issuers, signing))).toBe(problem);
  });

  test("a name space ends at its dot: agent://acme.bob.* is not the agent acme.bob, and of two the longer counts", async () => {
    const keys = ring([RECORD, other("agent://acme.bob.*")]);
    expect(await judged(keys)).toBeUndefined();
    expect(await judged(keys, { sub: "agent://acme.bob.one" })).toBe("agent_not_allowed");
    expect(await judged(keys, { sub: "agent://acme.one.two" })).toBeUndefined();
  });

  test("a listed key does not sign for an agent that an issuer has by a more specific pattern", () => {
    const entry = ring([RECORD], [listed("k", "agent://*".replace("*", "acme"), "agent://x.*")]).signingKey("k", NOW);
    expect(entry?.mayAct("agent://acme")).toBe(true);
    const wide = ring([{ ...RECORD, agents: ["agent://acme.bob"] }], [listed("k", "agent://acme.*")]).signingKey(
      "k",
      NOW,
    );
    expect(["agent://acme.bob", "agent://acme.eve"].map((agent) => wide?.mayAct(agent))).toEqual([false, true]);
  });

  test.each([
    ["two issuers with one pattern", [RECORD, other("agent://acme.*")], [], "issuers.1.agents.0"],
    ["an issuer with the pattern of a listed key", [RECORD], [listed("k", "agent://acme.*")], "issuers.0.agents.0"],
    ["two issuers of one name", [RECORD, { ...other("agent://b"), issuer: "acme" }], [], "issuers.1.issuer"],
    ["two issuers with one key", [RECORD, { ...other("agent://b"), keys: RECORD.keys }], [], "issuers.1.keys.0"],
    ["a key of small order", [{ ...RECORD, keys: [{ public_key: "A".repeat(43) }] }], [], "issuers.0.keys.0"],
  ])("a keys file with %s is invalid", (_, issuers, signing, place) => {
    expect(() => ring(issuers, signing)).toThrow(KeysFileError);
    expect(() => ring(issuers, signing)).toThrow(place);
  });

  test("two listed keys of one agent are valid: so keys are replaced", () => {
    expect(
      ring([RECORD], [listed("old", "agent://a"), listed("new", "agent://a")]).signingKey("new", NOW),
    ).toBeDefined();
  });

  test("ids of credential keys and patterns that are none do not stand in a keys file", () => {
    expect(() => ring([], [listed("jkt-abc", "agent://a")])).toThrow();
    expect(() => ring([{ ...RECORD, agents: ["agent://*"] }])).toThrow();
    expect(() => ring([], [listed("k", "*")])).toThrow();
  });
});
