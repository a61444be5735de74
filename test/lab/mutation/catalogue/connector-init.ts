import type { Mutation } from "../mutation.ts";

const INIT = "connector/test/cli/init.test.ts";
const WRITTEN = "test/packages/init.ci.ts";

/** What `relay init` writes, and where. */
export const CONNECTOR_INIT_MUTATIONS: readonly Mutation[] = [
  {
    name: "relay init overwrites no file",
    file: "connector/src/cli/project/write-project.ts",
    find: "if (inTheWay.length === 0) return;",
    replace: "if (inTheWay.length >= 0) return;",
    tests: [INIT],
  },
  {
    name: "git does not see the key that relay init makes",
    file: "connector/src/cli/project/project-key.ts",
    find: "ignored: ignoring(KEY_FILE),",
    replace: 'ignored: "",',
    tests: [INIT],
  },
  {
    name: "git does not see a key that lies in the folder already",
    file: "connector/src/cli/project/project-key.ts",
    find: ".replace(/[\\\\*?[\\]#! ]/g",
    replace: ".replace(/[]/g",
    tests: [INIT],
  },
  {
    name: "a project takes packages from the relay's own paths alone",
    file: "connector/src/cli/project/package-addresses.ts",
    find: " && PATH.test(path)",
    replace: "",
    tests: [INIT],
  },
  {
    name: "a project says which Node it needs before anything else",
    file: "connector/templates/typescript/package.json",
    find: '"pretest": "relay --version && tsc"',
    replace: '"pretest": "tsc"',
    tests: [WRITTEN],
  },
  {
    name: "an agent in TypeScript says in one line why it cannot start",
    file: "connector/templates/typescript/main.ts",
    find: "error instanceof RelayError ?",
    replace: "false ?",
    tests: ["connector/test/cli/init.test.ts"],
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
