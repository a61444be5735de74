/** What test/support/relay-under-test.ts gives, on a Redis Cluster: the Jest config here puts this file in its place. */
export { use } from "../../support/use.ts";
export { GuardedClusterRelay as TestRelay } from "./guarded-cluster-relay.ts";
