import type { Mutation } from "../mutation.ts";

/** Who may connect, in what form, and what ends a connection. */
export const WEBSOCKET_MUTATIONS: readonly Mutation[] = [
  {
    name: "register within 10 s",
    file: "services/ws-connector/src/connection/connection.ts",
    find: 'this.closeFor("register_within");',
    replace: "undefined",
    tests: ["test/conformance/limits.test.ts"],
  },
  {
    name: "a silent connection is told why it is closed",
    file: "services/ws-connector/src/connection/connection.ts",
    find: 'this.send(errorFrame("register_timeout", {}))',
    replace: "false",
    tests: ["test/conformance/limits.test.ts"],
  },
  {
    name: "refusals in a row",
    file: "services/ws-connector/src/connection/connection.ts",
    find: ">= CONNECTION_LIMITS.maxRefusalsInARow",
    replace: "> 1e9",
    tests: ["test/conformance/limits.test.ts"],
  },
  {
    name: "who decides sessions that gave way is not closed for it",
    file: "services/ws-connector/src/intake/responder.ts",
    find: "UNFORESEEN.has(code) || ",
    replace: "",
    tests: ["test/conformance/sessions.test.ts"],
  },
  {
    name: "binary frames refused",
    file: "services/ws-connector/src/connection/connection.ts",
    find: "if (isBinary)",
    replace: "if (false)",
    tests: ["test/conformance/raw-frames.test.ts"],
  },
  {
    name: "max payload of a frame",
    file: "services/ws-connector/src/connection/upgrade.ts",
    find: "maxPayload: ENVELOPE_LIMITS.maxFrameBytes",
    replace: "maxPayload: 2 ** 20",
    tests: ["test/conformance/raw-frames.test.ts"],
  },
  {
    name: "no compression",
    file: "services/ws-connector/src/connection/upgrade.ts",
    find: "perMessageDeflate: false",
    replace: "perMessageDeflate: true",
    tests: ["test/conformance/hello.test.ts"],
  },
  {
    name: "origin allow-list",
    file: "services/ws-connector/src/connection/upgrade.ts",
    find: "return isAllowed ?",
    replace: "return true ?",
    tests: ["test/conformance/hello.test.ts"],
  },
  {
    name: "connections of a pod",
    file: "services/ws-connector/src/connection/upgrade.ts",
    find: " ?? connections.refusalOf(address)",
    replace: "",
    tests: ["test/conformance/hello.test.ts"],
  },
  {
    name: "an IPv6 address counts as its /64",
    file: "shared/runtime/src/http/client-address.ts",
    find: "if (!isIPv6(address)) return address;",
    replace: "if (true) return address;",
    tests: ["shared/runtime/test/http/client-address.test.ts"],
  },
  {
    name: "agents of a connection",
    file: "services/ws-connector/src/intake/intake.ts",
    find: "> CONNECTION_LIMITS.maxAgentsPerConnection",
    replace: "> 1e9",
    tests: ["test/conformance/ownership.test.ts"],
  },
];
