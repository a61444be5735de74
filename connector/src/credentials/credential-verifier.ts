import { isSignedBy } from "../envelope-signature.ts";
import { type ErrorDetails, RelayError } from "../errors.ts";
import type { Envelope } from "../types.ts";
import { type CredentialReason, isCredentialKey } from "./contract.ts";
import type { Credential } from "./read-credential.ts";
import type { SenderCredentials } from "./sender-credentials.ts";
import { type CredentialTrust, type Vouching, vouchingFor } from "./vouching.ts";

/** What is known of who signed an envelope. */
export type SenderVerdict =
  | { readonly verified: "agent" | "relay_issuer"; readonly issuer: string; readonly credential: Credential }
  /** `reason`: why its credential counts for nothing; absent where none was found. */
  | { readonly verified: "unverified"; readonly reason?: CredentialReason }
  | "forged";

/** Tells who signed an envelope, by credentials. */
export class CredentialVerifier {
  readonly #credentials: SenderCredentials;
  readonly #trust: CredentialTrust;
  readonly #pinnedOnly: boolean;

  /** @param pinnedOnly nobody else counts: nothing is looked up of agents that no pinned issuer may hold. */
  constructor(credentials: SenderCredentials, trust: CredentialTrust, pinnedOnly = false) {
    this.#credentials = credentials;
    this.#trust = trust;
    this.#pinnedOnly = pinnedOnly;
  }

  /** Never rejects. */
  async check(envelope: Envelope): Promise<SenderVerdict> {
    const { from: agent, key_id: keyId, ts } = envelope;
    const query = { agent, keyId };
    const isOfUse = isCredentialKey(keyId) && (!this.#pinnedOnly || this.#trust.pinned.mayHold(agent));
    const standing = this.#trust.pinned.names(agent) ? "known" : "stranger";
    const credential = isOfUse ? await this.#credentials.find(query, ts, standing) : undefined;
    if (credential === undefined) return { verified: "unverified" };
    // Whoever issued it: `key_id` is the digest of the key, so no other could have signed.
    if (!(await isSignedBy(credential.key, envelope))) return "forged";
    const vouching = await vouchingFor(credential, ts, this.#trust);
    if (vouching.verified === "agent") this.#credentials.isKnown(query);
    return vouching.verified === "unverified" ? vouching : { ...vouching, credential };
  }

  /**
   * The X25519 key of an agent, in base64url, for payloads that only it is to read. Rejects with `recipient_unknown` without a
   * credential of it, with `recipient_unverified` unless a pinned issuer vouches for it now, and with `recipient_unsealable`
   * where it names no such key.
   * @param now epoch milliseconds.
   * @param neededAt when it was needed, by performance.now().
   */
  async sealingKeyOf(agent: string, now: number, neededAt: number): Promise<string> {
    const credential = await this.#credentials.findRecipient(agent, now, neededAt);
    if (credential === undefined) throw new RelayError("recipient_unknown");
    const vouching = await vouchingFor(credential, now, this.#trust);
    if (vouching.verified !== "agent") throw new RelayError("recipient_unverified", whyNot(vouching, credential));
    if (credential.sealingKey === undefined) throw new RelayError("recipient_unsealable");
    return credential.sealingKey;
  }
}

/** Of the credential of a pinned issuer. Who is not pinned is told as the catalogue has it. */
function whyNot({ verified, ...rest }: Vouching, { issuer }: Credential): ErrorDetails {
  const reason = "reason" in rest ? rest.reason : undefined;
  if (verified !== "unverified" || reason === undefined || NOT_PINNED.has(reason)) return {};
  return {
    message: `The recipient's credential of ${issuer} counts for nothing: ${reason}.`,
    hint: "The recipient has to register with another credential.",
  };
}

/** What another pin may mend. */
const NOT_PINNED: ReadonlySet<CredentialReason> = new Set(["unknown_issuer", "agent_not_allowed", "signature"]);
