/** What test/conformance/relay-under-test.ts gives, on a Redis Cluster: the Jest config here puts this file in its place. */
export { use } from "../../support/use-relay.ts";
export { ClusterRelay as TestRelay } from "./cluster-relay.ts";
