import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import type { IssuerRecord } from "../contract/keys-file.ts";
import {
  ANY_AGENT,
  CREDENTIAL_HEADER,
  CREDENTIAL_KEY_PREFIX,
  type CredentialProblem,
  ISSUER_PATTERN,
} from "../wire/credential.ts";
import { AGENT_ID_PATTERN } from "../wire/ids.ts";
import { parseUniqueJson } from "../wire/json.ts";
import { CREDENTIAL_LIMITS } from "../wire/limits.ts";
import { decodeBase64url, ED25519_BYTES, importPublicKey, isSmallOrderX25519, type VerifyKey } from "./algorithms.ts";

/**
 * Curves of the keys in a credential: Ed25519 for signatures, X25519 for sealed payloads. Source: RFC 8037, section 2.
 */
export type Curve = "Ed25519" | "X25519";

/**
 * The base64url key of a public JWK of the curve. Other members do not count.
 * @returns undefined for a private key, an `x` that is not the one spelling of 32 bytes, a small-order point, or any
 * other value.
 */
export function readPublicJwk(value: unknown, curve: Curve): string | undefined {
  if (typeof value !== "object" || value === null || Object.hasOwn(value, "d")) return undefined;
  const { kty, crv, x } = value as { readonly [name: string]: unknown };
  if (kty !== "OKP" || crv !== curve || typeof x !== "string") return undefined;
  return (curve === "X25519" ? isUsableX25519(x) : isPublicKey(x)) ? x : undefined;
}

/** The key's thumbprint in base64url. Source: RFC 7638, section 3. */
export function thumbprintOf(x: string, curve: Curve): string {
  return hash("sha256", `{"crv":"${curve}","kty":"OKP","x":"${x}"}`, "base64url");
}

/** True for a usable Ed25519 key in base64url. */
export function isPublicKey(x: string): boolean {
  try {
    importPublicKey(x);
    return true;
  } catch {
    return false;
  }
}

function isUsableX25519(x: string): boolean {
  const bytes = decodeBase64url(x);
  return bytes?.length === ED25519_BYTES.key && !isSmallOrderX25519(bytes);
}

/** A credential after parsing: only its form was checked. Times are Unix ms. */
export interface Credential {
  readonly token: string;
  /** The signed part of the token: header and claims. Source: RFC 7515, section 5.1. */
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
  /** The relays that accept it. Undefined = any. */
  readonly audience: readonly string[] | undefined;
}

type JsonObject = { readonly [name: string]: unknown };

/** 64 bytes in their one spelling: only two bits of the last character count. Source: RFC 4648, section 3.5. */
const SIGNATURE = /^[A-Za-z0-9_-]{85}[AQgw]$/;

/** The last header and its `kid`: all tokens of one issuer's key have the same header. */
let lastHeader = "";
let lastIssuerKey: string | undefined;

/** Parses a token. @returns undefined if it is malformed. Never throws, and the token's size bounds its time. */
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

/**
 * Requires one spelling, UTF-8, one JSON object, and no member twice. So two readers of a token never see different
 * values.
 */
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

function issuerKeyIn(head: string): string | undefined {
  if (head === lastHeader) return lastIssuerKey;
  lastIssuerKey = issuerKeyOf(objectIn(head));
  lastHeader = head;
  return lastIssuerKey;
}

/** `kid` of a header with exactly `alg`, `typ` and `kid`. So `jku`, `jwk`, `x5u`, `x5c` and `crit` are refused. */
function issuerKeyOf(header: JsonObject | undefined): string | undefined {
  if (header === undefined || Object.keys(header).length !== 3) return undefined;
  const { alg, typ, kid } = header;
  const isKnown = CREDENTIAL_HEADER.algorithms.some((name) => name === alg) && typ === CREDENTIAL_HEADER.typ;
  return isKnown && typeof kid === "string" ? kid : undefined;
}

/** Parts of a token besides its claims. */
type Parts = Pick<Credential, "token" | "signed" | "signature" | "issuerKey">;

