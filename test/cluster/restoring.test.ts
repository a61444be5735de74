import { jest } from "@jest/globals";

// In the place of one Redis, as the Jest project `cluster` has it for all of these tests.
jest.unstable_mockModule("../support/relay-under-test.ts", () => import("./support/relay-under-test.ts"));
await import("../integration/restoring.test.ts");
