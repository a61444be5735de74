import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Principal } from "relay-window/limits/principals.ts";
import { FairScheduler, type TurnTaker } from "../src/throttle/fair-scheduler.ts";
import { PrincipalRates, TokenBuckets } from "../src/throttle/rates.ts";
import { Throttle, type ThrottleContext, type ThrottleOwner } from "../src/throttle/throttle.ts";

/** What is read of a connection, and when: at its rate once it is registered, and in turns before that. */

const SLOW_DOWN = "slow down";

/** A connection of which only the throttle is real. */
class Owner implements ThrottleOwner {
  readonly addressCounts = {};
  isClosing = false;
  readonly taken: string[] = [];
  readonly pausedFor = new Set<string>();
  readonly limits: string[] = [];
  /** Whose limits they were, where they were no connection's. */
  readonly whose: string[] = [];
  readonly sent: string[] = [];
  readonly throttle: Throttle;
  /** Frames and chunks that are not read yet. */
  readonly #unread: (() => unknown)[] = [];
  /** True from a pause on until it ends, or a chunk is to be looked at all the same. */
  #isStopped = false;

  constructor(context: ThrottleContext, principal?: Principal) {
    this.throttle = new Throttle(this, context);
    if (principal !== undefined) this.throttle.registered([principal]);
  }

  /** A chunk comes in; it, and what is in it, is looked at as far as nothing pauses the connection, and then when nothing does. */
  receive(bytes: number, ...frames: readonly (() => void)[]): void {
    const admitted = () => {
      const isAdmitted = this.throttle.payForChunk(bytes);
      if (isAdmitted) this.#isStopped = false;
      return isAdmitted;
    };
    const ended = () => {
      this.#isStopped = this.pausedFor.size > 0;
    };
    this.#unread.push(admitted, ...frames, ended);
    this.#read();
  }

  #read(): void {
    while (!this.#isStopped && !this.isClosing) {
      const next = this.#unread.shift();
      if (next === undefined) return;
      if (next() === false) this.#unread.unshift(next);
    }
  }

  takeIn(text: string): void {
    this.taken.push(text);
  }
  pause(reason: string): void {
    this.pausedFor.add(reason);
    this.#isStopped = true;
  }
  resume(reason: string): void {
    this.pausedFor.delete(reason);
    this.#isStopped = this.pausedFor.size > 0;
    process.nextTick(() => this.#read());
  }
  send(text: string): void {
    this.sent.push(text);
  }
  limitReached(limit: string, principal?: string): void {
    this.limits.push(limit);
    if (principal !== undefined) this.whose.push(principal);
  }
  closeFor(limit: string): void {
    this.limits.push(limit);
    this.isClosing = true;
    this.throttle.stop();
  }
}

/** Ten envelopes a second and 20 at once, 1000 bytes and 2000; of a key 20 and 40, 2000 bytes and as many at once. */
const contextOf = (changes: Partial<ThrottleContext> = {}): ThrottleContext => ({
  envelopes: new TokenBuckets(10, 20),
  bytes: new TokenBuckets(1000, 2000),
  principals: new PrincipalRates(20, 40),
  principalBytes: new PrincipalRates(2000, 2000),
  scheduler: new FairScheduler(),
  slowDownNotice: SLOW_DOWN,
  ...changes,
});
const numbers = (count: number) => Array.from({ length: count }, (_, n) => `${n}`);
const send = (owner: Owner, texts: readonly string[]) => {
  owner.receive(0, ...texts.map((text) => () => owner.throttle.text(text)));
};

