import type { Mutation } from "../mutation.ts";

const LOGGING = "shared/test/logging.test.ts";
const SECRETS = "test/integration/secrets.test.ts";
const AGGREGATES = "shared/test/window/aggregates.test.ts";

/** What is neither kept nor logged. */
export const PRIVACY_MUTATIONS: readonly Mutation[] = [
  {
    name: "log redaction",
    file: "shared/src/logging.ts",
    find: "isPrivate(name) ? REDACTED",
    replace: "false ? REDACTED",
    tests: [LOGGING],
  },
  {
    name: "errors are logged without what hangs on them",
    file: "shared/src/logging.ts",
    find: "    ...(stack === undefined ?",
    replace: "    ...error,\n    ...(stack === undefined ?",
    tests: [LOGGING],
  },
  {
    name: "no parsed text in the log",
    file: "shared/src/logging.ts",
    find: 'return error.name === "SyntaxError";',
    replace: "return false;",
    tests: [LOGGING],
  },
  {
    name: "no value of a request in an error",
    file: "shared/src/intake/field-errors.ts",
    find: '[...path, "unknown field"]',
    replace: "[...path, ...issue.keys]",
    tests: ["shared/test/http/body.test.ts", "test/integration/privacy.test.ts"],
  },
  {
    name: "addresses of limits are hashed",
    file: "services/gateway/src/rate-limits.ts",
    find: 'anonymousId(this.#window.current.salt, "address", ',
    replace: "((text: string) => text)(",
    tests: ["services/gateway/test/rate-limits.test.ts", SECRETS],
  },
  {
    name: "ids of visitors are salted",
    file: "shared/src/window/visitors.ts",
    find: 'createHmac("sha256", salt)',
    replace: 'createHmac("sha256", "")',
    tests: [AGGREGATES],
  },
  {
    name: "no text of a feedback is kept",
    file: "shared/src/window/feedback.ts",
    find: ': ["message_provided"]',
    replace: ": [feedback.message]",
    tests: [AGGREGATES, SECRETS],
  },
  {
    name: "no word of a sender in a metric",
    file: "shared/src/metrics/observe.ts",
    find: "envelopes.add(",
    replace: 'envelopes.add(envelope.type + " accepted"); void (',
    tests: ["test/integration/metrics.test.ts", SECRETS],
  },
  {
    name: "an Idempotency-Key is hashed",
    file: "services/gateway/src/publisher.ts",
    find: "digest: digest(`idempotency-key",
    replace: "digest: (idempotencyKey as string) + digest(`idempotency-key",
    tests: ["services/gateway/test/idempotency.test.ts", SECRETS],
  },
  {
    name: "visitors are hashed",
    file: "shared/src/http/traffic.ts",
    find: 'anonymousId(salt, "visitor", ip, userAgent)',
    replace: 'ip + "-" + userAgent',
    tests: [SECRETS],
  },
  {
    name: "faults of the keys file quote nothing of it",
    file: "shared/src/signing/key-store.ts",
    find: 'throw new KeysFileError(["not JSON"]);',
    replace: 'throw new KeysFileError(["not JSON: " + text]);',
    tests: [SECRETS],
  },
  {
    name: "no slow log of Redis",
    file: "deploy/redis/redis.conf",
    find: "slowlog-log-slower-than -1",
    replace: "slowlog-log-slower-than 0",
    tests: ["test/deploy/redis-start.test.ts", SECRETS],
  },
];
