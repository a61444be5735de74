import type { Mutation } from "../mutation.ts";

const APP = "shared/test/http/app.test.ts";
const BODY = "shared/test/http/body.test.ts";

/** HTTP and the pages. */
export const HTTP_MUTATIONS: readonly Mutation[] = [
  {
    name: "trusted hops",
    file: "shared/src/http/app.ts",
    find: "maxIpsCount: trustedProxyHops",
    replace: "",
    tests: [APP],
  },
  {
    name: "no trusted hop by default",
    file: "shared/src/http/app.ts",
    find: "proxy: trustedProxyHops > 0",
    replace: "proxy: true",
    tests: [APP],
  },
  {
    name: "policy of answers",
    file: "shared/src/http/app.ts",
    find: "defaultSrc: [\"'none'\"]",
    replace: "defaultSrc: [\"'self'\"]",
    tests: [APP],
  },
  {
    name: "no writes by pages of other origins",
    file: "shared/src/http/app.ts",
    find: "if (isRead(ctx)) return",
    replace: "if (true) return",
    tests: [APP],
  },
  {
    name: "an unforeseen fault says nothing of itself",
    file: "shared/src/http/problem.ts",
    find: 'new RelayError("internal_error")',
    replace: 'new RelayError("internal_error", { detail: String(error) })',
    tests: [APP],
  },
  {
    name: "size of a body",
    file: "shared/src/http/body.ts",
    find: "textLimit: HTTP_LIMITS.maxBodyBytes",
    replace: "textLimit: 2 ** 24",
    tests: [BODY],
  },
  {
    name: "no content encoding",
    file: "shared/src/http/body.ts",
    find: '(encoding === "" || encoding === "identity")',
    replace: "encoding.length >= 0",
    tests: [BODY],
  },
  {
    name: "UTF-8 of a body",
    file: "shared/src/http/body.ts",
    find: "fatal: true",
    replace: "fatal: false",
    tests: [BODY],
  },
  {
    name: "time for a request",
    file: "shared/src/http/server.ts",
    find: "connectionsCheckingInterval: 1000",
    replace: "connectionsCheckingInterval: 600_000",
    tests: ["shared/test/http/server.test.ts"],
  },
  {
    name: "escaping of pages",
    file: "services/gateway/src/pages/render.ts",
    find: "escapeHtml(textOf(name))",
    replace: "textOf(name)",
    tests: ["services/gateway/test/pages.test.ts"],
  },
  {
    name: "no inline script in pages",
    file: "services/gateway/src/routes/pages.ts",
    find: "\"script-src 'self'\"",
    replace: "\"script-src 'self' 'unsafe-inline'\"",
    tests: ["services/gateway/test/pages.test.ts"],
  },
  {
    name: "trusted types in pages",
    file: "services/gateway/src/routes/pages.ts",
    find: "  \"require-trusted-types-for 'script'\",\n",
    replace: "",
    tests: ["services/gateway/test/pages.test.ts"],
  },
];
