/** The relay under test: here in this process; under test/containers/jest.config.mjs on containers. */
export { TestRelay } from "../support/relay.ts";
