import { fileURLToPath } from "node:url";
import base from "../../../jest.config.mjs";

/** Every fault, again and again, and every attack, each with the table of what became of it; `npm test` injects the quick faults once. */
export default {
  ...base,
  rootDir: fileURLToPath(new URL("../../..", import.meta.url)),
  testMatch: ["<rootDir>/test/lab/{faults,abuse}/**/*.faults.ts"],
  testTimeout: 120_000,
  maxWorkers: 1,
};
