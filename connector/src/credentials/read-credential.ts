import { AGENT_ID } from "../agent-id.ts";
import { decodeBase64url } from "../base64url.ts";
import { membersOf, textOf } from "../frames.ts";
import { importVerifyKey, type VerifyKey } from "../keys.ts";
import { CREDENTIAL_LIMITS } from "../limits.ts";
import { parseUniqueJson } from "../parse-json.ts";
import type { JsonObject } from "../types.ts";
import { type CredentialFacts, credentialKeyId, HEADER, ISSUER } from "./contract.ts";
import { readPublicJwk, thumbprintOf } from "./public-jwk.ts";

/** A credential as it was read: its form is valid, nothing else was checked. Times are epoch milliseconds. */
export interface Credential extends CredentialFacts {
  readonly token: string;
  /** Thumbprint of the issuer's key. */
  readonly issuerKey: string;
  /** `jkt-` and the thumbprint of the agent's key. */
  readonly keyId: string;
  /** The agent's key. */
  readonly key: VerifyKey;
}

const SIGNATURE_CHARACTERS = 86;
const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The credential of a token; undefined when it is malformed. Its time is bounded by the size of a token. */
export async function readCredential(token: unknown): Promise<Credential | undefined> {
  if (typeof token !== "string" || token.length > CREDENTIAL_LIMITS.maxCharacters) return undefined;
  const [head = "", body = "", signature = "", ...more] = token.split(".");
  if (more.length > 0 || signature.length !== SIGNATURE_CHARACTERS || decodeBase64url(signature) === undefined) {
    return undefined;
  }
  const issuerKey = issuerKeyOf(objectIn(head));
  const claims = claimsOf(objectIn(body));
  if (issuerKey === undefined || claims === undefined) return undefined;
  const { publicKey } = claims;
  const keyId = credentialKeyId(await thumbprintOf(publicKey, "Ed25519"));
  return { token, issuerKey, keyId, key: await importVerifyKey({ keyId, alg: "ed25519", publicKey }), ...claims };
}

/** One spelling, UTF-8, one JSON object, no member twice: two readers of a token never see two different things. */
function objectIn(part: string): JsonObject {
  const bytes = decodeBase64url(part);
  if (bytes === undefined) return {};
  try {
    return membersOf(parseUniqueJson(UTF_8.decode(bytes)));
  } catch {
    return {};
  }
}

/** `kid` of a header that holds `alg`, `typ` and `kid`, and nothing else: no `jku`, `jwk`, `x5u`, `x5c`, `crit`. */
function issuerKeyOf(header: JsonObject): string | undefined {
  const { alg, typ, kid } = header;
  const isKnown = HEADER.algorithms.some((name) => name === alg) && typ === HEADER.typ;
  return isKnown && Object.keys(header).length === 3 ? textOf(kid) : undefined;
}

/** Members that are not named here do not count. */
function claimsOf({ iss, sub, cnf, enc, iat, exp, nbf = iat, aud }: JsonObject): CredentialFacts | undefined {
  if (typeof iss !== "string" || !ISSUER.test(iss)) return undefined;
  if (typeof sub !== "string" || !AGENT_ID.test(sub)) return undefined;
  const publicKey = readPublicJwk(membersOf(cnf).jwk, "Ed25519");
  const sealingKey = enc === undefined ? undefined : readPublicJwk(membersOf(enc).jwk, "X25519");
  if (publicKey === undefined || (enc !== undefined && sealingKey === undefined)) return undefined;
  const [issuedAt, expiresAt, notBefore] = [timeOf(iat), timeOf(exp), timeOf(nbf)];
  if (issuedAt === undefined || expiresAt === undefined || notBefore === undefined) return undefined;
  if (expiresAt <= issuedAt || expiresAt - issuedAt > CREDENTIAL_LIMITS.maxLifeMs) return undefined;
  const audience = aud === undefined ? undefined : audienceOf(aud);
  if (aud !== undefined && audience === undefined) return undefined;
  return { issuer: iss, agent: sub, publicKey, sealingKey, issuedAt, expiresAt, notBefore, audience };
}

/** Epoch milliseconds of whole seconds. */
function timeOf(value: unknown): number | undefined {
  const ms = Number.isInteger(value) ? (value as number) * 1000 : Number.NaN;
  return Number.isSafeInteger(ms) && ms >= 0 ? ms : undefined;
}

/** One text, or several. Source: RFC 7519, section 4.1.3. */
function audienceOf(value: unknown): readonly string[] | undefined {
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  return names.every((name) => typeof name === "string") ? names : undefined;
}
