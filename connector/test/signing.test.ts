import { createPublicKey, verify } from "node:crypto";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { testVectors } from "relay-protocol/signing/test-vectors.ts";
import { encodeBase64url } from "../src/base64url.ts";
import { signedPart } from "../src/canonical.ts";
import { Clock } from "../src/clock.ts";
import { HttpClient } from "../src/http-client.ts";
import { importSigningKey, importVerifyKey } from "../src/keys.ts";
import { PAYLOAD_LIMITS } from "../src/limits.ts";
import { Peers } from "../src/peers.ts";
import { Signer } from "../src/signer.ts";
import type { AgentKey, Envelope, TrustedKey } from "../src/types.ts";
import { draftOf } from "../src/wire-mapping.ts";
import { testAgent } from "./kit.ts";

const HOUR_MS = 3_600_000;
const { key } = testAgent("alice");

afterEach(() => {
  jest.restoreAllMocks();
});

describe("The time that the relay told", () => {
  const NOW = 1_790_000_000_000;
  const clockAfter = (...told: readonly (readonly [offMs: number, elapsedMs: number])[]) => {
    jest.spyOn(Date, "now").mockReturnValue(NOW);
    const clock = new Clock();
    for (const [offMs, elapsedMs] of told) clock.measure(NOW + offMs, elapsedMs);
    return clock.now() - NOW;
  };

  test("does not move a clock that may be right: a start that took long is no error of a clock", () => {
    expect(clockAfter([-4900, 5000])).toBe(0);
    expect(clockAfter([-329, 330], [-1, 2])).toBe(0);
    expect(clockAfter([1900, 10])).toBe(0);
    expect(clockAfter([-2050, 100])).toBe(0);
  });

  test("moves one that is wrong by the middle of what it may be wrong by", () => {
    expect(clockAfter([HOUR_MS - 1000, 2000])).toBe(HOUR_MS);
    expect(clockAfter([-HOUR_MS, 100])).toBe(-HOUR_MS + 50);
  });

  test("counts most where the way was short, and anew after a clock was set", () => {
    expect(clockAfter([HOUR_MS - 5000, 6000], [HOUR_MS - 10, 20], [HOUR_MS - 3000, 4000])).toBe(HOUR_MS);
    expect(clockAfter([HOUR_MS, 20], [-30, 40])).toBe(0);
    expect(clockAfter([-30, 40], [HOUR_MS, 20])).toBe(HOUR_MS + 10);
  });
});

describe("An envelope that answers another", () => {
  test.each([
    [-1000, 0],
    [290_000, 290_000],
    [300_001, 0],
  ])("that is dated %i ms ahead is dated %i ms ahead itself", async (aheadMs, expected) => {
    jest.spyOn(Date, "now").mockReturnValue(1_790_000_000_000);
    const signer = new Signer(key, new Clock());
    await signer.start();
    expect((await signer.sign("{}", Date.now() + aheadMs)).ts - Date.now()).toBe(expected);
  });
});

describe("The clock that deliveries are judged by", () => {
  test.each([
    [0, 0, true],
    [299_000, 299_000, true],
    [-300_000, -300_000, true],
    [300_001, 300_000, false],
    [-365 * 24 * HOUR_MS, -300_000, false],
  ])("follows a relay that is off by %i ms for %i ms, and is trusted: %s", (off, followed, isTrusted) => {
    jest.spyOn(Date, "now").mockReturnValue(1_790_000_000_000);
    const clock = new Clock();
    clock.measure(Date.now() + off);
    expect(clock.now()).toBe(Date.now() + off);
    expect(clock.boundedNow()).toBe(Date.now() + followed);
    expect(clock.isTrusted).toBe(isTrusted);
  });
});

