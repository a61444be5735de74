import { describe, expect, jest, test } from "@jest/globals";
import type { Inflow } from "../src/inflow.ts";
import { PrincipalRates } from "../src/principal-rates.ts";
import { TokenBuckets } from "../src/token-bucket.ts";
import { contextOf, numbers, Owner, send, useInflowTime } from "./inflow-kit.ts";

useInflowTime();

describe("an unregistered connection", () => {
  test("is undecided while a text waits for its turn, and until it is answered", () => {
    const owner = new Owner(contextOf());
    expect(owner.inflow.hasPendingText).toBe(false);
    send(owner, ["0"]);
    expect([owner.taken, owner.inflow.hasPendingText]).toEqual([[], true]);
    jest.advanceTimersByTime(100);
    expect([owner.taken, owner.inflow.hasPendingText]).toEqual([["0"], true]);
    owner.inflow.answered();
    expect(owner.inflow.hasPendingText).toBe(false);
  });

  test("has one text taken in at a time, and is not read while one waits", () => {
    const owner = new Owner(contextOf());
    send(owner, numbers(3));
    expect([owner.taken, [...owner.pausedFor]]).toEqual([[], ["turn"]]);
    jest.advanceTimersByTime(100);
    expect(owner.taken).toEqual(["0"]);
    owner.inflow.answered();
    jest.advanceTimersByTime(100);
    expect(owner.taken).toEqual(["0", "1"]);
    expect([...owner.pausedFor]).toEqual(["turn"]);
  });

  test("goes on at its rate as soon as it is registered, whatever it sent meanwhile", () => {
    const owner = new Owner(contextOf());
    send(owner, numbers(30));
    jest.advanceTimersByTime(100);
    owner.inflow.registered(["key:k"]);
    owner.inflow.answered();
    jest.advanceTimersByTime(1);
    expect(owner.taken).toEqual(numbers(21));
    jest.advanceTimersByTime(2000);
    expect([owner.taken, [...owner.pausedFor]]).toEqual([numbers(30), []]);
  });

  test.each<[string, (inflow: Inflow) => void]>([
    ["pings and pongs", (inflow) => inflow.control()],
    ["bytes", (inflow) => inflow.bytes(65_536 / 8)],
  ])("is closed for the ninth eighth of what it may send: %s", (_what, act) => {
    const owner = new Owner(contextOf());
    for (let n = 0; n < 8; n += 1) act(owner.inflow);
    expect(owner.isClosing).toBe(false);
    act(owner.inflow);
    expect(owner.limits).toEqual(["unregistered_intake"]);
  });

  test("is registered by a text that came in two chunks, the second full of what it sends behind it", () => {
    const owner = new Owner(contextOf({ bytes: new TokenBuckets(0, 0), principalBytes: new PrincipalRates(0, 0) }));
    owner.inflow.bytes(100);
    send(owner, numbers(3));
    owner.inflow.bytes(65_536);
    jest.advanceTimersByTime(100);
    expect([owner.isClosing, owner.taken]).toEqual([false, ["0"]]);
    owner.inflow.registered(["key:k"]);
    owner.inflow.answered();
    jest.advanceTimersByTime(1);
    expect([owner.taken, owner.limits]).toEqual([numbers(3), []]);
  });

  test("is closed for what came with a text that turned out to be no register", () => {
    const owner = new Owner(contextOf());
    owner.inflow.bytes(100);
    send(owner, numbers(3));
    owner.inflow.bytes(65_536);
    jest.advanceTimersByTime(100);
    owner.inflow.answered();
    jest.advanceTimersByTime(100);
    expect([owner.taken, owner.limits]).toEqual([["0"], ["unregistered_intake"]]);
  });

  test("is closed for a ninth text, when the eight are answered", () => {
    const owner = new Owner(contextOf());
    send(owner, numbers(9));
    for (let n = 0; n < 9; n += 1) {
      jest.advanceTimersByTime(100);
      owner.inflow.answered();
    }
    jest.advanceTimersByTime(100);
    expect([owner.taken, owner.limits]).toEqual([numbers(8), ["unregistered_intake"]]);
  });
});
