import type { Mutation } from "../mutation.ts";

const LAST = ["connector/test/last-deliveries.test.ts"];

/** What the connector does when its connection ends, or its relay is away for a while. */
export const CONNECTOR_END_MUTATIONS: readonly Mutation[] = [
  {
    name: "deliveries that come in are no answer to a heartbeat",
    file: "connector/src/keepalive.ts",
    find: " || lasts(this.#heartbeatTicks) > 2 * intervalMs",
    replace: "",
    tests: ["connector/test/keepalive.test.ts"],
  },
  {
    name: "answers are told from other frames",
    file: "connector/src/connection.ts",
    find: "if (answered) this.#keepalive?.answered();",
    replace: "this.#keepalive?.answered();",
    tests: ["connector/test/reconnect.test.ts"],
  },
  {
    name: "the answer to an envelope shows that something goes out",
    file: "connector/src/connection.ts",
    find: "if (answered) this.#keepalive?.answered();",
    replace: "if (answered && answered === this.#asked?.id) this.#keepalive?.answered();",
    tests: ["connector/test/reconnect.test.ts"],
  },
  {
    name: "a proxy that is silent holds up no end",
    file: "connector/src/platform/node.ts",
    find: "    over.abort();\n",
    replace: "",
    tests: ["connector/test/platform/proxy.test.ts"],
  },
  {
    name: "a proxy's refusal is not the relay's",
    file: "connector/src/platform/proxy.ts",
    find: "if (statusCode >= 200 && statusCode < 300) return resolve(socket);",
    replace: "return resolve(socket);",
    tests: ["connector/test/platform/proxy.test.ts"],
  },
  {
    name: "a program exits after close, although the relay is silent",
    file: "connector/src/socket.ts",
    find: "setTimeout(() => this.#websocket?.cut(), CLOSE_WITHIN_MS)",
    replace: "setTimeout(() => {}, CLOSE_WITHIN_MS)",
    tests: ["connector/test/socket.test.ts"],
  },
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
  {
    name: "a start with another's key is told so",
    file: "connector/src/first-start.ts",
    find: "throw (await keyRefusal(this.#options.http, await register(), this.#stopped.signal)) ?? bar;",
    replace: "throw bar;",
    tests: ["connector/test/first-start.test.ts"],
  },
];
