import { fileURLToPath } from "node:url";
import base from "../../../jest.config.mjs";

/** A rollout, of services of two versions. `main.ts` starts it. */
export default {
  ...base,
  rootDir: fileURLToPath(new URL("../../..", import.meta.url)),
  testMatch: ["<rootDir>/test/lab/upgrade/*.upgrade.ts"],
  testTimeout: 120_000,
  maxWorkers: 1,
};
