import { ANY_AGENT, type CredentialProblem } from "../contract/credential.ts";
import type { IssuerRecord } from "../contract/keys-file.ts";
import { CREDENTIAL_LIMITS } from "../contract/limits.ts";
import type { VerifyKey } from "../signing/algorithms.ts";
import { importPublicKey } from "../signing/ed25519.ts";
import { isValidAt, type Validity, validityOf } from "../signing/validity.ts";
import type { AgentHolders } from "./agent-holders.ts";
import { thumbprintOf } from "./public-jwk.ts";
import type { Credential } from "./read-credential.ts";

interface IssuerKey {
  readonly key: VerifyKey;
  readonly validity: Validity;
}

interface Issuer {
  /** By thumbprint. */
  readonly keys: ReadonlyMap<string, IssuerKey>;
  /** By agent, or by ANY_AGENT: Unix ms before which nothing that was issued holds. */
  readonly revokedBefore: ReadonlyMap<string, number>;
}

const NEVER: Validity = { from: Number.POSITIVE_INFINITY, until: Number.NEGATIVE_INFINITY };

/** What a credential is judged by. */
type Terms = Pick<Credential, "issuer" | "issuerKey" | "agent" | "issuedAt" | "expiresAt" | "notBefore">;

/** The issuers of one version of the keys file; immutable. Source: docs/protocol.md#credentials. */
export class Issuers {
  readonly #issuers: ReadonlyMap<string, Issuer>;
  readonly #holders: AgentHolders;
  /** As they stand in the keys file: all of it is public. */
  readonly records: readonly IssuerRecord[];

  /** @throws Error, without key text, when a key cannot be used. */
  constructor(records: readonly IssuerRecord[], holders: AgentHolders) {
    this.#issuers = new Map(records.map((record) => [record.issuer, issuerOf(record)]));
    this.#holders = holders;
    this.records = records;
  }

  /** Unix ms at which a key of an issuer becomes valid or ends. */
  get transitions(): number[] {
    return [...this.#issuers.values()].flatMap(({ keys }) =>
      [...keys.values()].flatMap(({ validity }) => [validity.from, validity.until]),
    );
  }

  /** The key that the credential's signature is checked with; undefined when the relay knows no such issuer. */
  keyOf({ issuer, issuerKey }: Credential): VerifyKey | undefined {
    return this.#issuers.get(issuer)?.keys.get(issuerKey)?.key;
  }

  /** Why the credential does not hold at this time, its signature aside; undefined when it does. */
  problemOf(credential: Terms, now: number): CredentialProblem | undefined {
    const term = this.#termOf(credential);
    if (term === undefined) return "unknown_issuer";
    if (now < term.from) return "not_yet_valid";
    if (!isValidAt(term, now)) return "expired";
    return this.#objectionTo(credential);
  }

  /** When the credential holds, its signature aside. Of an immutable file it stays true: who asks again and again keeps it. */
  holdsDuring(credential: Terms): Validity {
    const term = this.#termOf(credential);
    return term === undefined || this.#objectionTo(credential) !== undefined ? NEVER : term;
  }

  /** True when nobody but this issuer may say who the agent is. */
  speaksFor(issuer: string, agent: string): boolean {
    return this.#holders.isOfIssuer(agent, issuer);
  }

  /** Unix ms at which the credential ends: with its term or that of its issuer's key. */
  endOf(credential: Terms): number {
    return this.#termOf(credential)?.until ?? Number.NEGATIVE_INFINITY;
  }

  /** The credential's own term, within that of its issuer's key; undefined when the relay knows no such issuer. */
  #termOf({ issuer, issuerKey, issuedAt, notBefore, expiresAt }: Terms): Validity | undefined {
    const key = this.#issuers.get(issuer)?.keys.get(issuerKey);
    if (key === undefined) return undefined;
    return {
      from: Math.max(key.validity.from, Math.max(issuedAt, notBefore) - CREDENTIAL_LIMITS.maxAheadMs),
      until: Math.min(key.validity.until, expiresAt),
    };
  }

  /** Unix ms before which nothing holds that the issuer issued for the agent; 0 where it revoked nothing. */
  revokedBefore({ issuer, agent }: Pick<Terms, "issuer" | "agent">): number {
    const revokedBefore = this.#issuers.get(issuer)?.revokedBefore;
    return Math.max(revokedBefore?.get(agent) ?? 0, revokedBefore?.get(ANY_AGENT) ?? 0);
  }

  /** Why the credential does not hold at any time. */
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
