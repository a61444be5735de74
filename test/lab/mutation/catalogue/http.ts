import type { Mutation } from "../mutation.ts";

const APP = "shared/runtime/test/http/app.test.ts";
const COMPRESSION = "shared/runtime/test/http/compression.test.ts";
const KEPT = "services/gateway/test/kept-documents.test.ts";
const BODY = "shared/runtime/test/http/body.test.ts";

/** HTTP and the pages. */
export const HTTP_MUTATIONS: readonly Mutation[] = [
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
    file: "services/gateway/src/site/kept-document.ts",
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
    file: "shared/runtime/src/http/body.ts",
    find: "textLimit: HTTP_LIMITS.maxBodyBytes",
    replace: "textLimit: 2 ** 24",
    tests: [BODY],
  },
  {
    name: "no content encoding",
    file: "shared/runtime/src/http/body.ts",
    find: 'encoding === "" || encoding === "identity"',
    replace: "true",
    tests: [BODY],
  },
  {
    name: "UTF-8 of a body",
    file: "shared/runtime/src/http/body.ts",
    find: "fatal: true",
    replace: "fatal: false",
    tests: [BODY],
  },
  {
    name: "time for a request",
    file: "shared/runtime/src/http/server.ts",
    find: "connectionsCheckingInterval: 1000",
    replace: "connectionsCheckingInterval: 600_000",
    tests: ["shared/runtime/test/http/server.test.ts"],
  },
  {
    name: "escaping of pages",
    file: "services/gateway/src/site/pages/render.ts",
    find: "escapeHtml(textOf(name))",
    replace: "textOf(name)",
    tests: ["services/gateway/test/pages.test.ts"],
  },
  {
    name: "no inline script in pages",
    file: "services/gateway/src/site/endpoints/pages.ts",
    find: "\"script-src 'self'\"",
    replace: "\"script-src 'self' 'unsafe-inline'\"",
    tests: ["services/gateway/test/pages.test.ts"],
  },
  {
    name: "trusted types in pages",
    file: "services/gateway/src/site/endpoints/pages.ts",
    find: "  \"require-trusted-types-for 'script'\",\n",
    replace: "",
    tests: ["services/gateway/test/pages.test.ts"],
  },
  {
    name: "a server that is stopped while it starts leaves its port",
    file: "shared/runtime/src/http/server.ts",
    find: "if (!this.#server.listening) await this.#started?.catch(() => {});",
    replace: "",
    tests: ["shared/runtime/test/http/server.test.ts"],
  },
];