describe("The throttle:", () => {
  // Time goes by as tests say.
  beforeEach(() => {
    jest.useFakeTimers({ now: 1_790_000_000_000 });
    jest.advanceTimersByTime(100_000);
  });
  afterEach(() => void jest.useRealTimers());

  const ping = (owner: Owner, count: number) =>
    owner.receive(0, ...Array<() => void>(count).fill(() => owner.throttle.pingOrPong()));

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
      owner.throttle.answered();
      await new Promise(setImmediate);
      expect(owner.taken).toEqual(["0"]);
      owner.throttle.stop();
    });

    test("is counted once a pause", () => {
      const owner = new Owner(contextOf(), "key:k");
      send(owner, numbers(50));
      jest.advanceTimersByTime(5000);
      expect(owner.limits).toEqual(["envelopes"]);
      send(owner, numbers(50));
      expect(owner.limits).toEqual(["envelopes", "envelopes"]);
    });

    test("takes nothing in any more once it closes, nor is it paused or counted for what is answered then", () => {
      const owner = new Owner(contextOf(), "key:k");
      send(owner, numbers(50));
      owner.closeFor("pings");
      for (let n = 0; n < 50; n += 1) owner.throttle.sentBy("key:other", "agent://other", "0");
      expect([owner.limits, jest.getTimerCount()]).toEqual([["envelopes", "pings"], 0]);
      jest.advanceTimersByTime(10_000);
      expect(owner.taken).toEqual(numbers(20));
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
      for (let n = 0; n < chunks; n += 1) owner.throttle.noteBytes(CHUNK);
    };

    test("is closed when it has sent eight times the largest text", () => {
      const owner = new Owner(unlimited, "key:k");
      receive(owner, CONNECTION_LIMITS.unfinishedBytes / CHUNK);
      expect(owner.limits).toEqual([]);
      owner.throttle.noteBytes(1);
      expect(owner.limits).toEqual(["unfinished_text"]);
    });

    test("may send as much again once it is whole", () => {
      const owner = new Owner(unlimited, "key:k");
      for (let n = 0; n < 3; n += 1) {
        receive(owner, CONNECTION_LIMITS.unfinishedBytes / CHUNK);
        owner.throttle.text("whole");
      }
      expect(owner.limits).toEqual([]);
    });
  });

  describe("a connection over its budget of bytes", () => {
    test("is not read until it has bytes again", () => {
      const owner = new Owner(contextOf(), "key:k");
      owner.receive(1990);
      owner.receive(510);
      expect([...owner.pausedFor]).toEqual([]);
      owner.receive(132, () => owner.throttle.text("late"));
      expect([...owner.pausedFor]).toEqual(["rate"]);
      jest.advanceTimersByTime(495);
      expect([[...owner.pausedFor], owner.taken]).toEqual([["rate"], []]);
      jest.advanceTimersByTime(10);
      expect([[...owner.pausedFor], owner.taken, owner.limits]).toEqual([[], ["late"], ["bytes"]]);
    });

    test("has what may be a ping or a close looked at all the same, paid for later, and is not read behind it", () => {
      const owner = new Owner(contextOf(), "key:k");
      owner.receive(2500);
      owner.receive(131, () => owner.throttle.text("small"));
      expect([owner.taken, [...owner.pausedFor]]).toEqual([["small"], ["rate"]]);
      owner.receive(131, () => owner.throttle.text("behind it"));
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
      for (const owner of owners) owner.receive(1000, () => owner.throttle.text("0"));
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
      expect(context.principals.take("key:k", performance.now(), 0)).toBeLessThanOrEqual((10 * 1000) / 20);
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
      for (let n = 0; n < 50; n += 1) others.throttle.sentBy("key:other", "agent://other", "0");
      expect(others).toMatchObject({ pausedFor: new Set(["rate"]), limits: ["key_envelopes"], whose: ["key:other"] });
      send(own, numbers(20));
      own.throttle.sentBy("key:k", "agent://k", "0");
      expect([own.taken.length, [...own.pausedFor]]).toEqual([20, []]);
      expect(context.principals.take("key:k", performance.now(), 0)).toBe(0);
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

  describe("an unregistered connection", () => {
    test("is undecided while a text waits for its turn, and until it is answered", () => {
      const owner = new Owner(contextOf());
      expect(owner.throttle.hasPendingText).toBe(false);
      send(owner, ["0"]);
      expect([owner.taken, owner.throttle.hasPendingText]).toEqual([[], true]);
      jest.advanceTimersByTime(100);
      expect([owner.taken, owner.throttle.hasPendingText]).toEqual([["0"], true]);
      owner.throttle.answered();
      expect(owner.throttle.hasPendingText).toBe(false);
    });

    test("has one text taken in at a time, and is not read while one waits", () => {
      const owner = new Owner(contextOf());
      send(owner, numbers(3));
      expect([owner.taken, [...owner.pausedFor]]).toEqual([[], ["turn"]]);
      jest.advanceTimersByTime(100);
      expect(owner.taken).toEqual(["0"]);
      owner.throttle.answered();
      jest.advanceTimersByTime(100);
      expect(owner.taken).toEqual(["0", "1"]);
      expect([...owner.pausedFor]).toEqual(["turn"]);
    });

    test("goes on at its rate as soon as it is registered, whatever it sent meanwhile", () => {
      const owner = new Owner(contextOf());
      send(owner, numbers(30));
      jest.advanceTimersByTime(100);
      owner.throttle.registered(["key:k"]);
      owner.throttle.answered();
      jest.advanceTimersByTime(1);
      expect(owner.taken).toEqual(numbers(21));
      jest.advanceTimersByTime(2000);
      expect([owner.taken, [...owner.pausedFor]]).toEqual([numbers(30), []]);
    });

    test.each<[string, (throttle: Throttle) => void]>([
      ["pings and pongs", (throttle) => throttle.pingOrPong()],
      ["bytes", (throttle) => throttle.noteBytes(65_536 / 8)],
    ])("is closed for the ninth eighth of what it may send: %s", (_what, act) => {
      const owner = new Owner(contextOf());
      for (let n = 0; n < 8; n += 1) act(owner.throttle);
      expect(owner.isClosing).toBe(false);
      act(owner.throttle);
      expect(owner.limits).toEqual(["unregistered_intake"]);
    });

    test("is registered by a text that came in two chunks, the second full of what it sends behind it", () => {
      const owner = new Owner(contextOf({ bytes: new TokenBuckets(0, 0), principalBytes: new PrincipalRates(0, 0) }));
      owner.throttle.noteBytes(100);
      send(owner, numbers(3));
      owner.throttle.noteBytes(65_536);
      jest.advanceTimersByTime(100);
      expect([owner.isClosing, owner.taken]).toEqual([false, ["0"]]);
      owner.throttle.registered(["key:k"]);
      owner.throttle.answered();
      jest.advanceTimersByTime(1);
      expect([owner.taken, owner.limits]).toEqual([numbers(3), []]);
    });

    test("is closed for what came with a text that turned out to be no register", () => {
      const owner = new Owner(contextOf());
      owner.throttle.noteBytes(100);
      send(owner, numbers(3));
      owner.throttle.noteBytes(65_536);
      jest.advanceTimersByTime(100);
      owner.throttle.answered();
      jest.advanceTimersByTime(100);
      expect([owner.taken, owner.limits]).toEqual([["0"], ["unregistered_intake"]]);
    });

    test("is closed for a ninth text, when the eight are answered", () => {
      const owner = new Owner(contextOf());
      send(owner, numbers(9));
      for (let n = 0; n < 9; n += 1) {
        jest.advanceTimersByTime(100);
        owner.throttle.answered();
      }
      jest.advanceTimersByTime(100);
      expect([owner.taken, owner.limits]).toEqual([numbers(8), ["unregistered_intake"]]);
    });
  });
});

describe("FairScheduler:", () => {
  const COST_MS = 5;
  let now = 0;
  let order: string[];
  let scheduler: FairScheduler;

  /** Joins again after each of its turns, each of which takes the event loop for some time. */
  function flooder(name: string, address: object): TurnTaker {
    const taker = {
      address,
      takeTurn: () => {
        order.push(name);
        now += COST_MS;
        scheduler.join(taker);
      },
    };
    return taker;
  }

  beforeEach(() => {
    order = [];
    scheduler = new FairScheduler();
    jest.useFakeTimers();
    now = 1_000_000;
    jest.spyOn(performance, "now").mockImplementation(() => now);
  });
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  /** Time goes by, a millisecond at a time. */
  function pass(ms: number): void {
    for (let n = 0; n < ms; n += 1) {
      now += 1;
      jest.advanceTimersByTime(1);
    }
  }

  describe("turns", () => {
    test("take a tenth of the event loop, however many wait for one", () => {
      for (let n = 0; n < 100; n += 1) scheduler.join(flooder(`${n}`, {}));
      const startedAt = now;
      pass(10_000);
      const share = (order.length * COST_MS) / (now - startedAt);
      expect(share).toBeGreaterThan(0.09);
      expect(share).toBeLessThan(0.11);
    });

    test("are given at once when nobody else has one", () => {
      scheduler.join(flooder("alone", {}));
      jest.advanceTimersByTime(0);
      expect(order).toEqual(["alone"]);
    });

    test("go round: a newcomer waits for one turn of each address, not of each connection", () => {
      const crowd = {};
      for (let n = 0; n < 50; n += 1) scheduler.join(flooder("crowd", crowd));
      scheduler.join(flooder("other", {}));
      pass(1000);
      order = [];
      scheduler.join(flooder("newcomer", {}));
      pass(1000);
      expect(order.slice(0, 3)).toContain("newcomer");
    });

    test("go round the connections of one address", () => {
      const address = {};
      for (const name of ["a", "b", "c"]) scheduler.join(flooder(name, address));
      pass(2000);
      expect(order.slice(0, 6)).toEqual(["a", "b", "c", "a", "b", "c"]);
    });

    test("are not given to who has left", () => {
      const taker = flooder("gone", {});
      scheduler.join(taker);
      scheduler.leave(taker);
      pass(100);
      expect(order).toEqual([]);
    });
  });
});