describe("Signing", () => {
  test.each(testVectors())(
    "agrees with the relay's test vector of $alg",
    async ({ alg, key, envelope, canonical, sig }) => {
      const signed = { ...envelope, sig } as Envelope;
      expect(signedPart(signed)).toBe(canonical);
      const keyId = envelope.key_id;
      const [agentKey, trusted] = (
        alg === "ed25519"
          ? [
              { keyId, alg, privateKey: key.private_key },
              { keyId, alg, publicKey: key.public_key },
            ]
          : [
              { keyId, alg, secret: key.secret },
              { keyId, alg, secret: key.secret },
            ]
      ) as [AgentKey, TrustedKey];
      const name = alg === "ed25519" ? "Ed25519" : "HMAC";
      const bytes = await crypto.subtle.sign(
        name,
        await importSigningKey(agentKey),
        new TextEncoder().encode(canonical),
      );
      expect(encodeBase64url(new Uint8Array(bytes))).toBe(sig);

      const http = new HttpClient("http://127.0.0.1:1", false);
      const trust = { [signed.from]: [trusted] };
      const peers = new Peers({ trust, http, relay: "127.0.0.1:1", clock: new Clock() });
      await peers.start();
      const { verifier } = peers;
      expect(await verifier.check(signed)).toEqual({ verified: "agent" });
      expect(await verifier.check({ ...signed, payload: { n: "\ud800" } })).toBe("forged");
    },
  );

  test("with an Ed25519 seed makes what node:crypto verifies", async () => {
    const { key, trusted } = testAgent("alice");
    const text = new TextEncoder().encode("any text");
    const sig = await crypto.subtle.sign("Ed25519", await importSigningKey(key), text);
    const jwk = { kty: "OKP", crv: "Ed25519", x: (trusted as { publicKey: string }).publicKey };
    expect(verify(null, text, createPublicKey({ key: jwk, format: "jwk" }), Buffer.from(sig))).toBe(true);
  });
});

describe("A key", () => {
  test.each<[string, object]>([
    ["an Ed25519 seed of another length", { alg: "ed25519", privateKey: "AAAA" }],
    ["a seed that is not base64url", { alg: "ed25519", privateKey: `${"A".repeat(42)}=` }],
    ["a secret that is too short", { alg: "hmac-sha256", secret: "A".repeat(22) }],
  ])("that cannot sign is refused: %s", async (_, key) => {
    await expect(importSigningKey({ keyId: "k", ...key } as AgentKey)).rejects.toMatchObject({ code: "invalid_key" });
  });

  test("under which one signature fits any message is refused", async () => {
    const weak = { keyId: "k", alg: "ed25519", publicKey: `AQ${"A".repeat(41)}` } as const;
    await expect(importVerifyKey(weak)).rejects.toMatchObject({ code: "invalid_key" });
  });

  test("of WebCrypto is taken as it is", async () => {
    const secret = await crypto.subtle.importKey("raw", new Uint8Array(32), { name: "HMAC", hash: "SHA-256" }, false, [
      "sign",
    ]);
    expect(await importSigningKey({ keyId: "k", alg: "hmac-sha256", secret })).toBe(secret);
  });
});

const signer = new Signer({ keyId: "k", alg: "hmac-sha256", secret: "A".repeat(43) }, new Clock());
const { maxLevels, maxMembers } = PAYLOAD_LIMITS;

function draft(payload: object): string {
  return signer.draft(draftOf({ type: "message.send", to: "agent://bob", payload }, "e", "agent://ann"));
}

function nested(levels: number): object {
  return levels === 1 ? {} : { a: nested(levels - 1) };
}

test.each([
  ["a BigInt", { n: 1n }],
  ["what is no number", { n: Number.NaN }],
])("A payload with %s is refused by that name", (_, payload) => {
  const errors = [{ field: "payload", message: expect.stringMatching(/BigInt.*NaN/) }];
  expect(() => draft(payload)).toThrow(expect.objectContaining({ code: "invalid_envelope", errors }));
});

test.each([
  ["a list", ["no", "object"]],
  ["a date", new Date()],
])("A payload that is %s is none", (_, payload) => {
  const errors = [{ field: "payload", message: expect.stringContaining('{"message"') }];
  expect(() => draft(payload)).toThrow(expect.objectContaining({ code: "invalid_envelope", errors }));
});

test.each([
  ["more levels than the relay takes", nested(maxLevels + 1)],
  ["far more levels", nested(3000)],
  ["more members than the relay takes", { a: Array(maxMembers).fill(0) }],
  ["more levels, which toJSON gives it", { toJSON: () => nested(maxLevels + 1) }],
  ["a member __proto__", { a: [JSON.parse('{"__proto__":1}')] }],
])("A payload with %s is not signed", (_, payload) => {
  const errors = [{ field: "payload", message: expect.stringMatching(/32 levels and 2000 members/) }];
  expect(() => draft(payload)).toThrow(expect.objectContaining({ code: "invalid_envelope", errors }));
});

test.each([
  ["as many levels as the relay takes", nested(maxLevels)],
  ["as many members as the relay takes", { a: Array(maxMembers - 1).fill(0) }],
  ["members that are left out", Object.fromEntries(Array.from({ length: maxMembers + 1 }, (_, n) => [n, undefined]))],
])("A payload with %s is signed", (_, payload) => {
  expect(draft(payload)).toMatch(/"payload":\{/);
});
