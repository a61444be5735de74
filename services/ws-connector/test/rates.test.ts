import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { CREDENTIAL_LIMITS } from "relay-protocol/wire/limits.ts";
import { type Principal, rateHoldersOf } from "relay-window/limits/principals.ts";
import { ConnectionRates, type PodRates, PrincipalRates, TokenBuckets } from "../src/throttle/rates.ts";

/** How fast a connection, its agent and its key may send at one pod. */

describe("Token buckets:", () => {
  /** One bucket, as its owner keeps it: takes a token if there is one, else says how long the next one takes. */
  function bucketOf(buckets: TokenBuckets): (now: number) => number {
    let fullAt = 0;
    return (now) => {
      const wait = buckets.wait(fullAt, now);
      if (wait === 0) fullAt = buckets.take(fullAt, now);
      return wait;
    };
  }

  function takeMany(take: (now: number) => number, count: number, now: number): number[] {
    return Array.from({ length: count }, () => take(now));
  }

  describe("a bucket of 10 a second and 50 at once", () => {
    const full = () => bucketOf(new TokenBuckets(10, 50));

    test("gives 50 at once, then says how long the next one takes", () => {
      const take = full();
      expect(takeMany(take, 50, 1000)).toEqual(Array(50).fill(0));
      expect(take(1000)).toBe(100);
      expect(take(1040)).toBe(60);
    });

    test.each([1000, 1013, 1040, 1097.5])(
      "has a token when the wait that it named at %d ms is over, to a millisecond",
      (now) => {
        const take = full();
        takeMany(take, 50, 1000);
        const wait = take(now);
        expect(wait).toBeGreaterThan(0);
        expect(take(now + wait - 2)).toBeGreaterThan(0);
        expect(take(now + wait + 1)).toBe(0);
        expect(take(now + wait + 1)).toBeGreaterThan(90);
      },
    );

    test("is not emptied by those it refuses", () => {
      const take = full();
      takeMany(take, 500, 1000);
      expect(takeMany(take, 10, 2000)).toEqual(Array(10).fill(0));
      expect(take(2000)).toBe(100);
    });

    test("never holds more than 50, however long it waits", () => {
      const take = full();
      take(1000);
      expect(takeMany(take, 50, 1e9)).toEqual(Array(50).fill(0));
      expect(take(1e9)).toBeGreaterThan(0);
    });

    test("lets 10 a second through over a long time", () => {
      const take = full();
      let taken = 0;
      for (let now = 1000; now < 61_000; now += 7) if (take(now) === 0) taken += 1;
      expect(taken).toBeGreaterThanOrEqual(649);
      expect(taken).toBeLessThanOrEqual(650);
    });
  });

  test("A bucket of 0 a second knows no limit", () => {
    expect(takeMany(bucketOf(new TokenBuckets(0, 0)), 1000, 0)).toEqual(Array(1000).fill(0));
  });

  test("Tokens may be taken in advance, and the wait for the next stays about a second", () => {
    const buckets = new TokenBuckets(10, 50);
    let fullAt = 0;
    for (let n = 0; n < 52; n += 1) fullAt = buckets.take(fullAt, 1000);
    expect(buckets.wait(fullAt, 1000)).toBe(300);
    fullAt = buckets.take(fullAt, 1000, 1000);
    expect(buckets.wait(fullAt, 1000)).toBe(1100);
  });

  test("Rates of principals are forgotten when their buckets are full again, and they have sent nothing for a minute", () => {
    const rates = new PrincipalRates(10, 50);
    rates.take("key:a", 1000);
    rates.take("key:b", 1500);
    rates.endMinute(1250);
    expect([...rates.sent()]).toHaveLength(2);
    rates.endMinute(1250);
    expect([...rates.sent()]).toHaveLength(1);
  });
});

