import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import type { Shown } from "../../deploy/keys/in-force.ts";

/** What the clock shows, which moves by what is waited for. */
let now: number;
jest.unstable_mockModule("node:timers/promises", () => ({
  setTimeout: async (ms: number) => {
    now += ms;
  },
}));
const { NotInForceError, untilInForce } = await import("../../deploy/keys/in-force.ts");

const URL = "http://relay.test";

beforeEach(() => {
  now = 0;
  jest.spyOn(performance, "now").mockImplementation(() => now);
});
afterEach(() => {
  jest.restoreAllMocks();
});

/** Waits for a key, with these answers one after the other, the last one for ever. */
async function wait(waitMs: number, ...answers: readonly Shown[]) {
  const askedAt: number[] = [];
  const ask = async () => {
    askedAt.push(now);
    return answers[Math.min(askedAt.length, answers.length) - 1] as Shown;
  };
  const said = await untilInForce({ verb: "accept", what: "k", ask }, { url: URL, waitMs }).catch((error) => error);
  return { said, askedAt };
}

const DONE = { gateway: true, connector: true };

describe("A command that waits until its change is in force", () => {
  test("returns once the gateway and the connector show the change, and names both", async () => {
    const { said, askedAt } = await wait(10_000, { gateway: true, connector: false }, DONE);
    expect([said, askedAt.length]).toEqual([
      `The relay at ${URL} accepts k: one gateway and one connector were asked. Others load the change within 5 seconds.\n`,
      2,
    ]);
  });

  test.each<[Shown, string]>([
    [{ gateway: true, connector: undefined }, "one gateway was asked, and no connector answers there."],
    [
      { gateway: undefined, connector: true },
      "one connector was asked, and no gateway answers there (RELAY_HTTP_URL names its address).",
    ],
  ])("goes at the end of its wait by the one that answers, and says so: %j", async (shown, who) => {
    const { said, askedAt } = await wait(10_000, shown);
    expect([said, askedAt.at(-1)]).toEqual([expect.stringContaining(`accepts k: ${who}`), 10_000]);
  });

  test("counts the silence of one that showed before that it lacks the change for no yes", async () => {
    const { said } = await wait(10_000, { gateway: true, connector: false }, { gateway: true, connector: undefined });
    expect(said).toBeInstanceOf(NotInForceError);
  });

  test("says at once that no relay answers", async () => {
    const { said, askedAt } = await wait(10_000, { gateway: undefined, connector: undefined });
    expect([said, askedAt]).toEqual([expect.stringMatching(/^No relay answers at .* set RELAY_HTTP_URL/), [0]]);
  });

  test("says who was asked where the change is not in force at the end of its wait", async () => {
    const { said, askedAt } = await wait(3000, { gateway: false, connector: undefined });
    expect([said, askedAt.at(-1)]).toEqual([expect.any(NotInForceError), 3000]);
    expect(said.message).toContain("accepts k: one gateway was asked, and no connector answers there.");
  });

  test("asks far less often in a minute than the limit of failed keys allows", async () => {
    const { askedAt } = await wait(60_000, { gateway: false });
    expect(askedAt.length).toBeLessThan(40);
  });
});
