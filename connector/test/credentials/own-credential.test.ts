import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { Clock } from "../../src/clock.ts";
import { OwnCredential } from "../../src/credentials/own-credential.ts";
import type { RelayError } from "../../src/errors.ts";
import { RENEWAL } from "../../src/limits.ts";
import type { AgentKey, CredentialWithKeys } from "../../src/options.ts";
import { OwnSealingKeys } from "../../src/sealing/own-sealing-keys.ts";
import { Signer } from "../../src/signer.ts";
import { BOB, CLAIMS, issued, NOW, newKeys, SECONDS } from "./kit.ts";

const DAY_SECONDS = 86_400;
const OTHER = await newKeys();
let own: OwnCredential | undefined;
let asked = 0;
let renewed = 0;
let failed: RelayError[];
let clock: Clock;
let answer: () => Promise<string | CredentialWithKeys>;

beforeEach(() => {
  jest.useFakeTimers({ now: NOW, doNotFake: ["setImmediate"] });
  [asked, renewed, failed] = [0, 0, []];
});
afterEach(() => {
  own?.stop();
  jest.useRealTimers();
});

const lasting = (seconds: number, iat = SECONDS) => issued({ iat, exp: iat + seconds });
const BOBS_ID = `jkt-${BOB.thumbprint}`;
const BOBS: AgentKey = { alg: "ed25519", privateKey: BOB.d };

/** @param needed ids of keys whose envelopes have no answer yet. */
async function started(first: string | Error, needed: readonly string[] = [], key = BOBS): Promise<OwnCredential> {
  answer = async () => {
    if (first instanceof Error) throw first;
    return first;
  };
  const source = () => {
    asked += 1;
    return answer();
  };
  clock = new Clock();
  const signer = new Signer(key, clock);
  await signer.start();
  own = new OwnCredential({
    source,
    agent: CLAIMS.sub,
    clock,
    signer,
    sealingKeys: new OwnSealingKeys(clock),
    needs: (keyId) => needed.includes(keyId),
    renewed: () => (renewed += 1),
    failed: (error) => failed.push(error),
  });
  await own.start();
  return own;
}

/** A credential for a new key, with the key. */
async function another(seconds: number): Promise<CredentialWithKeys> {
  const { x, d } = await newKeys();
  const credential = issued({ cnf: { jwk: { kty: "OKP", crv: "Ed25519", x } }, exp: SECONDS + seconds });
  return { credential, key: { alg: "ed25519", privateKey: d } };
}

test.each([
  ["at the earliest", 0, 0.5],
  ["at the latest", 1, 0.8],
])(
  "A credential of 90 days is renewed %s at its share of them",
  async (_, random, share) => {
    jest.spyOn(Math, "random").mockReturnValue(random);
    const life = 90 * DAY_SECONDS;
    await started(lasting(life));
    await jest.advanceTimersByTimeAsync(share * life * 1000 - 60_000);
    expect(asked).toBe(1);
    answer = async () => lasting(life, Math.floor(Date.now() / 1000));
    await jest.advanceTimersByTimeAsync(120_000);
    // Keys are imported on another thread.
    while (renewed === 0) await new Promise((resolve) => setImmediate(resolve));
    expect([asked, renewed]).toEqual([2, 1]);
  },
  60_000,
);

const YEAR_MS = 365 * DAY_SECONDS * 1000;

/** Lets time pass while every renewal succeeds at once. */
async function passes(ms: number, life: number): Promise<void> {
  answer = async () => {
    const iat = Math.floor(Date.now() / 1000);
    return issued({ iat, exp: iat + life, jti: String(asked) });
  };
  for (let passed = 0; passed < ms; passed += 250) {
    await jest.advanceTimersByTimeAsync(250);
    // Keys are imported on another thread.
    while (renewed < asked - 1) await new Promise((resolve) => setImmediate(resolve));
  }
}

test("A relay whose clock is a year ahead does not have a new credential renewed", async () => {
  await started(lasting(3600));
  clock.measure(Date.now() + YEAR_MS);
  own?.refused();
  await passes(60_000, 3600);
  expect([asked, renewed]).toEqual([2, 1]);
});

test("Credentials that are due as soon as they come are renewed with growing waits", async () => {
  await started(lasting(100));
  clock.measure(Date.now() + YEAR_MS);
  own?.refused();
  await passes(120_000, 100);
  expect(renewed).toBeGreaterThan(3);
  expect(asked).toBeLessThan(15);
});

test("Where nothing newer comes it is asked for with growing waits, until the end", async () => {
  jest.spyOn(Math, "random").mockReturnValue(1);
  await started(lasting(3600));
  await jest.advanceTimersByTimeAsync(3_600_000);
  const askedByTheEnd = asked;
  expect(askedByTheEnd).toBeGreaterThan(10);
  expect(askedByTheEnd).toBeLessThan(30);
  await jest.advanceTimersByTimeAsync(3_600_000);
  expect(asked - askedByTheEnd).toBeLessThanOrEqual(1);
  expect([renewed, failed.length]).toEqual([0, 0]);
});

test("What was signed under the one before is vouched for by that one", async () => {
  const present = await started(lasting(100));
  answer = async () => lasting(100, SECONDS + 50);
  expect(await present.renew()).toBe(true);
  expect(present.heldAt(NOW + 10_000, BOBS_ID)).toMatchObject({ issuedAt: NOW });
  expect(present.heldAt(NOW + 120_000, BOBS_ID)).toMatchObject({ issuedAt: NOW + 50_000 });
});

