/** The relay that is held to the contract: here in this process; under test/containers/jest.config.mjs on containers. */
export { TestRelay } from "../support/relay.ts";
export { serveWhole } from "../support/whole-relay.ts";
