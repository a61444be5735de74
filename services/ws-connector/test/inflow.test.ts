import { describe, expect, jest, test } from "@jest/globals";
import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import { PrincipalRates } from "../src/principal-rates.ts";
import { TokenBuckets } from "../src/token-bucket.ts";
import { contextOf, numbers, Owner, SLOW_DOWN, send, useInflowTime } from "./inflow-kit.ts";

useInflowTime();

const ping = (owner: Owner, count: number) =>
  owner.receive(0, ...Array<() => void>(count).fill(() => owner.inflow.control()));

describe("a registered connection over its rate of envelopes", () => {
  test("is not read until its next token, and what ws had read comes in order, nothing left out", () => {
    const owner = new Owner(contextOf(), "key:k");
    send(owner, numbers(50));
    expect(owner.taken).toEqual(numbers(20));
    expect([...owner.pausedFor]).toEqual(["rate"]);
    jest.advanceTimersByTime(1010);
    expect(owner.taken).toEqual(numbers(30));
    jest.advanceTimersByTime(2000);
    expect(owner.taken).toEqual(numbers(50));
    expect([...owner.pausedFor]).toEqual([]);
    expect(owner.isClosing).toBe(false);
  });

  test("is not read sooner because what it sent before is answered", async () => {
    jest.useRealTimers();
    const owner = new Owner(contextOf({ envelopes: new TokenBuckets(1, 1) }), "key:k");
    send(owner, numbers(2));
    owner.inflow.answered();
    await new Promise(setImmediate);
    expect(owner.taken).toEqual(["0"]);
    owner.inflow.stop();
  });

  test("is counted once a pause", () => {
    const owner = new Owner(contextOf(), "key:k");
    send(owner, numbers(50));
    jest.advanceTimersByTime(5000);
    expect(owner.limits).toEqual(["envelopes"]);
    send(owner, numbers(50));
    expect(owner.limits).toEqual(["envelopes", "envelopes"]);
  });

  test("takes nothing in any more once it closes", () => {
    const owner = new Owner(contextOf(), "key:k");
    send(owner, numbers(50));
    owner.closeFor("pings");
    jest.advanceTimersByTime(10_000);
    expect(owner.taken).toEqual(numbers(20));
  });

  test("is not paused, nor counted, for an envelope that is answered once it closes", () => {
    const owner = new Owner(contextOf(), "key:k");
    owner.closeFor("pings");
    for (let n = 0; n < 50; n += 1) owner.inflow.sentBy("key:other", "agent://other", "0");
    expect([owner.limits, [...owner.pausedFor], jest.getTimerCount()]).toEqual([["pings"], [], 0]);
  });

  test("may ping all the same, at the same rate: a flood of pings or pongs closes it", () => {
    const owner = new Owner(contextOf(), "key:k");
    send(owner, numbers(20));
    ping(owner, 20);
    expect(owner.isClosing).toBe(false);
    ping(owner, 1);
    expect([owner.isClosing, owner.limits]).toEqual([true, ["pings"]]);
  });
});

describe("a registered connection whose text is not whole yet", () => {
  const CHUNK = 65_536;
  const unlimited = contextOf({ bytes: new TokenBuckets(0, 0), principalBytes: new PrincipalRates(0, 0) });
  const receive = (owner: Owner, chunks: number) => {
    for (let n = 0; n < chunks; n += 1) owner.inflow.bytes(CHUNK);
  };

  test("is closed when it has sent eight times the largest text", () => {
    const owner = new Owner(unlimited, "key:k");
    receive(owner, CONNECTION_LIMITS.unfinishedBytes / CHUNK);
    expect(owner.limits).toEqual([]);
    owner.inflow.bytes(1);
    expect(owner.limits).toEqual(["unfinished_text"]);
  });

  test("may send as much again once it is whole", () => {
    const owner = new Owner(unlimited, "key:k");
    for (let n = 0; n < 3; n += 1) {
      receive(owner, CONNECTION_LIMITS.unfinishedBytes / CHUNK);
      owner.inflow.text("whole");
    }
    expect(owner.limits).toEqual([]);
  });
});

