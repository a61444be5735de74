import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { Clock } from "../../src/clock.ts";
import { thumbprintOf } from "../../src/credentials/public-jwk.ts";
import { SEALING_KEY_KEPT_MS } from "../../src/limits.ts";
import type { SealingKeyPair } from "../../src/options.ts";
import { OwnSealingKeys } from "../../src/sealing/own-sealing-keys.ts";
import { newSealingKey } from "../../src/sealing/sealing-keys.ts";
import { credential, NOW, SECONDS } from "../credentials/kit.ts";

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
    await expect(keys.take(pairs, await sealedTo(second, 3600))).rejects.toMatchObject({ code: "invalid_credential" });
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
