import type { Mutation } from "../mutation.ts";

/** What bounds a relay that lies to the connector, or is broken. */
export const CONNECTOR_LYING_RELAY_MUTATIONS: readonly Mutation[] = [
  {
    name: "a redirect is not followed",
    file: "connector/src/platform/web.ts",
    find: ' redirect: "manual",',
    replace: "",
    tests: ["connector/test/platform/web.test.ts"],
  },
];
