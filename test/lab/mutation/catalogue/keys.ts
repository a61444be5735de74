import type { Mutation } from "../mutation.ts";

/** Signatures and the keys file. */
export const KEY_MUTATIONS: readonly Mutation[] = [
  {
    name: "a key that was added is in force when the command returns",
    file: "deploy/keys/in-force.ts",
    find: "if (codes.every(isKnown)) return true;",
    replace: "if (codes.length > 0) return true;",
    tests: ["connector/test/cli/setup.test.ts"],
  },
  {
    name: "another key under the same id is another key",
    file: "shared/protocol/src/signing/key-ring.ts",
    find: "entry.identity === identity && ",
    replace: "",
    tests: ["shared/protocol/test/signing/key-ring.test.ts", "test/conformance/keys.test.ts"],
  },
  {
    name: "small-order Ed25519 keys refused",
    file: "shared/protocol/src/signing/small-order.ts",
    find: "return y >= FIELD_PRIME || SMALL_ORDER_Y.has(y);",
    replace: "return false;",
    tests: ["shared/protocol/test/signing/algorithms.test.ts"],
  },
  {
    name: "one spelling of an Ed25519 signature",
    file: "shared/protocol/src/signing/base64url.ts",
    find: 'bytes.toString("base64url") === text ?',
    replace: "bytes.length > 0 ?",
    tests: ["shared/protocol/test/signing/algorithms.test.ts", "test/conformance/refusals.test.ts"],
  },
  {
    name: "alphabet of signatures",
    file: "shared/protocol/src/contract/envelope.ts",
    find: "/^(?:[A-Za-z0-9_-]{43}|[A-Za-z0-9_-]{86})$/",
    replace: "/^./",
    tests: ["test/conformance/invalid-envelope.test.ts"],
  },
  {
    name: "the key decides on the algorithm",
    file: "shared/protocol/src/signing/algorithms.ts",
    find: "if (sig.length !== SIGNATURE_CHARACTERS[key.alg]) return false;",
    replace: `const secret = key.alg === "ed25519" ? new HmacSecret(key.publicKey) : key.secret;
  if (sig.length === 43) return secret.sign(text) === sig;`,
    tests: ["test/conformance/refusals.test.ts"],
  },
  {
    name: "secrets of 32 bytes at least",
    file: "shared/protocol/src/signing/algorithms.ts",
    find: "bytes.length < SECRET_MIN_BYTES",
    replace: "false",
    tests: ["shared/protocol/test/signing/algorithms.test.ts"],
  },
  {
    name: "validity of a key",
    file: "shared/protocol/src/signing/validity.ts",
    find: "return validity.from <= now && now < validity.until;",
    replace: "return true;",
    tests: ["shared/protocol/test/signing/key-ring.test.ts"],
  },
  {
    name: "a namespace ends at its dot",
    file: "shared/protocol/src/signing/key-ring.ts",
    find: "agent.slice(0, -1));",
    replace: "agent.slice(0, -2));",
    tests: ["shared/protocol/test/signing/key-ring.test.ts"],
  },
  {
    name: "no key of the file is named as a gateway's",
    file: "shared/protocol/src/contract/keys-file.ts",
    find: "!id.startsWith(GATEWAY_KEY_PREFIX)",
    replace: "true",
    tests: ["shared/runtime/test/key-store.test.ts"],
  },
  {
    name: "a broken keys file changes nothing",
    file: "shared/runtime/src/key-store.ts",
    find: "if (parsed.success) return KeyRing.from(parsed.data);",
    replace: "return KeyRing.from(parsed.data ?? { api_keys: [], signing_keys: [] });",
    tests: ["shared/runtime/test/key-store.test.ts"],
  },
  {
    name: "a keys file that was written again as it was is no change of it in the audit log",
    file: "shared/window/src/audit.ts",
    find: "if (Object.values(changes).every(({ length }) => length === 0)) return;",
    replace: "",
    tests: ["test/integration/audit-log.test.ts"],
  },
  {
    name: "git ignores the private keys of npm start, whatever becomes of their folder",
    file: ".gitignore",
    find: "/.local/*",
    replace: "/.other/*",
    tests: ["test/local/ignored.test.ts"],
  },
  {
    name: "a relay that lists the development keys takes them from none that runs on their credentials",
    file: "deploy/local/dev-keys.ts",
    find: 'knowledge === "listed" && (await isInUse(folder))',
    replace: "false",
    tests: ["test/local/dev-keys.test.ts"],
  },
];
