import { expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { LOOK_UP, MANIFEST } from "../../src/limits.ts";
import { shared } from "../fixture.ts";
import { record } from "../kit.ts";
import { ACME, IssuerStage, party } from "./parties.ts";

const stage = shared(new IssuerStage());

test("A delivery waits for the look-up of its own sender only, a second in all, and in the order of its sender", async () => {
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
  for (let n = 0; n < 20; n += 1) await ann.send(bob.agent, { n });
  await asked.promise;
  const since = performance.now();
  await eve.send(bob.agent, {});
  await until("eve's is there", () => deliveries.length > 0);
  expect(deliveries).toMatchObject([{ from: eve.agent, verified: "agent" }]);

  await until("ann's are there", () => deliveries.length > 20);
  expect(performance.now() - since).toBeLessThan(2 * LOOK_UP.waitMs);
  const anns = deliveries.slice(1);
  expect(anns.map(({ payload }) => payload.n)).toEqual(Array.from({ length: 20 }, (_, n) => n));
  expect(new Set(anns.map(({ verified }) => verified))).toEqual(new Set(["unverified"]));
  answered.resolve(undefined);
});

test("A delivery waits a second for a manifest that does not come, and is delivered without it", async () => {
  const ann = await stage.join(await party("agent://acme.ann"), stage.url);
  const bob = await stage.join(await party("agent://globex.bob"), stage.front.url);
  const answered = Promise.withResolvers<string>();
  stage.front.manifest = () => answered.promise;
  const { deliveries } = record(bob);
  const since = performance.now();
  await ann.send(bob.agent, {});
  await until("it is there", () => deliveries.length > 0);
  expect(deliveries[0]?.verified).toBe("unverified");
  expect(performance.now() - since).toBeLessThan(2 * MANIFEST.waitMs);
  answered.resolve("{}");
});
