import type { Mutation } from "../mutation.ts";

const LUA = "shared/window/src/lua";

/** That no envelope takes effect twice. */
export const REPLAY_MUTATIONS: readonly Mutation[] = [
  {
    name: "replay guard of messages",
    file: `${LUA}/accept/plain_messages.lua`,
    find: "redis.call('SADD', bucket, ARGV[i]) == 1",
    replace: "redis.call('SADD', bucket, ARGV[i]) >= 0",
    tests: ["shared/window/test/acceptance.test.ts", "test/conformance/replay.test.ts"],
  },
  {
    name: "replay guard of decisions",
    file: `${LUA}/accept/sessions_and_claims.lua`,
    find: "if not is_new then",
    replace: "if false then",
    tests: ["shared/window/test/session-decisions.test.ts", "test/conformance/replay.test.ts"],
  },
  {
    name: "the guard judges a decision before it takes effect",
    file: "shared/window/src/lua/sessions.lua",
    find: "redis.call('SISMEMBER', bucket_key, text_digest) == 1 and 'reserved' or 'taken'",
    replace: "'reserved'",
    tests: ["shared/window/test/session-decisions.test.ts", "test/conformance/sessions.test.ts"],
  },
  {
    name: "replay guard of session requests",
    file: `${LUA}/accept/sessions_and_claims.lua`,
    find: "if redis.call('SISMEMBER', bucket, digest) == 1 then",
    replace: "if false then",
    tests: ["shared/window/test/sessions.test.ts", "test/conformance/replay.test.ts"],
  },
  {
    name: "replay guard of agent.*",
    file: `${LUA}/accept/registers.lua`,
    find: "if redis.call('SISMEMBER', bucket, digest) == 1 then",
    replace: "if false then",
    tests: ["shared/window/test/acceptance.test.ts", "test/conformance/replay.test.ts"],
  },
];
