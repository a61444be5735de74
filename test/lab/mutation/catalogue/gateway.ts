import type { Mutation } from "../mutation.ts";

const AGGREGATES = "shared/window/test/counters.test.ts";
const SECRETS = "test/integration/secrets.test.ts";
const RATE_LIMITS = "services/gateway/test/rate-limits.test.ts";
const OUTAGES = "services/gateway/test/outages.test.ts";
const WINDOW_LIMIT = "shared/window/test/limits.test.ts";

/** API keys, limits and feedback. */
export const GATEWAY_MUTATIONS: readonly Mutation[] = [
  {
    name: "a relay for others warns without a contact",
    file: "services/gateway/src/contact-warning.ts",
    find: "LOOPBACK.test(new URL(baseUrl).hostname)",
    replace: "true",
    tests: ["services/gateway/test/contact-warning.test.ts"],
  },
  {
    name: "API key binding: a key sends for its own agents",
    file: "services/gateway/src/api/envelope-publisher.ts",
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
    file: "shared/runtime/src/metrics/key-refusals.ts",
    find: "this.#named.size === MAX_NAMED",
    replace: "this.#named.size === 1e9",
    tests: ["shared/runtime/test/metrics/key-refusals.test.ts"],
  },
  {
    name: "a refusal counts for no key whose envelope somebody else sends again",
    file: "services/ws-connector/src/answers.ts",
    find: "signer !== undefined && this.#isUsedBy(connection, signer, from)",
    replace: "signer !== undefined",
    tests: ["services/ws-connector/test/intake.test.ts", "test/integration/metrics.test.ts"],
  },
  {
    name: "a contact is an address and no other text",
    file: "shared/runtime/src/setting-rules.ts",
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
    file: "shared/window/src/address-limits.ts",
    find: "requestsPerMinute === 0 ?",
    replace: "true ?",
    tests: [RATE_LIMITS],
  },
  {
    name: "an unasked limit is not one used up",
    file: "shared/window/src/rate-limit.ts",
    find: "throw reason;",
    replace: "return { allowed: false, remaining: 0, resetMs: 1 };",
    tests: [OUTAGES],
  },
  {
    name: "a request is served though the partition that counts it is out of reach",
    file: "shared/window/src/rate-limit.ts",
    find: "if (placeOutOfReach(reason) !== undefined)",
    replace: "if (false)",
    tests: [WINDOW_LIMIT],
  },
  {
    name: "a process that counts by itself holds the same limit",
    file: "shared/window/src/own-counts.ts",
    find: "this.#used.set(key, used);",
    replace: "",
    tests: [WINDOW_LIMIT],
  },
  {
    name: "what a process counts by itself ends with its minute",
    file: "shared/window/src/own-counts.ts",
    find: "setTimeout(() => this.#used.clear(), this.#windowMs).unref();",
    replace: "",
    tests: [WINDOW_LIMIT],
  },
  {
    name: "the keys that a process counts by itself are bounded",
    file: "shared/window/src/own-counts.ts",
    find: "if (used === 1 && this.#used.size === MOST_KEYS)",
    replace: "if (false)",
    tests: [WINDOW_LIMIT],
  },
  {
    name: "self-tests have their limit while Redis is away",
    file: "shared/window/src/address-limits.ts",
    find: 'name === "self_test" ?',
    replace: "false ?",
    tests: [WINDOW_LIMIT],
  },
  {
    name: "API keys are guessed within the limit while Redis is away",
    file: "services/gateway/src/api/rate-limits.ts",
    find: "this.#failedKeys.useAnyway(",
    replace: "this.#failedKeys.use(",
    tests: [OUTAGES],
  },
  {
    name: "a limit ends with its minute",
    file: "shared/window/src/lua/use_limit.lua",
    find: "if left < 0 then",
    replace: "if false then",
    tests: [WINDOW_LIMIT, RATE_LIMITS],
  },
  {
    name: "a limit's minute is not prolonged",
    file: "shared/window/src/lua/use_limit.lua",
    find: "if left < 0 then",
    replace: "if true then",
    tests: [WINDOW_LIMIT],
  },
  {
    name: "a limit is asked in the partition of whose it is",
    file: "shared/window/src/rate-limit.ts",
    find: "partitionOf(key, this.#partitions)",
    replace: "0",
    tests: [WINDOW_LIMIT],
  },
  {
    name: "an Idempotency-Key is its API key's own",
    file: "services/gateway/src/api/envelope-publisher.ts",
    find: 'createHmac("sha256", apiKeyText)',
    replace: 'createHmac("sha256", "")',
    tests: ["services/gateway/test/idempotency.test.ts"],
  },
  {
    name: "feedback labels normalised",
    file: "shared/protocol/src/contract/feedback-labels.ts",
    find: "return labels.includes(label) ?",
    replace: 'return label !== "" ?',
    tests: [AGGREGATES, SECRETS],
  },
  {
    name: "feedback surfaces normalised",
    file: "shared/protocol/src/contract/feedback-surfaces.ts",
    find: "?? OTHER",
    replace: "?? normalise(text ?? OTHER)",
    tests: [AGGREGATES, SECRETS],
  },
];
