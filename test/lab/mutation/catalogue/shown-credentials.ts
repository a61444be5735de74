import type { Mutation } from "../mutation.ts";

const STEP = "shared/protocol/src/intake/credential-step.ts";
const SELF_TEST = "services/gateway/src/api/self-test.ts";
const GATEWAY = ["services/gateway/test/self-test.test.ts"];

/** Credentials that are held by connections, kept for those who look them up, and shown to the self-test. */
export const SHOWN_CREDENTIAL_MUTATIONS: readonly Mutation[] = [
  {
    name: "a credential that is looked up is judged again",
    file: "services/gateway/src/api/credentials.ts",
    find: " || issuers.problemOf(credential, Date.now()) !== undefined",
    replace: "",
    tests: ["services/gateway/test/credentials.test.ts"],
  },
  {
    name: "a credential that is shown to the self-test is its issuer's",
    file: STEP,
    find: "return isIssued(shown) ?",
    replace: "return true ?",
    tests: GATEWAY,
  },
  {
    name: "a credential that is shown to the self-test is for this relay",
    file: STEP,
    find: "if (audience?.some((host) => hosts.has(host)) === false)",
    replace: "if (false)",
    tests: GATEWAY,
  },
  {
    name: "a credential that is shown to the self-test is looked at after the clock",
    file: SELF_TEST,
    find: "return {\n    keyOf(keyId) {\n      const key = keyOfShown(shown, keys, now);",
    replace:
      "const key = keyOfShown(shown, keys, now);\n  if (isRefusal(key)) throw refused(key, {});\n  return {\n    keyOf(keyId) {",
    tests: GATEWAY,
  },
  {
    name: "a credential that is shown to the self-test is of its key alone",
    file: SELF_TEST,
    find: "isRefusal(key) || key.keyId === keyId ? key : undefined",
    replace: "key",
    tests: GATEWAY,
  },
];