test("Of a relay that takes none of the credentials, whoever reconnects asks for others ever less often", async () => {
  const present = await started(lasting(3600));
  answer = async () => issued({ exp: SECONDS + 3600, jti: String(asked) });
  const found = new Map<boolean | undefined, number>();
  for (let second = 0; second < 600; second += 1) {
    for (const each of present.registrations()) present.presented(each);
    const another = await present.hasAnother();
    found.set(another, (found.get(another) ?? 0) + 1);
    await jest.advanceTimersByTimeAsync(1000);
  }
  expect(found.get(true)).toBeGreaterThan(5);
  expect([asked, found.get(true), found.get(false)]).toEqual([asked, asked - 1, undefined]);
  expect(asked).toBeLessThan(25);
});

test("A credential that no register has presented yet is another one than the relay refused", async () => {
  const present = await started(lasting(100));
  for (const each of present.registrations()) present.presented(each);
  await jest.advanceTimersByTimeAsync(1000);
  expect(await present.hasAnother()).toBe(false);
  answer = async () => lasting(200);
  expect(await present.renew()).toBe(true);
  expect(await present.hasAnother()).toBe(true);
  for (const each of present.registrations()) present.presented(each);
  await jest.advanceTimersByTimeAsync(1000);
  expect(await present.hasAnother()).toBe(false);
});

const keyIds = (of: OwnCredential) => of.registrations().map(({ signer }) => signer.keyId);

test("A connection is registered with the key before only while it has envelopes without an answer", async () => {
  const needed = [BOBS_ID];
  const present = await started(lasting(3600), needed);
  const next = await another(3600);
  answer = async () => next;
  expect(await present.renew()).toBe(true);
  const [former, last = ""] = keyIds(present);
  expect([former, last === BOBS_ID]).toEqual([BOBS_ID, false]);
  expect([BOBS_ID, last].map((keyId) => present.heldAt(NOW, keyId)?.keyId)).toEqual([BOBS_ID, last]);
  needed.pop();
  expect(keyIds(present)).toEqual([last]);
});

test("A third key waits while the first has envelopes without an answer, and not beyond its end", async () => {
  const present = await started(lasting(100), [BOBS_ID]);
  const [second, third] = [await another(3600), await another(3600)];
  answer = async () => second;
  expect(await present.renew()).toBe(true);
  answer = async () => third;
  expect(await present.renew()).toBeUndefined();
  expect(keyIds(present)[0]).toBe(BOBS_ID);
  jest.setSystemTime(NOW + 100_000);
  expect(await present.renew()).toBe(true);
  expect([keyIds(present).length, failed]).toEqual([1, []]);
});

test("A callback that does not answer is given up, reported, and asked again with growing waits", async () => {
  jest.spyOn(Math, "random").mockReturnValue(1);
  const life = 3600;
  await started(lasting(life));
  answer = () => new Promise(() => {});
  await jest.advanceTimersByTimeAsync(0.8 * life * 1000 + RENEWAL.answerWithinMs);
  expect([asked, failed.map(({ code }) => code)]).toEqual([2, ["timeout"]]);
  answer = async () => lasting(life, SECONDS + life);
  await jest.advanceTimersByTimeAsync(RENEWAL.wait.firstMs);
  while (renewed === 0) await new Promise((resolve) => setImmediate(resolve));
  expect(asked).toBe(3);
});

test.each([
  ["timeout", "in time", () => jest.advanceTimersByTimeAsync(RENEWAL.answerWithinMs)],
  ["closed", "before the connector is closed", async () => own?.stop()],
])("Without a first credential the connector ends with %s, when it does not come %s", async (code, _, passes) => {
  await started(lasting(100));
  answer = () => new Promise(() => {});
  const failing = own?.start().catch((error) => error);
  await passes();
  expect(await failing).toMatchObject({ code });
  expect(jest.getTimerCount()).toBeLessThanOrEqual(1);
});

test.each<[string, () => string | Error]>([
  ["is of another key", () => issued({ cnf: { jwk: { kty: "OKP", crv: "Ed25519", x: OTHER.x } } })],
  ["is of another agent", () => issued({ sub: "agent://acme.eve" })],
  ["is none", () => "a.b.c"],
  ["its callback fails to give", () => new Error("no file")],
])("A credential that %s is refused before anything is sent", async (_, given) => {
  const first = given();
  const cause = first instanceof Error ? { cause: first } : {};
  await expect(started(first)).rejects.toMatchObject({ code: "invalid_credential", ...cause });
});

test("A private key that cannot be read is told from another's by what it signs", async () => {
  const jwk = { kty: "OKP", crv: "Ed25519", x: BOB.x, d: BOB.d };
  const privateKey = await crypto.subtle.importKey("jwk", jwk, "Ed25519", false, ["sign"]);
  const key = { alg: "ed25519", privateKey } as const;
  expect((await started(issued(), [], key)).registrations()).toMatchObject([{ signer: { keyId: BOBS_ID } }]);
  own?.stop();
  const others = issued({ cnf: { jwk: { kty: "OKP", crv: "Ed25519", x: OTHER.x } } });
  await expect(started(others, [], key)).rejects.toMatchObject({ code: "invalid_credential" });
});
