import type { Mutation } from "../mutation.ts";

const REDIS = "testing/test/redis.test.ts";
const DATABASE = "testing/src/borrowed-database.ts";

/** The relay for tests of agents. */
export const TESTING_MUTATIONS: readonly Mutation[] = [
  {
    name: "a test's relay leaves the databases of others alone",
    file: DATABASE,
    find: '  if (!isOfTests && (await link.command("DBSIZE")) !== 0) return false;\n',
    replace: "",
    tests: [REDIS],
  },
  {
    name: "a test's relay leaves the database of another one alone",
    file: DATABASE,
    find: 'token, "NX", "PX"',
    replace: 'token, "PX"',
    tests: [REDIS],
  },
  {
    name: "a test's relay empties only the database that it still has",
    file: DATABASE,
    find: "    if (!(await isRenewed())) return;\n",
    replace: "",
    tests: [REDIS],
  },
  {
    name: "a test's relay renews no lease but its own",
    file: DATABASE,
    find: 'if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end',
    replace: "",
    tests: [REDIS],
  },
  {
    name: "a test's relay that finds no Redis leaves no keys",
    file: "testing/src/relay.ts",
    find: "  starting.defer(() => keys.remove());\n",
    replace: "",
    tests: [REDIS],
  },
  {
    name: "the agents of a test have names that stay in their folder",
    file: "testing/src/test-keys.ts",
    find: "if (!AGENT_ID_PATTERN.test(agent))",
    replace: "if (false)",
    tests: ["testing/test/relay.ci.ts"],
  },
];