describe("a connection over its budget of bytes", () => {
  test("is not read sooner because what it sent before is answered", async () => {
    jest.useRealTimers();
    const owner = new Owner(contextOf(), "key:k");
    for (let n = 0; n < 2; n += 1) owner.receive(100_000);
    owner.inflow.answered();
    await new Promise(setImmediate);
    expect([...owner.pausedFor]).toEqual(["rate"]);
    owner.inflow.stop();
  });

  test("is not read until it has bytes again", () => {
    const owner = new Owner(contextOf(), "key:k");
    owner.receive(1990);
    owner.receive(510);
    expect([...owner.pausedFor]).toEqual([]);
    owner.receive(132, () => owner.inflow.text("late"));
    expect([...owner.pausedFor]).toEqual(["rate"]);
    jest.advanceTimersByTime(495);
    expect([[...owner.pausedFor], owner.taken]).toEqual([["rate"], []]);
    jest.advanceTimersByTime(10);
    expect([[...owner.pausedFor], owner.taken, owner.limits]).toEqual([[], ["late"], ["bytes"]]);
  });

  test("has what may be a ping or a close looked at all the same, paid for later, and is not read behind it", () => {
    const owner = new Owner(contextOf(), "key:k");
    owner.receive(2500);
    owner.receive(131, () => owner.inflow.text("small"));
    expect([owner.taken, [...owner.pausedFor]]).toEqual([["small"], ["rate"]]);
    owner.receive(131, () => owner.inflow.text("behind it"));
    jest.advanceTimersByTime(495);
    expect(owner.taken).toEqual(["small"]);
    jest.advanceTimersByTime(10);
    expect([owner.taken, [...owner.pausedFor]]).toEqual([["small", "behind it"], ["rate"]]);
    jest.advanceTimersByTime(131 + 131);
    expect([...owner.pausedFor]).toEqual([]);
  });

  test("is read again after a second, however much it sent", () => {
    const owner = new Owner(contextOf({ principalBytes: new PrincipalRates(0, 0) }), "key:k");
    for (let n = 0; n < 2; n += 1) owner.receive(200_000);
    jest.advanceTimersByTime(1001);
    expect([...owner.pausedFor]).toEqual([]);
  });
});

