import type { Mutation } from "../mutation.ts";

const LAST = ["connector/test/last-deliveries.test.ts"];

/** What the connector does when its connection ends, or its relay is away for a while. */
export const CONNECTOR_END_MUTATIONS: readonly Mutation[] = [
  {
    name: "what was promised is handed over before the end is told",
    file: "connector/src/parts.ts",
    find: "this.inbox.afterDeliveries(() => {",
    replace: "queueMicrotask(() => {",
    tests: LAST,
  },
  {
    name: "a takeover is told behind what was promised",
    file: "connector/src/connector.ts",
    find: 'if (notice.kind === "superseded")',
    replace: "if (false)",
    tests: LAST,
  },
  {
    name: "look-ups of a relay hold up no end",
    file: "connector/src/parts.ts",
    find: "setTimeout(() => this.#peers.stop(), LAST_LOOK_UPS_MS)",
    replace: "setTimeout(() => {}, LAST_LOOK_UPS_MS)",
    tests: LAST,
  },
];
