import type { Mutation } from "../mutation.ts";

const APP = "shared/runtime/test/http/app.test.ts";
const COMPRESSION = "shared/runtime/test/http/compression.test.ts";
const KEPT = "services/gateway/test/kept-documents.test.ts";
const BODY = "shared/runtime/test/http/input.test.ts";
const SERVER = "shared/runtime/test/http/server.test.ts";
const SERVER_STOP = "shared/runtime/test/http/server-stop.test.ts";
const FRAMING = "test/hostile/http-framing.test.ts";

/** HTTP and the pages. */
export const HTTP_MUTATIONS: readonly Mutation[] = [
  {
    name: "addresses take turns over HTTP",
    file: "shared/runtime/src/http/server.ts",
    find: "networkOf(clientAddress(req, this.#options.trustedProxyHops ?? 0))",
    replace: '""',
    tests: [SERVER],
  },
  {
    name: "an answer that its client is reading is not cut off by a stop",
    file: "shared/runtime/src/http/server.ts",
    find: "this.#server.closeIdleConnections = () => this.#closeAnswered();",
    replace: "",
    tests: [SERVER_STOP],
  },
  {
    name: "a connection ends with the answer that was being read at a stop",
    file: "shared/runtime/src/http/server.ts",
    find: 'answer.once("close", () => socket.destroySoon())',
    replace: "undefined",
    tests: [SERVER_STOP],
  },
  {
    name: "no compressed answer to a POST",
    file: "shared/runtime/src/http/compression.ts",
    find: 'ctx.method === "GET" || ctx.method === "HEAD" ? compressRead(ctx, next) : next()',
    replace: "compressRead(ctx, next)",
    tests: [COMPRESSION],
  },
  {
    name: "a refusal of no encoding",
    file: "shared/runtime/src/http/app.ts",
    find: "for (const name of OF_A_BODY) ctx.remove(name);",
    replace: "",
    tests: [COMPRESSION],
  },
  {
    name: "a tag for each encoding",
    file: "services/gateway/src/discovery/endpoints.ts",
    find: "etag: tagOf(bytes)",
    replace: "etag: tagOf(content)",
    tests: [KEPT],
  },
  {
    name: "trusted hops",
    file: "shared/runtime/src/http/app.ts",
    find: "maxIpsCount: trustedProxyHops",
    replace: "",
    tests: [APP],
  },
  {
    name: "no trusted hop by default",
    file: "shared/runtime/src/http/app.ts",
    find: "proxy: trustedProxyHops > 0",
    replace: "proxy: true",
    tests: [APP],
  },
  {
    name: "policy of answers",
    file: "shared/runtime/src/http/app.ts",
    find: "defaultSrc: [\"'none'\"]",
    replace: "defaultSrc: [\"'self'\"]",
    tests: [APP],
  },
  {
    name: "no writes by pages of other origins",
    file: "shared/runtime/src/http/app.ts",
    find: "if (isRead(ctx)) return",
    replace: "if (true) return",
    tests: [APP],
  },
  {
    name: "an unforeseen fault says nothing of itself",
    file: "shared/runtime/src/http/problem.ts",
    find: 'new ServiceError("internal_error")',
    replace: 'new ServiceError("internal_error", { detail: String(error) })',
    tests: [APP],
  },
  {
    name: "size of a body",
    file: "shared/runtime/src/http/input.ts",
    find: "textLimit: HTTP_LIMITS.maxBodyBytes",
    replace: "textLimit: 2 ** 24",
    tests: [BODY],
  },
  {
    name: "no content encoding",
    file: "shared/runtime/src/http/input.ts",
    find: 'encoding === "" || encoding === "identity"',
    replace: "true",
    tests: [BODY],
  },
  {
    name: "UTF-8 of a body",
    file: "shared/runtime/src/http/input.ts",
    find: "fatal: true",
    replace: "fatal: false",
    tests: [BODY],
  },
  {
    name: "time for a request",
    file: "shared/runtime/src/http/server.ts",
    find: "connectionsCheckingInterval: 1000",
    replace: "connectionsCheckingInterval: 600_000",
    tests: [SERVER],
  },
  {
    name: "escaping of pages",
    file: "services/gateway/src/pages/pages.ts",
    find: "escapeHtml(textOf(name))",
    replace: "textOf(name)",
    tests: ["services/gateway/test/pages.test.ts"],
  },
  {
    name: "no inline script in pages",
    file: "services/gateway/src/pages/pages.ts",
    find: "\"script-src 'self'\"",
    replace: "\"script-src 'self' 'unsafe-inline'\"",
    tests: ["services/gateway/test/pages.test.ts"],
  },
  {
    name: "trusted types in pages",
    file: "services/gateway/src/pages/pages.ts",
    find: "  \"require-trusted-types-for 'script'\",\n",
    replace: "",
    tests: ["services/gateway/test/pages.test.ts"],
  },
  {
    name: "a server that is stopped while it starts leaves its port",
    file: "shared/runtime/src/http/server.ts",
    find: "if (!this.#server.listening) await this.#started?.catch(() => {});",
    replace: "",
    tests: [SERVER_STOP],
  },
  {
    name: "one Host field",
    file: "shared/runtime/src/http/server.ts",
    find: "return count === 1 && HOST.test",
    replace: "return HOST.test",
    tests: [FRAMING],
  },
  {
    name: "a Host field that is a host",
    file: "shared/runtime/src/http/server.ts",
    find: 'HOST.test(headers.host ?? "")',
    replace: "true",
    tests: [FRAMING],
  },
  {
    name: "an upgrade has a Host field",
    file: "shared/runtime/src/http/server.ts",
    find: 'httpVersion === "1.0" && headers.upgrade === undefined',
    replace: 'httpVersion === "1.0"',
    tests: ["test/hostile/websocket-handshakes.test.ts"],
  },
  {
    name: "the faults of all services in one message",
    file: "shared/runtime/src/settings.ts",
    find: "new Set(readers.flatMap(",
    replace: "new Set(readers.slice(0, 1).flatMap(",
    tests: ["test/local/start-relay.test.ts"],
  },
  {
    name: "two ports for two servers",
    file: "shared/runtime/src/settings.ts",
    find: "read(other) === result.data",
    replace: "false",
    tests: ["shared/runtime/test/settings.test.ts"],
  },
  {
    name: "Redis passwords last",
    file: "deploy/docker/redis-passwords.ts",
    find: "kept.get(variableOf(user)) ?? ",
    replace: "",
    tests: ["test/deploy/redis-passwords.test.ts"],
  },
  {
    name: "limits of the edge by network",
    file: "deploy/docker/nginx.conf",
    find: "limit_conn_zone $client_network zone=websockets",
    replace: "limit_conn_zone $http_x_forwarded_for zone=websockets",
    tests: ["test/deploy/edge.test.ts"],
  },
];