/** Ignores other claims. */
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

/** Unix ms of whole seconds. @returns undefined for any other value. */
function timeOf(value: unknown): number | undefined {
  const ms = Number.isInteger(value) ? (value as number) * 1000 : Number.NaN;
  return Number.isSafeInteger(ms) && ms >= 0 ? ms : undefined;
}

/** One text or a list of texts. Source: RFC 7519, section 4.1.3. */
function audienceOf(value: unknown): readonly string[] | undefined {
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  return names.every((name) => typeof name === "string") ? names : undefined;
}

/** Holder of the agents of all listed signing keys. The space keeps it apart from issuers' names. */
const LISTED = "listed keys";

/**
 * The holder of an agent: the listed keys or an issuer. The most specific matching pattern decides.
 * Source: docs/protocol.md#credentials.
 */
export class AgentHolders {
  readonly #holders = new Map<string, string>();
  /** Faults of the keys file: patterns of an issuer that another holder also has. They name positions, never values. */
  readonly problems: readonly string[];

  constructor(listed: readonly { readonly agents: readonly string[] }[], issuers: readonly IssuerRecord[]) {
    for (const pattern of listed.flatMap(({ agents }) => agents)) this.#holders.set(pattern, LISTED);
    this.problems = issuers.flatMap(({ issuer, agents }, index) =>
      agents.flatMap((pattern, place) =>
        this.#claim(pattern, issuer) ? [] : [`issuers.${index}.agents.${place}: is another holder's as well`],
      ),
    );
  }

  isOfListedKeys(agent: string): boolean {
    return this.#holderOf(agent) === LISTED;
  }

  isOfIssuer(agent: string, issuer: string): boolean {
    return this.#holderOf(agent) === issuer;
  }

  #claim(pattern: string, issuer: string): boolean {
    const holder = this.#holders.get(pattern) ?? issuer;
    this.#holders.set(pattern, holder);
    return holder === issuer;
  }

  #holderOf(agent: string): string | undefined {
    let holder = this.#holders.get(agent);
    for (let dot = agent.lastIndexOf("."); holder === undefined && dot > 0; dot = agent.lastIndexOf(".", dot - 1)) {
      holder = this.#holders.get(`${agent.slice(0, dot)}.*`);
    }
    return holder ?? this.#holders.get(ANY_AGENT);
  }
}

/** Valid from `from` (inclusive) until `until` (exclusive), Unix ms. */
export interface Validity {
  readonly from: number;
  readonly until: number;
}

/** Validity of a record in the keys file. An absent bound is infinite. */
export function validityOf(record: {
  readonly not_before?: string | undefined;
  readonly expires_at?: string | undefined;
}): Validity {
  return {
    from: record.not_before === undefined ? Number.NEGATIVE_INFINITY : Date.parse(record.not_before),
    until: record.expires_at === undefined ? Number.POSITIVE_INFINITY : Date.parse(record.expires_at),
  };
}

export function isValidAt(validity: Validity, now: number): boolean {
  return validity.from <= now && now < validity.until;
}

interface IssuerKey {
  readonly key: VerifyKey;
  readonly validity: Validity;
}

interface Issuer {
  /** By thumbprint. */
  readonly keys: ReadonlyMap<string, IssuerKey>;
  /** Unix ms by agent, or by ANY_AGENT. Credentials that were issued earlier are revoked. */
  readonly revokedBefore: ReadonlyMap<string, number>;
}

const NEVER: Validity = { from: Number.POSITIVE_INFINITY, until: Number.NEGATIVE_INFINITY };

/** Fields that decide whether a credential is valid. */
type Terms = Pick<Credential, "issuer" | "issuerKey" | "agent" | "issuedAt" | "expiresAt" | "notBefore">;

/** Issuers of one version of the keys file. Immutable. Source: docs/protocol.md#credentials. */
export class Issuers {
  readonly #issuers: ReadonlyMap<string, Issuer>;
  readonly #holders: AgentHolders;
  /** The issuers' records in the keys file. They are public. */
  readonly records: readonly IssuerRecord[];

