import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { everythingIn } from "../../../test/support/redis-dump.ts";
import { fillTo, unlimited } from "../../../test/support/redis-memory.ts";
import { PrincipalShares } from "../src/principal-shares.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { REDIS_LIMITS } from "../src/redis/limits.ts";
import { Bench, ClockedLink } from "./kit.ts";

const ACME = "key:acme";
const OTHER = "key:other";
const bench = new Bench();
let link: ClockedLink;

const podOf = (pod: string, partitions = 1) => new PrincipalShares({ link, partitions, pod });

beforeEach(async () => {
  await bench.open();
  link = await ClockedLink.of(bench);
});
afterEach(async () => {
  await unlimited(bench.client);
  await bench.clear();
});
afterAll(() => bench.redis.stop());

describe("A limit of a principal", () => {
  test("is shared by the pods that lease it, each counted once, and by none for another principal or limit", async () => {
    const [a, b] = [podOf("a"), podOf("b")];
    expect(await a.lease("key_envelopes", [ACME])).toEqual(new Map([[ACME, 1]]));
    expect(await a.lease("key_envelopes", [ACME])).toEqual(new Map([[ACME, 1]]));
    expect(await b.lease("key_envelopes", [OTHER, ACME])).toEqual(
      new Map([
        [OTHER, 1],
        [ACME, 2],
      ]),
    );
    expect(await b.lease("key_bytes", [ACME])).toEqual(new Map([[ACME, 1]]));
  });

  test("is the other pods' again when a lease was not renewed in time, and not before", async () => {
    const [a, b] = [podOf("a"), podOf("b")];
    await a.lease("key_envelopes", [ACME]);
    link.at += REDIS_LIMITS.shareLeaseMs - 1;
    expect(await b.lease("key_envelopes", [ACME])).toEqual(new Map([[ACME, 2]]));
    link.at += 1;
    expect(await b.lease("key_envelopes", [ACME])).toEqual(new Map([[ACME, 1]]));
  });

  test("is in one place for all pods, whatever the number of partitions", async () => {
    const principals = Array.from({ length: 50 }, (_, n) => `key:k${n}` as const);
    await podOf("a", 16).lease("key_bytes", principals);
    const found = await podOf("b", 16).lease("key_bytes", principals);
    expect(found).toEqual(new Map(principals.map((principal) => [principal, 2])));
  });

  test("leaves nothing in Redis when nobody leases it any more, and never a name", async () => {
    expect(await podOf("a").lease("key_bytes", [])).toEqual(new Map());
    expect(await everythingIn(bench.client, "relay:*")).not.toContain("shares");
    await podOf("a").lease("key_bytes", [ACME]);
    expect(await everythingIn(bench.client, "relay:*")).not.toContain("acme");
    const [key] = await bench.client.keys(partitionKeys.shares(0, "*", "*"));
    const left = await bench.client.pttl(key as string);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(REDIS_LIMITS.shareLeaseMs);
  });

  test("is shared while Redis is full, too", async () => {
    await fillTo(bench.client, 1.2);
    await podOf("a").lease("key_envelopes", [ACME]);
    expect(await podOf("b").lease("key_envelopes", [ACME])).toEqual(new Map([[ACME, 2]]));
  });

  test("is known of no principal that Redis did not answer for", async () => {
    const own = await bench.link();
    own.reconnect(new Error("given up by the test"));
    const shares = new PrincipalShares({ link: own, partitions: 1, pod: "a" });
    expect(await shares.lease("key_envelopes", [ACME])).toEqual(new Map());
  });
});
