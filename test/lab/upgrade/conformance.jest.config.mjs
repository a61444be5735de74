import { join } from "node:path";
import { fileURLToPath } from "node:url";

const tree = process.env.RELAY_PREVIOUS_TREE;
const { default: base } = await import(join(tree, "jest.config.mjs"));

/** The conformance suite of the version before, over services of both versions. `main.ts` starts it. */
export default {
  ...base,
  rootDir: tree,
  testMatch: ["<rootDir>/test/conformance/**/*.test.ts"],
  moduleNameMapper: { "/relay-under-test\\.ts$": fileURLToPath(new URL("support/mixed-relay.ts", import.meta.url)) },
};
