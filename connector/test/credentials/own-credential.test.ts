import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { Clock } from "../../src/clock.ts";
import { OwnCredential } from "../../src/credentials/own-credential.ts";
import type { RelayError } from "../../src/errors.ts";
import { CLAIMS, issued, NOW, SECONDS } from "./kit.ts";

const DAY_SECONDS = 86_400;
let own: OwnCredential | undefined;
let asked = 0;
let renewed = 0;
let failed: RelayError[];
let answer: () => Promise<string>;

beforeEach(() => {
  jest.useFakeTimers({ now: NOW, doNotFake: ["setImmediate"] });
  [asked, renewed, failed] = [0, 0, []];
});
afterEach(() => {
  own?.stop();
  jest.useRealTimers();
});

const lasting = (seconds: number, iat = SECONDS) => issued({ iat, exp: iat + seconds });

async function started(first: string): Promise<OwnCredential> {
  answer = async () => first;
  const source = () => {
    asked += 1;
    return answer();
  };
  const accept = async () => {};
  own = new OwnCredential({
    source,
    agent: CLAIMS.sub,
    clock: new Clock(),
    accept,
    renewed: () => (renewed += 1),
    failed: (error) => failed.push(error),
  });
  await own.start();
  return own;
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
  expect(present.heldAt(NOW + 10_000)).toMatchObject({ issuedAt: NOW });
  expect(present.heldAt(NOW + 120_000)).toMatchObject({ issuedAt: NOW + 50_000 });
});

test("A credential that no register has presented yet is another one than the relay refused", async () => {
  const present = await started(lasting(100));
  present.present();
  expect(await present.hasAnother()).toBe(false);
  answer = async () => lasting(200);
  expect(await present.renew()).toBe(true);
  expect(await present.hasAnother()).toBe(true);
  present.present();
  expect(await present.hasAnother()).toBe(false);
});
