/** The relay under test, and how a test file uses it: here in this process; under test/containers/jest.config.mjs on containers. */
export { TestRelay } from "../support/relay.ts";
export { use } from "../support/use-relay.ts";
