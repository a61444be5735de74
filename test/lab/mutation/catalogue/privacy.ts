import type { Mutation } from "../mutation.ts";

const LOGGING = "shared/runtime/test/logging.test.ts";
const SECRETS = "test/integration/secrets.test.ts";

/** What is neither kept nor logged. */
export const PRIVACY_MUTATIONS: readonly Mutation[] = [
  {
    name: "log redaction",
    file: "shared/runtime/src/logging.ts",
    find: "isPrivate(name) ? REDACTED",
    replace: "false ? REDACTED",
    tests: [LOGGING],
  },
  {
    name: "errors are logged without what hangs on them",
    file: "shared/runtime/src/logging.ts",
    find: "    ...(stack === undefined ?",
    replace: "    ...error,\n    ...(stack === undefined ?",
    tests: [LOGGING],
  },
  {
    name: "no parsed text in the log",
    file: "shared/runtime/src/logging.ts",
    find: 'return error.name === "SyntaxError";',
    replace: "return false;",
    tests: [LOGGING],
  },
  {
    name: "no name of a field that could be a key in an error",
    file: "shared/protocol/src/intake/refusal.ts",
    find: "return !KEY_PREFIX.test(name) && (SHORT_NAME.test(name) || LONG_NAME.test(name));",
    replace: "return name !== undefined;",
    tests: [
      "shared/protocol/test/intake/field-errors.test.ts",
      "shared/runtime/test/http/input.test.ts",
      "test/integration/secrets.test.ts",
    ],
  },
  {
    name: "no words of the validator in an error",
    file: "shared/protocol/src/intake/refusal.ts",
    find: "{ error: plainWords }",
    replace: "{}",
    tests: ["shared/protocol/test/intake/field-errors.test.ts"],
  },
  {
    name: "no name of a field in a log",
    file: "shared/protocol/src/intake/refusal.ts",
    find: "errorsOf(error, () => [UNNAMED])",
    replace: "namedFieldErrors(error)",
    tests: ["shared/protocol/test/intake/field-errors.test.ts"],
  },
  {
    name: "no canonical text of an envelope without a valid shape",
    file: "services/gateway/src/api/self-test.ts",
    find: "isRefusal(shaped) ? {} : { canonical: canonicalText(shaped.envelope) }",
    replace: "isRefusal(shaped) ? { canonical: text } : { canonical: canonicalText(shaped.envelope) }",
    tests: ["services/gateway/test/self-test.test.ts"],
  },
  {
    name: "no canonical text unless it was asked for",
    file: "services/gateway/src/api/self-test.ts",
    find: 'explain === "1"',
    replace: "true",
    tests: ["services/gateway/test/self-test.test.ts"],
  },
  {
    name: "addresses of limits are hashed",
    file: "shared/window/src/limits/rate-limit.ts",
    find: 'anonymousId(salt, "address", ',
    replace: "((text: string) => text)(",
    tests: ["services/gateway/test/rate-limits.test.ts", SECRETS],
  },
  {
    name: "identities of session proofs can be hidden",
    file: "services/ops-reporting/src/reports/session-proofs.ts",
    find: 'settings.proofIdentities === "hidden"',
    replace: "false",
    tests: ["services/ops-reporting/test/proof-identities.test.ts"],
  },
  {
    name: "an Idempotency-Key is hashed",
    file: "services/gateway/src/api/publisher.ts",
    find: "digest: digest(`idempotency-key",
    replace: "digest: (idempotencyKey as string) + digest(`idempotency-key",
    tests: ["services/gateway/test/publisher.test.ts", SECRETS],
  },
  {
    name: "no slow log of Redis",
    file: "deploy/redis/redis.conf",
    find: "slowlog-log-slower-than -1",
    replace: "slowlog-log-slower-than 0",
    tests: ["test/deploy/redis-start.test.ts", SECRETS],
  },
];
