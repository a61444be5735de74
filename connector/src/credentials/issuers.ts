import { RelayError } from "../errors.ts";
import { importVerifyKey, type VerifyKey } from "../keys.ts";
import { CREDENTIAL_LIMITS } from "../limits.ts";
import { AgentHolders } from "./agent-holders.ts";
import { ANY_AGENT, type CredentialReason } from "./contract.ts";
import { type IssuerRecord, isIssuerRecord } from "./issuer-record.ts";
import { thumbprintOf } from "./public-jwk.ts";
import type { Credential } from "./read-credential.ts";
import { isTokenSignedBy } from "./token-signature.ts";

/** Valid from `from` (inclusive) until `until` (exclusive), epoch milliseconds. */
interface IssuerKey {
  readonly key: VerifyKey;
  readonly from: number;
  readonly until: number;
}

interface Issuer {
  /** By thumbprint. */
  readonly keys: ReadonlyMap<string, IssuerKey>;
  /** By agent, or by ANY_AGENT: before that time nothing that was issued holds. */
  readonly revokedBefore: ReadonlyMap<string, number>;
}

/** Issuers that somebody named, and what they say of credentials; immutable. Source: docs/protocol.md#credentials. */
export class Issuers {
  static readonly NONE: Issuers = new Issuers(new Map(), new AgentHolders([]));
  readonly #issuers: ReadonlyMap<string, Issuer>;
  readonly #holders: AgentHolders;
  /** Credentials whose signature held. */
  readonly #signed = new WeakSet<Credential>();

  private constructor(issuers: ReadonlyMap<string, Issuer>, holders: AgentHolders) {
    this.#issuers = issuers;
    this.#holders = holders;
  }

  /**
   * Rejects with `invalid_issuer` when a record cannot be used, or when a name, a key or a pattern stands under two.
   * @param records IssuerRecords, unchecked.
   */
  static async from(records: readonly unknown[]): Promise<Issuers> {
    if (!records.every(isIssuerRecord)) throw new RelayError("invalid_issuer");
    const holders = new AgentHolders(records);
    const names = records.map(({ issuer }) => issuer);
    const keys = records.flatMap((record) => record.keys.map(({ public_key }) => public_key));
    if (!holders.isUnambiguous || hasTwice(names) || hasTwice(keys)) throw new RelayError("invalid_issuer");
    const issuers = records.map(async (record) => [record.issuer, await issuerOf(record)] as const);
    return new Issuers(new Map(await Promise.all(issuers)), holders);
  }

  /** True for the name of one of them. */
  has(issuer: string): boolean {
    return this.#issuers.has(issuer);
  }

  /** True when one of them has the agent, be it as one of all others. */
  mayHold(agent: string): boolean {
    return this.#holders.holderOf(agent) !== undefined;
  }

  /** True when one of them has the agent by its id or its name space, not only as one of all others. */
  names(agent: string): boolean {
    return this.#holders.namedHolderOf(agent) !== undefined;
  }

  /** True when one of them has the key that the credential says it is signed with. */
  knowsKeyOf(credential: Credential): boolean {
    return this.#keyOf(credential) !== undefined;
  }

  /** Why the credential did not hold at that time, whatever was revoked since; undefined when it did. Never rejects. */
  async problemAt(credential: Credential, time: number): Promise<CredentialReason | undefined> {
    const key = this.#keyOf(credential);
    if (key === undefined) return "unknown_issuer";
    const { issuedAt, notBefore, expiresAt, agent, issuer } = credential;
    if (Math.max(issuedAt, notBefore) > time + CREDENTIAL_LIMITS.maxAheadMs || time < key.from) return "not_yet_valid";
    if (expiresAt <= time || key.until <= time) return "expired";
    if (this.#holders.holderOf(agent) !== issuer) return "agent_not_allowed";
    return (await this.#isSigned(credential, key)) ? undefined : "signature";
  }

  /** True when its issuer revoked what it had issued by then. */
  isRevoked({ issuer, agent, issuedAt }: Credential): boolean {
    const revokedBefore = this.#issuers.get(issuer)?.revokedBefore;
    return [agent, ANY_AGENT].some((pattern) => issuedAt < (revokedBefore?.get(pattern) ?? Number.NEGATIVE_INFINITY));
  }

  #keyOf({ issuer, issuerKey }: Credential): IssuerKey | undefined {
    return this.#issuers.get(issuer)?.keys.get(issuerKey);
  }

  async #isSigned(credential: Credential, { key }: IssuerKey): Promise<boolean> {
    if (this.#signed.has(credential)) return true;
    const isSigned = await isTokenSignedBy(key, credential.token);
    if (isSigned) this.#signed.add(credential);
    return isSigned;
  }
}

async function issuerOf({ keys, revoked = [] }: IssuerRecord): Promise<Issuer> {
  const revokedBefore = new Map<string, number>();
  for (const { agent, issued_before } of revoked) {
    revokedBefore.set(agent, Math.max(Date.parse(issued_before), revokedBefore.get(agent) ?? 0));
  }
  return { keys: new Map(await Promise.all(keys.map(issuerKeyOf))), revokedBefore };
}

async function issuerKeyOf(record: IssuerRecord["keys"][number]): Promise<[string, IssuerKey]> {
  const { public_key: publicKey, not_before, expires_at } = record;
  const thumbprint = await thumbprintOf(publicKey, "Ed25519");
  const key = await importVerifyKey({ keyId: thumbprint, alg: "ed25519", publicKey });
  const from = not_before === undefined ? Number.NEGATIVE_INFINITY : Date.parse(not_before);
  const until = expires_at === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires_at);
  return [thumbprint, { key, from, until }];
}

function hasTwice(texts: readonly string[]): boolean {
  return new Set(texts).size < texts.length;
}
