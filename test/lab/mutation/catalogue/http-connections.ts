import type { Mutation } from "../mutation.ts";

const BOUNDS = "shared/runtime/test/http/connection-bounds.test.ts";
const SERVER = "shared/runtime/test/http/server.test.ts";
const SERVER_STOP = "shared/runtime/test/http/server-stop.test.ts";
const QUEUE = "shared/runtime/test/http/request-queue.test.ts";
const STARTING = "test/integration/starting.test.ts";

/** Plain connections, and the queue of their requests. */
export const HTTP_CONNECTION_MUTATIONS: readonly Mutation[] = [
  {
    name: "one answer at a time on a connection",
    file: "shared/runtime/src/http/plain-connections.ts",
    find: "if (before === null || before.closed) {",
    replace: "if (true) {",
    tests: [BOUNDS],
  },
  {
    name: "requests that wait on one connection",
    file: "shared/runtime/src/http/plain-connections.ts",
    find: "if (connection.waiting > HTTP_LIMITS.waitingRequests) {",
    replace: "if (false) {",
    tests: [BOUNDS],
  },
  {
    name: "parsing ends with the connection",
    file: "shared/runtime/src/http/plain-connections.ts",
    find: "      parseNoFurther(socket);\n",
    replace: "",
    tests: [BOUNDS],
  },
  {
    name: "one request of an address begins in a turn of the event loop",
    file: "shared/runtime/src/http/request-queue.ts",
    find: "let addresses = this.#waiting.size",
    replace: "let addresses = 1000",
    tests: [QUEUE],
  },
  {
    name: "requests that begin in a turn of the event loop have a slice of it",
    file: "shared/runtime/src/http/request-queue.ts",
    find: "      if (performance.now() >= until) return;\n",
    replace: "",
    tests: [QUEUE],
  },
  {
    name: "turns are yielded to newcomers",
    file: "shared/runtime/src/http/request-queue.ts",
    find: "this.#hasAccepted && this.#yielded < MOST_YIELDED && this.#waiting.size <= FEW_ADDRESSES",
    replace: "false",
    tests: [QUEUE],
  },
  {
    name: "no turns of many addresses are yielded to newcomers",
    file: "shared/runtime/src/http/request-queue.ts",
    find: " && this.#waiting.size <= FEW_ADDRESSES",
    replace: "",
    tests: [QUEUE],
  },
  {
    name: "turns are not all yielded to newcomers",
    file: "shared/runtime/src/http/request-queue.ts",
    find: " && this.#yielded < MOST_YIELDED",
    replace: "",
    tests: [QUEUE],
  },
  {
    name: "bound of plain connections",
    file: "shared/runtime/src/http/plain-connections.ts",
    find: "this.#all.size >= this.#max",
    replace: "false",
    tests: [BOUNDS],
  },
  {
    name: "bound of an address's plain connections",
    file: "shared/runtime/src/http/plain-connections.ts",
    find: "others.size >= this.#maxOfAddress",
    replace: "false",
    tests: [BOUNDS],
  },
  {
    name: "no answer that is due gives way",
    file: "shared/runtime/src/http/plain-connections.ts",
    find: "if (isIdle(connection)) return",
    replace: "if (true) return",
    tests: [BOUNDS],
  },
  {
    name: "an overdue answer gives way",
    file: "shared/runtime/src/http/plain-connections.ts",
    find: "overdue ??= connection;",
    replace: ";",
    tests: [BOUNDS],
  },
  {
    name: "idle connections give way in the order of their last request",
    file: "shared/runtime/src/http/plain-connections.ts",
    find: "    this.remove(connection.socket);\n    connection.usedAt",
    replace: "    connection.usedAt",
    tests: [BOUNDS],
  },
  {
    name: "no bound by the address of a proxy",
    file: "shared/runtime/src/http/connection-bounds.ts",
    find: "isDirect ? connectionsPerAddress : 0",
    replace: "connectionsPerAddress",
    tests: [BOUNDS],
  },
  {
    name: "no more sockets than plain connections and websockets",
    file: "shared/runtime/src/http/server.ts",
    find: "bounds.plain + bounds.websockets + 1",
    replace: "bounds.plain + bounds.websockets + 100",
    tests: [BOUNDS],
  },
  {
    name: "time without a request",
    file: "shared/runtime/src/http/server.ts",
    find: "keepAliveTimeout: bounds.idleMs",
    replace: "keepAliveTimeout: 600_000",
    tests: [BOUNDS],
  },
  {
    name: "no more connections than file descriptors",
    file: "shared/runtime/src/open-files.ts",
    find: "if (bounds === null) return settings;",
    replace: "return settings;",
    tests: [STARTING],
  },
  {
    name: "no upgrade behind an open answer",
    file: "shared/runtime/src/http/server.ts",
    find: "if (this.#connections.isAnswering(socket)) {",
    replace: "if (false) {",
    tests: [SERVER],
  },
  {
    name: "time to read the refusal of an upgrade",
    file: "shared/runtime/src/http/server.ts",
    find: "setTimeout(() => socket.destroy(), REFUSAL_MS)",
    replace: "setTimeout(() => {}, REFUSAL_MS)",
    tests: [SERVER],
  },
  {
    name: "a refused upgrade counts as a plain connection",
    file: "shared/runtime/src/http/server.ts",
    find: "    take();\n",
    replace: "    take();\n    this.#untrack(socket);\n",
    tests: [BOUNDS],
  },
  {
    name: "a stop ends connections that Node has let go of",
    file: "shared/runtime/src/http/server.ts",
    find: "this.#connections.closeAll()",
    replace: "this.#server.closeAllConnections()",
    tests: [SERVER_STOP],
  },
  {
    name: "an answer for who has ended its side",
    file: "shared/runtime/src/http/server.ts",
    find: "{ httpAllowHalfOpen: true }",
    replace: "{ httpAllowHalfOpen: false }",
    tests: [SERVER],
  },
];
