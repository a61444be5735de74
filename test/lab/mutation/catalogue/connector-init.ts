import type { Mutation } from "../mutation.ts";

const WRITTEN = "test/packages/init.ci.ts";

/** What `relay init` writes, and where. */
export const CONNECTOR_INIT_MUTATIONS: readonly Mutation[] = [
  {
    name: "a project says which Node it needs before anything else",
    file: "connector/templates/typescript/package.json",
    find: '"pretest": "relay --version && tsc"',
    replace: '"pretest": "tsc"',
    tests: [WRITTEN],
  },
  {
    name: "an agent in Python outlives an error of its own",
    file: "connector/templates/python/agent.py",
    find: "except Exception:",
    replace: "except ImportError:",
    tests: [WRITTEN],
  },
  {
    name: "an agent in Python closes its connection at SIGTERM",
    file: "connector/templates/python/main.py",
    find: "signal.SIGTERM, running.cancel",
    replace: "signal.SIGUSR1, running.cancel",
    tests: [WRITTEN],
  },
];
