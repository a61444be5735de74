import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { RejectReasons } from "../../src/cli/commands/request.ts";
import type { Delivery } from "../../src/index.ts";
import { BOB } from "./shell.ts";

/** Without a relay in this process: its timers would be counted too. */

afterEach(() => {
  jest.useRealTimers();
});

describe("The reason of a reject", () => {
  const running = new AbortController().signal;
  const reject = (reason?: string, from = BOB): Delivery =>
    ({ type: "session.reject", from, sessionId: "ses_1", payload: { reason } }) as unknown as Delivery;

  let reasons: RejectReasons;
  beforeEach(() => {
    jest.useFakeTimers();
    reasons = new RejectReasons(BOB);
  });

  test.each([
    ["that is given", reject("no time"), "no time"],
    ["that is not given", reject(), undefined],
  ])(
    "%s ends the wait for it at once, whether the reject is delivered before the look-up of the session or after",
    async (_, delivery, reason) => {
      const told: unknown[] = [];
      void reasons.of("ses_1", running).then((text) => told.push(text));
      reasons.heard(delivery);
      void reasons.of("ses_1", running).then((text) => told.push(text));
      await jest.advanceTimersByTimeAsync(0);
      expect(told).toEqual([reason, reason]);
      expect(jest.getTimerCount()).toBe(0);
    },
  );

  test.each([
    ["of another agent", reject("mine", "agent://mallory")],
    ["of another session", { ...reject("another"), sessionId: "ses_2" }],
    ["that is an approval", { ...reject("well"), type: "session.approve" }],
  ])("is none that is heard %s, and after a second none is waited for", async (_, delivery) => {
    const waiting = reasons.of("ses_1", running);
    reasons.heard(delivery);
    await jest.advanceTimersByTimeAsync(1000);
    expect(await waiting).toBeUndefined();
  });

  test("is waited for by nobody who interrupts the command", async () => {
    const stop = new AbortController();
    const waiting = reasons.of("ses_1", stop.signal);
    stop.abort();
    expect(await waiting).toBeUndefined();
    const asked = reasons.of("ses_2", stop.signal);
    await jest.advanceTimersByTimeAsync(0);
    expect(await asked).toBeUndefined();
  });
});
