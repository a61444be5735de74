import type { Mutation } from "../mutation.ts";

const RATES = "services/ws-connector/src/principal-rates.ts";
const LEASE = "shared/window/src/lua/lease_shares.lua";

/** What a principal may send over several pods. */
export const SHARED_RATE_MUTATIONS: readonly Mutation[] = [
  {
    name: "pods ask each other about principals above half of their rate",
    file: "services/ws-connector/src/service.ts",
    find: "{ everyMs: REDIS_LIMITS.shareRenewMs, run: () => void shareLeases.renew() },",
    replace: "",
    tests: ["test/integration/limits.test.ts"],
  },
  {
    name: "a pod that shares a principal's rate gives it its part only",
    file: RATES,
    find: "account.sharedBy = this.#sharedBy.get(holder) ?? 1;",
    replace: "account.sharedBy = 1;",
    tests: ["services/ws-connector/test/shared-rates.test.ts"],
  },
  {
    name: "a principal that uses up its share keeps sharing",
    file: RATES,
    find: "this.#halfBuckets.take(account.halfFullAt, now, price)",
    replace: "this.#halfBuckets.take(account.halfFullAt, now, tokens)",
    tests: ["services/ws-connector/test/shared-rates.test.ts"],
  },
  {
    name: "a principal that sends by fits and starts pays off what it had before it shared",
    file: RATES,
    find: "MAX_HALF_DEBT_MS = 5000",
    replace: "MAX_HALF_DEBT_MS = 1000",
    tests: ["services/ws-connector/test/shared-rates.test.ts"],
  },
  {
    name: "a renewal without an answer leaves the pod's own limit in force",
    file: "services/ws-connector/src/share-leases.ts",
    find: "rates.share(await this.#shares.lease(limit, rates.aboveHalf(performance.now())));",
    replace:
      "const held = await this.#shares.lease(limit, rates.aboveHalf(performance.now()));\n    if (held.size > 0) rates.share(held);",
    tests: ["services/ws-connector/test/shared-rates.test.ts"],
  },
  {
    name: "each limit of a principal is shared by itself",
    file: "shared/window/src/principal-shares.ts",
    find: "partitionKeys.shares(p, limit, digest)",
    replace: 'partitionKeys.shares(p, "", digest)',
    tests: ["shared/window/test/limits.test.ts"],
  },
  {
    name: "the part of a pod that is gone is the others' again",
    file: LEASE,
    find: "redis.call('ZREMRANGEBYSCORE', shares_key, '-inf', digits(now))",
    replace: "",
    tests: ["shared/window/test/limits.test.ts"],
  },
  {
    name: "nothing stays in Redis of rates that nobody shares",
    file: LEASE,
    find: "redis.call('PEXPIRE', shares_key, lease)",
    replace: "",
    tests: ["shared/window/test/limits.test.ts"],
  },
];
