import { fileURLToPath } from "node:url";
import base from "../../jest.config.mjs";

/** Tests that need a Chromium; `npm test` leaves them out. */
export default {
  ...base,
  rootDir: fileURLToPath(new URL("../..", import.meta.url)),
  testMatch: ["<rootDir>/test/browser/**/*.browser.ts"],
  maxWorkers: 1,
};
