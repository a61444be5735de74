import type { Mutation } from "../mutation.ts";

const SCRIPT = "shared/window/src/lua/assert_routes.lua";

/** That live agents come back by themselves where Redis lost them, and that nothing becomes true by it. */
export const ASSERT_MUTATIONS: readonly Mutation[] = [
  {
    name: "who comes after a loss can verify who was there before",
    file: SCRIPT,
    find: "  keep_credentials(owner and not owns, credential_number, last_end, lines)\n",
    replace: "",
    tests: ["connector/test/credentials/strangers.test.ts"],
  },
];
