import type { Mutation } from "../mutation.ts";

const RATE_LIMITS = "services/gateway/test/rate-limits.test.ts";
const OUTAGES = "services/gateway/test/outages.test.ts";
const WINDOW_LIMIT = "shared/window/test/limits.test.ts";

/** API keys, limits and feedback. */
export const GATEWAY_MUTATIONS: readonly Mutation[] = [
  {
    name: "a relay for others warns without a contact",
    file: "services/gateway/src/settings.ts",
    find: "LOOPBACK.test(new URL(baseUrl).hostname)",
    replace: "true",
    tests: ["services/gateway/test/settings.test.ts"],
  },
  {
    name: "API key binding: a key sends for its own agents",
    file: "services/gateway/src/api/publisher.ts",
    find: "if (!request.apiKey.mayAct(from))",
    replace: "if (false)",
    tests: ["services/gateway/test/refusals.test.ts"],
  },
  {
    name: "rate of an API key",
    file: "services/gateway/src/api/authentication.ts",
    find: 'if (!usage.allowed) throw rateLimited("api_key_requests"',
    replace: 'if (false) throw rateLimited("api_key_requests"',
    tests: [RATE_LIMITS],
  },
  {
    name: "who sends no key is told so, however many failed",
    file: "services/gateway/src/api/authentication.ts",
    find: 'if (apiKeyText === "") throw unauthorized("missing_api_key", settings.contact, otherHeaderOf(ctx));',
    replace: "",
    tests: [RATE_LIMITS],
  },
  {
    name: "as many keys as have a series of their own",
    file: "shared/runtime/src/metrics/service-metrics.ts",
    find: "this.#named.size === MAX_NAMED",
    replace: "this.#named.size === 1e9",
    tests: ["shared/runtime/test/metrics/service-metrics.test.ts"],
  },
  {
    name: "a contact is an address and no other text",
    file: "shared/runtime/src/addresses.ts",
    find: "if (!/^(?:https:",
    replace: "if (false && !/^(?:https:",
    tests: ["shared/runtime/test/settings.test.ts"],
  },
  {
    name: "API-key failure limit",
    file: "services/gateway/src/api/authentication.ts",
    find: "if (usage !== null && !usage.allowed)",
    replace: "if (false)",
    tests: [RATE_LIMITS],
  },
  {
    name: "public rate limit",
    file: "shared/window/src/limits/rate-limit.ts",
    find: "requestsPerMinute === 0 ?",
    replace: "true ?",
    tests: [RATE_LIMITS],
  },
  {
    name: "an unasked limit is not one used up",
    file: "shared/window/src/limits/rate-limit.ts",
    find: "throw reason;",
    replace: "return { allowed: false, remaining: 0, resetMs: 1 };",
    tests: [OUTAGES],
  },
  {
    name: "API keys are guessed within the limit while Redis is away",
    file: "services/gateway/src/api/authentication.ts",
    find: "this.#failedKeys.useAnyway(",
    replace: "this.#failedKeys.use(",
    tests: [OUTAGES],
  },
  {
    name: "a limit ends with its minute",
    file: "shared/window/src/lua/limits.lua",
    find: "if left < 0 then",
    replace: "if false then",
    tests: [WINDOW_LIMIT, RATE_LIMITS],
  },
  {
    name: "an Idempotency-Key is its API key's own",
    file: "services/gateway/src/api/publisher.ts",
    find: 'createHmac("sha256", apiKeyText)',
    replace: 'createHmac("sha256", "")',
    tests: ["services/gateway/test/publisher.test.ts"],
  },
];
