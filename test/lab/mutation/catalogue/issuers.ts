import type { Mutation } from "../mutation.ts";

const OWN = ["test/local/issuers-command.test.ts"];
const VERIFIER = "examples/python/verify.py";
const CREDENTIALS = ["test/examples/verify-credentials.ci.ts"];
const PAYLOADS = ["test/examples/verify-payloads.ci.ts"];

/** The operator's issuers, and the check in Python of what they vouch for. */
export const ISSUER_MUTATIONS: readonly Mutation[] = [
  {
    name: "no private key is overwritten",
    file: "deploy/keys/store.ts",
    find: 'open(file, "wx", 0o600)',
    replace: 'open(file, "w", 0o600)',
    tests: OWN,
  },
  {
    name: "private keys are their owner's alone",
    file: "deploy/keys/store.ts",
    find: "0o600",
    replace: "0o644",
    tests: OWN,
  },
  {
    name: "no issuer takes all agents by itself",
    file: "deploy/keys/issuer-commands.ts",
    find: "if (!agents.includes(ANY_AGENT)) return agents;",
    replace: "if (agents.length > 0) return agents;",
    tests: OWN,
  },
  {
    name: "an issuer that is admitted again has what it revoked",
    file: "deploy/keys/issuers.ts",
    find: "issuers: [...keys.issuers, { ...admitted, revoked }]",
    replace: "issuers: [...keys.issuers, { ...admitted, revoked: revoked.slice(0, 0) }]",
    tests: OWN,
  },
  {
    name: "no issuer is admitted apart from what it revoked",
    file: "shared/protocol/src/signing/key-ring.ts",
    find: "admitted.has(issuer) ?",
    replace: 'issuer === "" ?',
    tests: OWN,
  },
  {
    name: "revoked under the issuer that speaks for the agent",
    file: "deploy/keys/issuer-commands.ts",
    find: "agent === ANY_AGENT || holders.isOfIssuer(agent, issuer)",
    replace: "issuer !== undefined && holders !== undefined",
    tests: OWN,
  },
  {
    name: "a revocation reaches issuers whose clocks are ahead",
    file: "deploy/keys/issuer-commands.ts",
    find: "Math.floor((now + CREDENTIAL_LIMITS.maxAheadMs) / 1000)",
    replace: "Math.floor(now / 1000)",
    tests: OWN,
  },
  {
    name: "Python: an issuer speaks for its own agents",
    file: VERIFIER,
    find: "holder(credential.agent, issuers) is record",
    replace: "True",
    tests: [...CREDENTIALS, ...PAYLOADS],
  },
  {
    name: "Python: a header with nothing but alg, typ and kid",
    file: VERIFIER,
    find: 'set(header) == {"alg", "typ", "kid"}',
    replace: 'set(header) >= {"alg", "typ", "kid"}',
    tests: CREDENTIALS,
  },
  {
    name: "Python: a seal bound to its envelope",
    file: VERIFIER,
    find: "return AESGCM(key).decrypt(nonce, ct, aad)",
    replace: `from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
        return Cipher(algorithms.AES(key), modes.CTR(nonce + bytes([0, 0, 0, 2]))).decryptor().update(ct[:-16])`,
    tests: PAYLOADS,
  },
  {
    name: "Python: a receipt of this very request",
    file: VERIFIER,
    find: 'decision["payload"].get("request_sha256") == digest',
    replace: "digest",
    tests: PAYLOADS,
  },
  {
    name: "Python: a decision within the ttl",
    file: VERIFIER,
    find: 'begin <= decision["ts"] <= end',
    replace: "begin <= end",
    tests: PAYLOADS,
  },
];
