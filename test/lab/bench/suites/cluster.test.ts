import { describe, expect, test } from "@jest/globals";
import { rateFor } from "./cluster.ts";

describe("The rate that takes a share of a core", () => {
  test("is found where an envelope costs less the more there are", async () => {
    const shareAt = (perSecond: number) => (perSecond / 25_000) ** 0.6;
    const found = await rateFor(0.6, async (perSecond) => shareAt(perSecond));
    expect(Math.abs(shareAt(found) - 0.6)).toBeLessThanOrEqual(0.02);
  });

  test("is found where it is less than the first that is looked at", async () => {
    const found = await rateFor(0.6, async (perSecond) => perSecond / 2000);
    expect(Math.abs(found - 1200)).toBeLessThanOrEqual(40);
  });

  test("is come to in strides, since a load that is too much is refused", async () => {
    const looks: number[] = [];
    await rateFor(0.6, async (perSecond) => {
      looks.push(perSecond);
      return 0.01;
    });
    const strides = looks.slice(1).map((rate, n) => rate / (looks[n] as number));
    expect(Math.max(...strides)).toBeLessThanOrEqual(1.51);
  });

  test("is the nearest of those looked at, where the share is out of reach", async () => {
    const reachable = (perSecond: number) => 0.5 - Math.abs(perSecond - 20_000) / 1e6;
    const looks: number[] = [];
    const found = await rateFor(0.6, async (perSecond) => {
      looks.push(perSecond);
      return reachable(perSecond);
    });
    expect(reachable(found)).toBe(Math.max(...looks.map(reachable)));
  });
});
