import type { Mutation } from "../mutation.ts";

const LUA = "shared/window/src/lua";

/** That no envelope takes effect twice. */
export const REPLAY_MUTATIONS: readonly Mutation[] = [
  {
    name: "replay guard of messages",
    file: `${LUA}/accept/messages.lua`,
    find: "redis.call('SADD', bucket, ARGV[i]) == 1",
    replace: "redis.call('SADD', bucket, ARGV[i]) >= 0",
    tests: ["shared/window/test/acceptance.test.ts", "test/conformance/replay.test.ts"],
  },
  {
    name: "replay guard of decisions",
    file: `${LUA}/accept/sessions.lua`,
    find: "if not is_new then",
    replace: "if false then",
    tests: ["shared/window/test/session-decisions.test.ts", "test/conformance/replay.test.ts"],
  },
  {
    name: "the guard judges a decision before it takes effect",
    file: `${LUA}/reserve_decision.lua`,
    find: "redis.call('SISMEMBER', bucket_key, text_digest) == 1 and 'reserved' or 'taken'",
    replace: "'reserved'",
    tests: ["shared/window/test/session-decisions.test.ts", "test/conformance/sessions.test.ts"],
  },
  {
    name: "a decision in effect is delivered when it is sent again",
    file: `${LUA}/reserve_decision.lua`,
    find: "redis.call('SADD', bucket_key, text_digest)\n",
    replace: "\n",
    tests: ["shared/window/test/session-decisions.test.ts"],
  },
  {
    name: "the guard knows an envelope by its target, too",
    file: "shared/window/src/acceptance/envelope-digest.ts",
    find: 'to ?? ""',
    replace: '""',
    tests: ["shared/window/test/session-decisions.test.ts", "shared/window/test/acceptance.test.ts"],
  },
  {
    name: "replay guard of session requests",
    file: `${LUA}/accept/sessions.lua`,
    find: "if redis.call('SISMEMBER', bucket, digest) == 1 then",
    replace: "if false then",
    tests: ["shared/window/test/sessions.test.ts", "test/conformance/replay.test.ts"],
  },
  {
    name: "replay guard of agent.*",
    file: `${LUA}/accept/presence.lua`,
    find: "if redis.call('SISMEMBER', bucket, digest) == 1 then",
    replace: "if false then",
    tests: ["shared/window/test/acceptance.test.ts", "test/conformance/replay.test.ts"],
  },
  {
    name: "no envelope that the guard could forget",
    file: `${LUA}/lib/guard.lua`,
    find: "return batch.now < ends_at and",
    replace: "return true or",
    tests: ["shared/window/test/acceptance.test.ts"],
  },
  {
    name: "a bucket of the guard is small enough to be moved",
    file: "shared/window/src/redis/limits.ts",
    find: "guardBucketMs: 5000",
    replace: "guardBucketMs: 60_000",
    tests: ["shared/window/test/acceptance.test.ts"],
  },
  {
    name: "a bucket of the guard is forgotten some day",
    file: `${LUA}/lib/guard.lua`,
    find: "if redis.call('SCARD', bucket) == added then",
    replace: "if false then",
    tests: ["shared/window/test/acceptance.test.ts"],
  },
  {
    name: "the guard outlives a reset",
    file: "shared/window/src/window-sweep.ts",
    find: "(?:seen:",
    replace: "(?:never:",
    tests: ["shared/window/test/next-window.test.ts"],
  },
  {
    name: "a pod delivers nothing again that a promotion forgot",
    file: "services/ws-connector/src/deliveries.ts",
    find: "channel.partitions > 1 ?",
    replace: "channel.partitions > 100 ?",
    tests: ["services/ws-connector/test/deliveries.test.ts"],
  },
  {
    name: "what was not written to a connection may be delivered later",
    file: "services/ws-connector/src/deliveries.ts",
    find: "if (isSent) recent?.add(text, performance.now());\n      else releaser",
    replace: "recent?.add(text, performance.now());\n      if (!isSent) releaser",
    tests: ["services/ws-connector/test/deliveries.test.ts"],
  },
  {
    name: "what a pod delivered is remembered for a minute",
    file: "services/ws-connector/src/recent-deliveries.ts",
    find: "return this.#latest.has(tail) || this.#former.has(tail);",
    replace: "return this.#latest.has(tail);",
    tests: ["services/ws-connector/test/deliveries.test.ts"],
  },
  {
    name: "a pod that delivers very much remembers the last of it alone",
    file: "services/ws-connector/src/recent-deliveries.ts",
    find: "if (age < REMEMBERED_MS && this.#latest.size < MOST) return;",
    replace: "if (age < REMEMBERED_MS) return;",
    tests: ["services/ws-connector/test/deliveries.test.ts"],
  },
];
