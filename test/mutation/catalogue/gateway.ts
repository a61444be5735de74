import type { Mutation } from "../mutation.ts";

const AGGREGATES = "shared/test/window/aggregates.test.ts";
const SECRETS = "test/integration/secrets.test.ts";
const RATE_LIMITS = "services/gateway/test/rate-limits.test.ts";

/** API keys, limits and feedback. */
export const GATEWAY_MUTATIONS: readonly Mutation[] = [
  {
    name: "API key binding: a key sends for its own agents",
    file: "services/gateway/src/publisher.ts",
    find: "if (!request.apiKey.mayAct(from))",
    replace: "if (false)",
    tests: ["services/gateway/test/refusals.test.ts"],
  },
  {
    name: "rate of an API key",
    file: "services/gateway/src/admission.ts",
    find: "ctx.set(rateLimitFields(usage));\n  if (!usage.allowed)",
    replace: "ctx.set(rateLimitFields(usage));\n  if (false)",
    tests: [RATE_LIMITS],
  },
  {
    name: "API-key failure limit",
    file: "services/gateway/src/admission.ts",
    find: "return usage === null || usage.allowed ?",
    replace: "return true ?",
    tests: [RATE_LIMITS],
  },
  {
    name: "public rate limit",
    file: "services/gateway/src/rate-limits.ts",
    find: "publicRequestsPerMinute === 0 ?",
    replace: "true ?",
    tests: [RATE_LIMITS],
  },
  {
    name: "an unasked limit is not one used up",
    file: "services/gateway/src/limit.ts",
    find: "if (reason instanceof RateLimiterRes) return reason;",
    replace: "return reason as RateLimiterRes;",
    tests: ["services/gateway/test/outages.test.ts"],
  },
  {
    name: "an Idempotency-Key is its API key's own",
    file: "services/gateway/src/publisher.ts",
    find: 'createHmac("sha256", apiKeyText)',
    replace: 'createHmac("sha256", "")',
    tests: ["services/gateway/test/idempotency.test.ts"],
  },
  {
    name: "feedback labels normalised",
    file: "shared/src/contract/feedback-labels.ts",
    find: "return labels.includes(label) ?",
    replace: 'return label !== "" ?',
    tests: [AGGREGATES, SECRETS],
  },
  {
    name: "feedback surfaces normalised",
    file: "shared/src/contract/feedback-surfaces.ts",
    find: "?? OTHER",
    replace: "?? normalise(text ?? OTHER)",
    tests: [AGGREGATES, SECRETS],
  },
];
