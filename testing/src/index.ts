/** A relay for tests, on Node 24 or later. */

export type { RelayOptions, TestAgent, TestIssuer, TestRelay } from "./contract.ts";
export { startRelay } from "./relay.ts";
