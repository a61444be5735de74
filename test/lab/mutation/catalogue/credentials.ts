import type { Mutation } from "../mutation.ts";

const CREDENTIALS = "shared/protocol/src/signing/credentials.ts";
const STEP = "shared/protocol/src/intake/credential-step.ts";
const READING = ["shared/protocol/test/signing/credentials.test.ts"];
const JUDGING = ["shared/protocol/test/signing/issuers.test.ts"];
const STEPS = ["shared/protocol/test/intake/credential-step.test.ts"];
const VERIFIER = "shared/runtime/src/verification/envelope-verifier.ts";
const VERIFYING = ["shared/runtime/test/verification/envelope-verifier.test.ts"];
const TOKENS = "shared/runtime/src/verification/envelope-verifier.ts";
const REMEMBERING = ["shared/runtime/test/verification/envelope-verifier.test.ts"];
const CONFORMANCE = ["test/conformance/credentials.test.ts"];

/** Who may register with which credential. Source: docs/protocol.md#credentials. */
export const CREDENTIAL_MUTATIONS: readonly Mutation[] = [
  {
    name: "a credential's header has three members",
    file: CREDENTIALS,
    find: "Object.keys(header).length !== 3",
    replace: "Object.keys(header).length < 3",
    tests: READING,
  },
  {
    name: "no member of a credential stands twice",
    file: "shared/protocol/src/wire/json.ts",
    find: "JSON.stringify(value) === text ? value : undefined",
    replace: "value",
    tests: READING,
  },
  {
    name: "no member of a credential stands twice beside others of escaped names",
    file: "shared/protocol/src/wire/json.ts",
    find: "?? read(new Tokens(text), true)",
    replace: "?? read(new Tokens(text))",
    tests: ["shared/protocol/test/wire/json.test.ts"],
  },
  {
    name: "the algorithm of a credential",
    file: CREDENTIALS,
    find: "CREDENTIAL_HEADER.algorithms.some((name) => name === alg) && typ",
    replace: "typeof alg === 'string' && typ",
    tests: READING,
  },
  {
    name: "length of a credential",
    file: CREDENTIALS,
    find: "token.length > CREDENTIAL_LIMITS.maxCharacters",
    replace: "token.length > 1e6",
    tests: READING,
  },
  {
    name: "life of a credential",
    file: CREDENTIALS,
    find: "expiresAt - issuedAt > CREDENTIAL_LIMITS.maxLifeMs",
    replace: "false",
    tests: READING,
  },
  {
    name: "a private key is no part of a credential",
    file: CREDENTIALS,
    find: ' || Object.hasOwn(value, "d")',
    replace: "",
    tests: READING,
  },
  {
    name: "a sealing key has no small order",
    file: CREDENTIALS,
    find: " && !isSmallOrderX25519(bytes)",
    replace: "",
    tests: ["shared/protocol/test/signing/credentials.test.ts"],
  },
  {
    name: "term of a credential",
    file: CREDENTIALS,
    find: "Math.min(key.validity.until, expiresAt)",
    replace: "key.validity.until",
    tests: JUDGING,
  },
  {
    name: "a credential ends with its issuer's key",
    file: CREDENTIALS,
    find: "Math.min(key.validity.until, expiresAt)",
    replace: "expiresAt",
    tests: JUDGING,
  },
  {
    name: "a credential from the future",
    file: CREDENTIALS,
    find: "Math.max(key.validity.from, Math.max(issuedAt, notBefore) - CREDENTIAL_LIMITS.maxAheadMs)",
    replace: "key.validity.from",
    tests: JUDGING,
  },
  {
    name: "an issuer speaks for its agents",
    file: CREDENTIALS,
    find: "if (!this.#holders.isOfIssuer(credential.agent, credential.issuer))",
    replace: "if (false)",
    tests: JUDGING,
  },
  {
    name: "revocation of credentials",
    file: CREDENTIALS,
    find: 'return credential.issuedAt < this.revokedBefore(credential) ? "revoked" : undefined;',
    replace: "return undefined;",
    tests: JUDGING,
  },
  {
    name: "the most specific pattern says whose an agent is",
    file: CREDENTIALS,
    find: 'agent.lastIndexOf("."); holder',
    replace: 'agent.indexOf("."); holder',
    tests: JUDGING,
  },
  {
    name: "a pattern has one holder",
    file: CREDENTIALS,
    find: "return holder === issuer;",
    replace: "return true;",
    tests: JUDGING,
  },
  {
    name: "a listed key does not speak for an issuer's agents",
    file: "shared/protocol/src/signing/key-ring.ts",
    find: "entry.mayAct(agent) && holders.isOfListedKeys(agent)",
    replace: "entry.mayAct(agent)",
    tests: JUDGING,
  },
  {
    name: "a credential is for the key that signs",
    file: STEP,
    find: "if (credential.keyId !== value.key_id)",
    replace: "if (false)",
    tests: STEPS,
  },
  {
    name: "a register is for this relay",
    file: STEP,
    find: 'if (typeof host !== "string" || !hosts.has(host)) return false;',
    replace: "",
    tests: STEPS,
  },
  {
    name: "a credential is for its audience",
    file: STEP,
    find: "audience === undefined || audience.includes(host)",
    replace: "true",
    tests: STEPS,
  },
  {
    name: "a credential's key signs for its agent alone",
    file: STEP,
    find: "mayAct: (from) => from === agent,",
    replace: "mayAct: () => true,",
    tests: STEPS,
  },
  {
    name: "signature of a credential",
    file: VERIFIER,
    find: "isIssued ? checkAfterSignature(candidate, isSigned) :",
    replace: "true ? checkAfterSignature(candidate, isSigned) :",
    tests: CONFORMANCE,
  },
  {
    name: "only tokens whose signatures held are remembered",
    file: VERIFIER,
    find: "if (isIssued) this.#issued.add(credential);",
    replace: "this.#issued.add(credential);",
    tests: VERIFYING,
  },
  {
    name: "a token is remembered as a whole",
    file: TOKENS,
    find: "if (this.#newer.get(signature) === token) return true;",
    replace: "if (this.#newer.has(signature)) return true;",
    tests: REMEMBERING,
  },
  {
    name: "a token is remembered as a whole, also when it is older",
    file: TOKENS,
    find: "if (this.#older.get(signature) !== token) return false;",
    replace: "if (!this.#older.has(signature)) return false;",
    tests: REMEMBERING,
  },
  {
    name: "a token that is verified twice counts once",
    file: TOKENS,
    find: "if (this.#newer.has(signature)) return;",
    replace: "",
    tests: REMEMBERING,
  },
  {
    name: "as many tokens are remembered as are bounded",
    file: TOKENS,
    find: "if (this.#characters <= MOST_CHARACTERS) return;",
    replace: "return;",
    tests: REMEMBERING,
  },
  {
    name: "a token that is presented again is remembered as a new one",
    file: TOKENS,
    find: "    this.add({ token, signature });\n",
    replace: "",
    tests: REMEMBERING,
  },
  {
    name: "a thread is sent no more memory than its keys take",
    file: "shared/runtime/src/verification/signature-verifier.ts",
    find: "new Uint8Array(Buffer.concat(checks.map(({ publicKey }) => publicKey)))",
    replace: "Buffer.concat(checks.map(({ publicKey }) => publicKey))",
    tests: ["shared/runtime/test/verification/signature-verifier.test.ts"],
  },
  {
    name: "an agent whose credential ended is released",
    file: "services/ws-connector/src/agents/revocation.ts",
    find: "    this.#releaseEnded(now);\n",
    replace: "",
    tests: CONFORMANCE,
  },
  {
    name: "the key of another agent is no reason not to wait",
    file: "services/ws-connector/src/intake/verification-queue.ts",
    find: "return isOthers ? {",
    replace: "return isOthers && false ? {",
    tests: CONFORMANCE,
  },
  {
    name: "refusals of a released agent do not count",
    file: "services/ws-connector/src/intake/responder.ts",
    find: " || this.#authority.isForgiven(connection, code, from)",
    replace: "",
    tests: CONFORMANCE,
  },
  {
    name: "an envelope behind its register waits for the key",
    file: "services/ws-connector/src/intake/intake.ts",
    find: "if (isBehind) this.#queue.pushWaiting({ text, ...awaited }, arrival);\n    else ",
    replace: "",
    tests: CONFORMANCE,
  },
  {
    name: "a public relay has no name of its machine",
    file: "shared/runtime/src/addresses.ts",
    find: "!LOOPBACK.includes(hostname)",
    replace: "hostname !== null",
    tests: ["shared/runtime/test/addresses.test.ts"],
  },
];