describe("the connections of one key", () => {
  test("share four times the rate of one: none is refused, and each gets its part", () => {
    const context = contextOf();
    const owners = Array.from({ length: 10 }, () => new Owner(context, "key:k"));
    for (const owner of owners) send(owner, numbers(20));
    const taken = () => owners.reduce((sum, owner) => sum + owner.taken.length, 0);
    expect(taken()).toBe(40);
    jest.advanceTimersByTime(1005);
    expect(taken()).toBeGreaterThanOrEqual(55);
    expect(taken()).toBeLessThanOrEqual(65);
    jest.advanceTimersByTime(20_000);
    for (const owner of owners) expect(owner.taken).toEqual(numbers(20));
    expect(owners.at(-1)?.limits).toEqual(["key_envelopes"]);
  });

  test("share twice the bytes of one, with the burst of one", () => {
    const context = contextOf();
    const owners = Array.from({ length: 4 }, () => new Owner(context, "key:k"));
    for (const owner of owners) owner.receive(1000);
    expect(owners.map(({ limits }) => limits)).toEqual([[], [], ["key_bytes"], ["key_bytes"]]);
  });

  test("have the key's rate in all, however many they are, and go on in the order in which they sent", () => {
    const context = contextOf();
    const owners = Array.from({ length: 200 }, () => new Owner(context, "key:k"));
    const goneOn = () => owners.filter(({ taken }) => taken.length > 0);
    for (const owner of owners) send(owner, ["0"]);
    jest.advanceTimersByTime(4010);
    expect(goneOn()).toEqual(owners.slice(0, 40 + 4 * 20));
    jest.advanceTimersByTime(4010);
    expect(goneOn()).toEqual(owners);
  });

  test("have the key's bytes in all: a text that comes when they are used up waits, and is taken in when they are there", () => {
    const context = contextOf();
    const owners = Array.from({ length: 20 }, () => new Owner(context, "key:k"));
    for (const owner of owners) owner.receive(1000, () => owner.inflow.text("0"));
    const goneOn = () => owners.filter(({ taken }) => taken.length > 0);
    expect(goneOn()).toEqual(owners.slice(0, 2));
    jest.advanceTimersByTime(4010);
    expect(goneOn()).toEqual(owners.slice(0, 3 + 4 * 2));
    expect([...(owners.at(-1)?.pausedFor ?? [])]).toEqual(["rate"]);
    jest.advanceTimersByTime(6000);
    expect(goneOn()).toEqual(owners);
    expect(owners.flatMap(({ pausedFor }) => [...pausedFor])).toEqual([]);
  });

  test("are told to slow down while they wait for it, and counted once", () => {
    const context = contextOf();
    const owners = Array.from({ length: 20 }, () => new Owner(context, "key:k"));
    for (const owner of owners) owner.receive(2000);
    jest.advanceTimersByTime(9000);
    expect(owners.at(-1)).toMatchObject({ sent: [SLOW_DOWN], limits: ["key_bytes"] });
  });

  test("pay for pings and pongs as for envelopes: who finds no token is not read, and closed for nothing", () => {
    const context = contextOf();
    const owners = Array.from({ length: 10 }, () => new Owner(context, "key:k"));
    for (const owner of owners) ping(owner, 15);
    expect(context.principals.wait("key:k", performance.now())).toBeLessThanOrEqual((10 * 1000) / 20);
    expect(owners.filter(({ pausedFor }) => pausedFor.has("rate"))).toHaveLength(8);
    send(owners.at(-1) as Owner, ["behind them"]);
    expect(owners.at(-1)?.taken).toEqual([]);
    jest.advanceTimersByTime(10_000);
    expect(owners.at(-1)).toMatchObject({ taken: ["behind them"], isClosing: false });
    expect(new Set(owners.flatMap(({ limits, whose }) => [...limits, ...whose]))).toEqual(
      new Set(["key_envelopes", "key:k"]),
    );
    expect(owners.some(({ isClosing }) => isClosing)).toBe(false);
  });

  test("have what another key signed counted for that key, whose wait is not theirs", () => {
    const context = contextOf();
    const [own, others] = [new Owner(context, "key:k"), new Owner(context, "key:k")];
    for (let n = 0; n < 50; n += 1) others.inflow.sentBy("key:other", "agent://other", "0");
    expect(others).toMatchObject({ pausedFor: new Set(["rate"]), limits: ["key_envelopes"], whose: ["key:other"] });
    send(own, numbers(20));
    own.inflow.sentBy("key:k", "agent://k", "0");
    expect([own.taken.length, [...own.pausedFor]]).toEqual([20, []]);
    expect(context.principals.wait("key:k", performance.now())).toBe(0);
  });

  test("take nothing from those of another key", () => {
    const context = contextOf();
    for (let n = 0; n < 10; n += 1) send(new Owner(context, "key:k"), numbers(20));
    const other = new Owner(context, "key:other");
    send(other, numbers(20));
    expect(other.taken).toHaveLength(20);
  });
});

describe("slow_down", () => {
  test("is sent to a client that was paused for more than half of ten seconds, and at most once in them", () => {
    const owner = new Owner(contextOf(), "key:k");
    send(owner, numbers(300));
    jest.advanceTimersByTime(4900);
    expect(owner.sent).toEqual([]);
    jest.advanceTimersByTime(600);
    expect(owner.sent).toEqual([SLOW_DOWN]);
    jest.advanceTimersByTime(9000);
    expect(owner.sent).toEqual([SLOW_DOWN]);
    jest.advanceTimersByTime(2000);
    expect(owner.sent).toEqual([SLOW_DOWN, SLOW_DOWN]);
  });

  test("is not sent to one that is paused for less", () => {
    const owner = new Owner(contextOf(), "key:k");
    for (let n = 0; n < 20; n += 1) {
      send(owner, numbers(30));
      jest.advanceTimersByTime(3050);
    }
    expect(owner.limits).toEqual(Array(20).fill("envelopes"));
    expect(owner.sent).toEqual([]);
  });
});
