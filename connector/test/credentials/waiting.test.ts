import { afterEach, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { LOOK_UP, MANIFEST } from "../../src/limits.ts";
import { shared } from "../fixture.ts";
import { record } from "../kit.ts";
import { holdWaits, setTime, waitForLookUps } from "../times.ts";
import { ACME, IssuerStage, party } from "./parties.ts";

const stage = shared(new IssuerStage());

afterEach(() => {
  jest.restoreAllMocks();
});

test("A delivery waits for a second", () => {
  expect([LOOK_UP.waitMs, MANIFEST.waitMs]).toEqual([1000, 1000]);
});

test("A delivery waits for the look-up of its own sender only, once in all, and in the order of its sender", async () => {
  const [ann, eve] = [
    await stage.join(await party("agent://acme.ann"), stage.url),
    await stage.join(await party("agent://acme.eve"), stage.url),
  ];
  const bob = await stage.join(await party("agent://globex.bob"), stage.front.url, { trust: { issuers: [ACME] } });
  const truth = stage.front.lookUp;
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<undefined>();
  stage.front.lookUp = async (path) => {
    if (!path.includes("acme.ann")) return await truth(path);
    asked.resolve();
    return await answered.promise;
  };
  const { deliveries } = record(bob);
  waitForLookUps();
  const timeIsOver = holdWaits();
  for (let n = 0; n < 20; n += 1) await ann.send(bob.agent, { n });
  await asked.promise;
  await eve.send(bob.agent, {});
  await until("eve's is there", () => deliveries.length > 0);
  expect(deliveries).toMatchObject([{ from: eve.agent, verified: "agent" }]);

  setTime(LOOK_UP, "waitMs", 1000);
  timeIsOver();
  // Twenty waits, one behind the other, would take longer than this.
  await until("ann's are there", () => deliveries.length > 20);
  const anns = deliveries.slice(1);
  expect(anns.map(({ payload }) => payload.n)).toEqual(Array.from({ length: 20 }, (_, n) => n));
  expect(new Set(anns.map(({ verified }) => verified))).toEqual(new Set(["unverified"]));
  answered.resolve(undefined);
});

test("A delivery waits for a manifest that does not come, and is delivered without it", async () => {
  const ann = await stage.join(await party("agent://acme.ann"), stage.url);
  const bob = await stage.join(await party("agent://globex.bob"), stage.front.url);
  const answered = Promise.withResolvers<string>();
  const asked = Promise.withResolvers<void>();
  stage.front.manifest = async () => {
    asked.resolve();
    return await answered.promise;
  };
  const { deliveries } = record(bob);
  waitForLookUps();
  const timeIsOver = holdWaits();
  await ann.send(bob.agent, {});
  await asked.promise;
  expect(deliveries).toEqual([]);
  timeIsOver();
  await until("it is there", () => deliveries.length > 0);
  expect(deliveries[0]?.verified).toBe("unverified");
  answered.resolve("{}");
});
