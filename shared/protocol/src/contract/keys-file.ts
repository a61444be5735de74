import { z } from "zod";
import { ANY_AGENT, CREDENTIAL_KEY_PREFIX, ISSUER_PATTERN } from "../wire/credential.ts";
import { KEY_ID_PATTERN } from "../wire/envelope.ts";
import { AGENT_ID_PATTERN, AGENT_PATTERN_PATTERN } from "../wire/ids.ts";

/** The keys file, `RELAY_KEYS_FILE`. Source: docs/protocol.md#keys. */

/**
 * Prefix of the key ids of gateways. No id in the keys file may have it, so that no other program signs as a gateway.
 */
export const GATEWAY_KEY_PREFIX = "gateway-";
/** The prefix, then the start of a digest of the public key. */
export const GATEWAY_KEY_ID_PATTERN = /^gateway-[A-Za-z0-9_-]{22}$/;

/** What the patterns of key ids and of issuers ask for. */
const LABEL = "must have 1 to 128 letters, digits, dots, _ and -, the first a letter or a digit";

const AgentPattern = z
  .string()
  .regex(AGENT_PATTERN_PATTERN, "must be an agent id, or a prefix of one that ends with .*");

const validity = {
  not_before: z.iso.datetime({ offset: true }).optional(),
  expires_at: z.iso.datetime({ offset: true }).optional(),
};
const agents = z.array(AgentPattern).min(1);
const anyKeyId = z.string().regex(KEY_ID_PATTERN, LABEL);
const keyId = anyKeyId
  .refine((id) => !id.startsWith(GATEWAY_KEY_PREFIX), { error: `must not begin with ${GATEWAY_KEY_PREFIX}` })
  .refine((id) => !id.startsWith(CREDENTIAL_KEY_PREFIX), { error: `must not begin with ${CREDENTIAL_KEY_PREFIX}` });
const gatewayKeyId = anyKeyId.startsWith(GATEWAY_KEY_PREFIX, { error: `must begin with ${GATEWAY_KEY_PREFIX}` });
const publicKey = z.string().regex(/^[A-Za-z0-9_-]{43}$/, "must be 32 bytes in base64url, which is 43 characters");
const base64url = (bytes: number) =>
  z
    .string()
    .regex(/^[A-Za-z0-9_-]+$/, "must be base64url")
    .min(Math.ceil((bytes * 4) / 3), `must be ${bytes} bytes or more, in base64url`);

export const ApiKeyRecord = z.strictObject({
  id: anyKeyId,
  /** Hex SHA-256 of the whole key text. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/, "must be 64 hexadecimal digits, in lower case"),
  agents,
  ...validity,
});

export const SigningKeyRecord = z.discriminatedUnion("alg", [
  z.strictObject({
    key_id: keyId,
    alg: z.literal("ed25519"),
    public_key: publicKey,
    agents,
    ...validity,
  }),
  z.strictObject({ key_id: keyId, alg: z.literal("hmac-sha256"), secret: base64url(32), agents, ...validity }),
]);

/** Credentials of the agent, or of any agent, are invalid if they were issued before that time. */
const revoked = z
  .array(
    z.strictObject({
      agent: z.union([z.literal(ANY_AGENT), z.string().regex(AGENT_ID_PATTERN, "must be an agent id")]),
      issued_before: z.iso.datetime({ offset: true }),
    }),
  )
  .default([]);

/** An issuer of credentials, with its agents. Source: docs/protocol.md#credentials. */
export const IssuerRecord = z
  .strictObject({
    issuer: z.string().regex(ISSUER_PATTERN, LABEL),
    /** Ed25519, 32 bytes in base64url. */
    keys: z.array(z.strictObject({ public_key: publicKey, ...validity })).min(1),
    agents: z.array(z.union([z.literal(ANY_AGENT), AgentPattern])).min(1),
    revoked,
  })
  .meta({ id: "IssuerRecord" });

export const KeysFile = z.strictObject({
  api_keys: z.array(ApiKeyRecord).default([]),
  signing_keys: z.array(SigningKeyRecord).default([]),
  issuers: z.array(IssuerRecord).default([]),
  /** Revocations of removed issuers, for the time when they are admitted again. */
  removed_issuers: z.array(IssuerRecord.pick({ issuer: true, revoked: true })).optional(),
  /** Gateways no longer sign with these keys, and no manifest lists them. */
  revoked_gateway_keys: z.array(gatewayKeyId).optional(),
});

export type ApiKeyRecord = z.infer<typeof ApiKeyRecord>;
export type SigningKeyRecord = z.infer<typeof SigningKeyRecord>;
export type IssuerRecord = z.infer<typeof IssuerRecord>;
export type KeysFile = z.infer<typeof KeysFile>;
export type SigningAlgorithm = SigningKeyRecord["alg"];
