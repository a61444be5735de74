/** What test/conformance/relay-under-test.ts gives, on containers: the Jest config here puts this file in its place. */
export { ContainerRelay as TestRelay } from "./container-relay.ts";