describe("The rates at one pod:", () => {
  const KEY_BURST = 40;
  const KEY_BYTES = 2000;

  // Nothing comes back to a bucket while a busy machine counts.
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  function podRates(): PodRates {
    return {
      envelopes: new TokenBuckets(10, 20),
      bytes: new TokenBuckets(1000, 2000),
      principals: new PrincipalRates(20, KEY_BURST),
      principalBytes: new PrincipalRates(2000, KEY_BYTES),
    };
  }

  /** Of how many of so many new connections of a principal one envelope each passes at once. */
  function passing(
    principal: Principal,
    agentOf: (n: number) => string,
    { count = 3000, rates = podRates() } = {},
  ): number {
    const connect = (n: number) => new ConnectionRates(rates, rateHoldersOf(principal, agentOf(n)));
    const connections = Array.from({ length: count }, (_, n) => connect(n));
    return connections.filter((connection) => connection.takeEnvelope() === null).length;
  }

  const crowd = (n: number) => `agent://crowd-${n}`;
  const eve = () => "agent://eve";

  test("The connections of an issuer's agents share 25 times what those of a key do", () => {
    const times = passing("issuer:acme", crowd) / passing("key:k", crowd);
    expect(times).toBeGreaterThan(CREDENTIAL_LIMITS.issuerFactor - 1);
    expect(times).toBeLessThan(CREDENTIAL_LIMITS.issuerFactor + 1);
  });

  describe("One agent of an issuer", () => {
    test("has over all its connections what those of a key have, and leaves the others of the issuer theirs", () => {
      const rates = podRates();
      const own = passing("issuer:acme", eve, { count: 10 * KEY_BURST, rates });
      expect(own).toBe(KEY_BURST);
      const one = new ConnectionRates(rates, rateHoldersOf("issuer:acme", "agent://other"));
      expect([one.takeBytes(1), one.takeEnvelope()]).toEqual([null, null]);
    });

    test("has the bytes of a key, too: on its next connection it waits for what it sent on the last", () => {
      const rates = podRates();
      const connect = (agent: string) => new ConnectionRates(rates, rateHoldersOf("issuer:acme", agent));
      connect("agent://eve").takeBytes(2 * KEY_BYTES);
      expect(connect("agent://eve").takeBytes(1)).toMatchObject({ limit: "key_bytes", principal: "issuer:acme" });
      expect(connect("agent://other").takeBytes(1)).toBeNull();
    });

    test("is forgotten when its bucket is full again and it has sent nothing for a minute, as its issuer is", () => {
      const rates = podRates();
      passing("issuer:acme", eve, { rates });
      expect([...rates.principals.sent()]).toHaveLength(2);
      rates.principals.endMinute(performance.now() + 3_600_000);
      expect([...rates.principals.sent()]).toHaveLength(2);
      rates.principals.endMinute(performance.now() + 3_660_000);
      expect([...rates.principals.sent()]).toEqual([]);
    });
  });

  describe("An envelope of another signer than the connection's first", () => {
    const sentBy = (of: Iterable<readonly [string, number]>) => Object.fromEntries(of);
    const connectionOf = (rates: PodRates, principal: Principal, agent: string) =>
      new ConnectionRates(rates, rateHoldersOf(principal, agent));

    test("takes the tokens and bytes of its own key, and gives back those of the first", () => {
      const rates = podRates();
      const connection = connectionOf(rates, "key:first", "agent://first");
      for (let n = 0; n < KEY_BURST / 2; n += 1) {
        connection.takeEnvelope();
        connection.takeBytes(30);
        expect(connection.movePayment("key:other", "agent://other", 30)).toBeNull();
      }
      expect(passing("key:first", eve, { rates })).toBe(KEY_BURST);
      expect(passing("key:other", eve, { rates })).toBe(KEY_BURST / 2);
      expect(sentBy(rates.principalBytes.sent())).toEqual({ "key:first": 0, "key:other": 30 * (KEY_BURST / 2) });
    });

    test("waits for its own key's tokens, by whatever connection it comes", () => {
      const rates = podRates();
      passing("key:other", eve, { rates });
      const connection = connectionOf(rates, "key:first", "agent://first");
      expect(connection.takeEnvelope()).toBeNull();
      const wait = connection.movePayment("key:other", "agent://other", 1);
      expect(wait).toMatchObject({ limit: "key_envelopes", principal: "key:other" });
    });

    test("of the same issuer costs its own agent, and the issuer once", () => {
      const rates = podRates();
      const connection = connectionOf(rates, "issuer:acme", "agent://first");
      connection.takeEnvelope();
      connection.movePayment("issuer:acme", "agent://other", 0);
      const sent = { "issuer:acme": 1, "agent://first": 0, "agent://other": 1 };
      expect(sentBy(rates.principals.sent())).toEqual(sent);
    });

    test("is no longer counted for the first in the minute in which it came, also when that minute is over", () => {
      const rates = podRates();
      const connection = connectionOf(rates, "key:first", "agent://first");
      const endMinute = (n: number) => {
        for (const one of [rates.principals, rates.principalBytes]) one.endMinute(performance.now() + n * 60_000);
      };
      connection.takeEnvelope();
      connection.takeBytes(30);
      endMinute(1);
      connection.movePayment("key:other", "agent://other", 30);
      connection.takeEnvelope();
      expect(sentBy(rates.principals.sent())).toEqual({ "key:first": 1, "key:other": 1 });
      endMinute(2);
      expect(sentBy(rates.principals.sent())).toEqual({ "key:first": 1, "key:other": 1 });
      expect(sentBy(rates.principalBytes.sent())).toEqual({ "key:other": 30 });
    });

    test("counts nothing against the first that is older than what a pod counts", () => {
      const rates = podRates();
      const connection = connectionOf(rates, "issuer:acme", "agent://first");
      connection.takeEnvelope();
      for (const n of [60, 61, 62]) rates.principals.endMinute(performance.now() + n * 60_000);
      connection.movePayment("key:other", "agent://other", 0);
      expect(sentBy(rates.principals.sent())).toEqual({ "key:other": 1 });
    });

    test.each([
      [1, 3],
      [3, 1],
    ])("gives the first back what it paid while %d pods shared its rate, though %d do by now", (before, now) => {
      const rates = podRates();
      const connection = connectionOf(rates, "key:first", "agent://first");
      const share = (pods: number) => rates.principals.share(new Map([["key:first", pods]]));
      share(before);
      for (let n = 0; n < 11; n += 1) connection.takeEnvelope();
      share(now);
      connection.movePayment("key:other", "agent://other", 0);
      share(1);
      expect(passing("key:first", eve, { rates })).toBe(KEY_BURST - 10 * before);
    });

    test("is nobody else's where it is of the first one's agents", () => {
      const ofKey = connectionOf(podRates(), "key:first", "agent://first");
      expect([ofKey.isOf("key:first", "agent://other"), ofKey.isOf("key:other", "agent://first")]).toEqual([
        true,
        false,
      ]);
      const ofIssuer = connectionOf(podRates(), "issuer:acme", "agent://first");
      expect(ofIssuer.isOf("issuer:acme", "agent://first")).toBe(true);
      expect(ofIssuer.isOf("issuer:acme", "agent://other")).toBe(false);
    });
  });

  describe("What a pod counts for its operator", () => {
    const UNLIMITED = {
      envelopes: new TokenBuckets(0, 0),
      bytes: new TokenBuckets(0, 0),
      principals: new PrincipalRates(0, 0),
      principalBytes: new PrincipalRates(0, 0),
    };

    test.each([
      ["with limits", podRates()],
      ["without limits", UNLIMITED],
    ])("is every envelope and byte of a key, and of an issuer and its agents, %s", (_, rates) => {
      const of = (principal: Principal, agent: string) => new ConnectionRates(rates, rateHoldersOf(principal, agent));
      for (const sender of [
        of("key:k", "agent://k"),
        of("issuer:acme", "agent://eve"),
        of("issuer:acme", "agent://o"),
      ]) {
        for (let n = 0; n < 3; n += 1) sender.takeEnvelope();
        sender.takeBytes(700);
      }
      const envelopes = { "key:k": 3, "issuer:acme": 6, "agent://eve": 3, "agent://o": 3 };
      expect(Object.fromEntries(rates.principals.sent())).toEqual(envelopes);
      const bytes = { "key:k": 700, "issuer:acme": 1400, "agent://eve": 700, "agent://o": 700 };
      expect(Object.fromEntries(rates.principalBytes.sent())).toEqual(bytes);
    });

    test("is of the minute that runs and the one before, and nothing older", () => {
      const { principals } = podRates();
      const sent = () => Object.fromEntries(principals.sent());
      const beganAt = performance.now();
      principals.take("key:k", beganAt);
      principals.endMinute(beganAt + 60_000);
      principals.take("key:k", beganAt + 60_000);
      expect([sent(), principals.sentSince]).toEqual([{ "key:k": 2 }, beganAt]);
      principals.endMinute(beganAt + 120_000);
      expect([sent(), principals.sentSince]).toEqual([{ "key:k": 1 }, beganAt + 60_000]);
      principals.endMinute(beganAt + 180_000);
      expect(sent()).toEqual({});
    });
  });
});