  /** @throws Error, without key text, if a key is unusable. */
  constructor(records: readonly IssuerRecord[], holders: AgentHolders) {
    this.#issuers = new Map(records.map((record) => [record.issuer, issuerOf(record)]));
    this.#holders = holders;
    this.records = records;
  }

  /** Unix ms at which an issuer's key becomes valid or expires. */
  get transitions(): number[] {
    return [...this.#issuers.values()].flatMap(({ keys }) =>
      [...keys.values()].flatMap(({ validity }) => [validity.from, validity.until]),
    );
  }

  /** The key that verifies the credential's signature. Undefined if the relay does not know the issuer or the key. */
  keyOf({ issuer, issuerKey }: Credential): VerifyKey | undefined {
    return this.#issuers.get(issuer)?.keys.get(issuerKey)?.key;
  }

  /** Why the credential is not valid at `now`, apart from its signature. Undefined if it is valid. */
  problemOf(credential: Terms, now: number): CredentialProblem | undefined {
    const term = this.#termOf(credential);
    if (term === undefined) return "unknown_issuer";
    if (now < term.from) return "not_yet_valid";
    if (!isValidAt(term, now)) return "expired";
    return this.#objectionTo(credential);
  }

  /** When the credential is valid, apart from its signature. The file is immutable, so callers may keep the result. */
  holdsDuring(credential: Terms): Validity {
    const term = this.#termOf(credential);
    return term === undefined || this.#objectionTo(credential) !== undefined ? NEVER : term;
  }

  /** True if only this issuer may speak for the agent. */
  speaksFor(issuer: string, agent: string): boolean {
    return this.#holders.isOfIssuer(agent, issuer);
  }

  /** Unix ms: the end of the credential, or of its issuer's key if that is earlier. */
  endOf(credential: Terms): number {
    return this.#termOf(credential)?.until ?? Number.NEGATIVE_INFINITY;
  }

  /**
   * Term of the credential within the term of its issuer's key. Undefined if the relay does not know the issuer or the
   * key.
   */
  #termOf({ issuer, issuerKey, issuedAt, notBefore, expiresAt }: Terms): Validity | undefined {
    const key = this.#issuers.get(issuer)?.keys.get(issuerKey);
    if (key === undefined) return undefined;
    return {
      from: Math.max(key.validity.from, Math.max(issuedAt, notBefore) - CREDENTIAL_LIMITS.maxAheadMs),
      until: Math.min(key.validity.until, expiresAt),
    };
  }

  /** Unix ms: the issuer revoked the agent's credentials that it issued earlier. 0 if it revoked none. */
  revokedBefore({ issuer, agent }: Pick<Terms, "issuer" | "agent">): number {
    const revokedBefore = this.#issuers.get(issuer)?.revokedBefore;
    return Math.max(revokedBefore?.get(agent) ?? 0, revokedBefore?.get(ANY_AGENT) ?? 0);
  }

  /** Why the credential is valid at no time. */
  #objectionTo(credential: Terms): CredentialProblem | undefined {
    if (!this.#holders.isOfIssuer(credential.agent, credential.issuer)) return "agent_not_allowed";
    return credential.issuedAt < this.revokedBefore(credential) ? "revoked" : undefined;
  }
}

function issuerOf({ keys, revoked }: IssuerRecord): Issuer {
  const revokedBefore = new Map<string, number>();
  for (const { agent, issued_before } of revoked) {
    revokedBefore.set(agent, Math.max(Date.parse(issued_before), revokedBefore.get(agent) ?? 0));
  }
  return {
    keys: new Map(
      keys.map((key) => [
        thumbprintOf(key.public_key, "Ed25519"),
        { key: { alg: "ed25519", publicKey: importPublicKey(key.public_key) }, validity: validityOf(key) },
      ]),
    ),
    revokedBefore,
  };
}
