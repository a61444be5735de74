import { isUtf8 } from "node:buffer";
import { AGENT_ID_PATTERN } from "../contract/agent-id.ts";
import { CREDENTIAL_HEADER, CREDENTIAL_KEY_PREFIX, ISSUER_PATTERN } from "../contract/credential.ts";
import { CREDENTIAL_LIMITS } from "../contract/limits.ts";
import { parseUniqueJson } from "../intake/parse-json.ts";
import { decodeBase64url } from "../signing/base64url.ts";
import { readPublicJwk, thumbprintOf } from "./public-jwk.ts";

/** A credential as it was read: its form is valid, nothing else was checked. Times are Unix ms. */
export interface Credential {
  readonly token: string;
  /** What is signed: header and claims as they stand in the token. Source: RFC 7515, section 5.1. */
  readonly signed: string;
  /** base64url of 64 bytes. */
  readonly signature: string;
  readonly issuer: string;
  /** Thumbprint of the issuer's key. */
  readonly issuerKey: string;
  readonly agent: string;
  /** `jkt-` and the thumbprint of the agent's key. */
  readonly keyId: string;
  /** The agent's Ed25519 key, in base64url. */
  readonly publicKey: string;
  /** The agent's X25519 key, in base64url. */
  readonly sealingKey: string | undefined;
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly notBefore: number;
  /** The relays that it is for; undefined = any. */
  readonly audience: readonly string[] | undefined;
}

type JsonObject = { readonly [name: string]: unknown };

/** The one spelling of 64 bytes: of the last character two bits count. Source: RFC 4648, section 3.5. */
const SIGNATURE = /^[A-Za-z0-9_-]{85}[AQgw]$/;

/** The header that was read last, and its `kid`: tokens of one issuer's key have the same. */
let lastHeader = "";
let lastIssuerKey: string | undefined;

/** The credential of a token; undefined when it is malformed. Never throws; its time is bounded by the size of a token. */
export function readCredential(token: unknown): Credential | undefined {
  if (typeof token !== "string" || token.length > CREDENTIAL_LIMITS.maxCharacters) return undefined;
  const headEnd = token.indexOf(".");
  const bodyEnd = token.indexOf(".", headEnd + 1);
  const signature = token.slice(bodyEnd + 1);
  if (bodyEnd === -1 || !SIGNATURE.test(signature)) return undefined;
  const issuerKey = issuerKeyIn(token.slice(0, headEnd));
  const claims = objectIn(token.slice(headEnd + 1, bodyEnd));
  if (issuerKey === undefined || claims === undefined) return undefined;
  return withClaims({ token, signed: token.slice(0, bodyEnd), signature, issuerKey }, claims);
}

/** One spelling, UTF-8, one JSON object, no member twice: two readers of a token never see two different things. */
function objectIn(part: string): JsonObject | undefined {
  const bytes = decodeBase64url(part);
  if (bytes === undefined || !isUtf8(bytes)) return undefined;
  try {
    const value = parseUniqueJson(bytes.toString());
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `kid` of a token's header. */
function issuerKeyIn(head: string): string | undefined {
  if (head === lastHeader) return lastIssuerKey;
  lastIssuerKey = issuerKeyOf(objectIn(head));
  lastHeader = head;
  return lastIssuerKey;
}

/** `kid` of a header that holds `alg`, `typ` and `kid`, and nothing else: no `jku`, `jwk`, `x5u`, `x5c`, `crit`. */
function issuerKeyOf(header: JsonObject | undefined): string | undefined {
  if (header === undefined || Object.keys(header).length !== 3) return undefined;
  const { alg, typ, kid } = header;
  const isKnown = CREDENTIAL_HEADER.algorithms.some((name) => name === alg) && typ === CREDENTIAL_HEADER.typ;
  return isKnown && typeof kid === "string" ? kid : undefined;
}

/** What a token says of itself, its claims aside. */
type Parts = Pick<Credential, "token" | "signed" | "signature" | "issuerKey">;

/** Claims that are not named here do not count. */
function withClaims(parts: Parts, { iss, sub, cnf, enc, iat, exp, nbf, aud }: JsonObject): Credential | undefined {
  if (typeof iss !== "string" || !ISSUER_PATTERN.test(iss)) return undefined;
  if (typeof sub !== "string" || !AGENT_ID_PATTERN.test(sub)) return undefined;
  const key = readPublicJwk(isObject(cnf) ? cnf.jwk : undefined, "Ed25519");
  const sealingKey = enc === undefined ? undefined : readPublicJwk(isObject(enc) ? enc.jwk : undefined, "X25519");
  if (key === undefined || (enc !== undefined && sealingKey === undefined)) return undefined;
  const issuedAt = timeOf(iat);
  const expiresAt = timeOf(exp);
  const notBefore = nbf === undefined ? issuedAt : timeOf(nbf);
  if (issuedAt === undefined || expiresAt === undefined || notBefore === undefined) return undefined;
  if (expiresAt <= issuedAt || expiresAt - issuedAt > CREDENTIAL_LIMITS.maxLifeMs) return undefined;
  const audience = aud === undefined ? undefined : audienceOf(aud);
  if (aud !== undefined && audience === undefined) return undefined;
  const keyId = `${CREDENTIAL_KEY_PREFIX}${thumbprintOf(key, "Ed25519")}`;
  return {
    token: parts.token,
    signed: parts.signed,
    signature: parts.signature,
    issuerKey: parts.issuerKey,
    issuer: iss,
    agent: sub,
    keyId,
    publicKey: key,
    sealingKey,
    issuedAt,
    expiresAt,
    notBefore,
    audience,
  };
}

/** Unix ms of whole seconds. */
function timeOf(value: unknown): number | undefined {
  const ms = Number.isInteger(value) ? (value as number) * 1000 : Number.NaN;
  return Number.isSafeInteger(ms) && ms >= 0 ? ms : undefined;
}

/** RFC 7519, section 4.1.3: one text, or several. */
function audienceOf(value: unknown): readonly string[] | undefined {
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  return names.every((name) => typeof name === "string") ? names : undefined;
}
