import { isSignedBy } from "../envelope-signature.ts";
import { RelayError } from "../errors.ts";
import type { Envelope } from "../types.ts";
import { type CredentialReason, isCredentialKey } from "./contract.ts";
import type { Credential } from "./read-credential.ts";
import type { SenderCredentials } from "./sender-credentials.ts";
import { type CredentialTrust, vouchingFor } from "./vouching.ts";

/** What is known of who signed an envelope. */
export type SenderVerdict =
  | { readonly verified: "agent" | "relay_issuer"; readonly issuer: string; readonly credential: Credential }
  /** `reason`: why its credential counts for nothing; absent where none was found. */
  | { readonly verified: "unverified"; readonly reason?: CredentialReason }
  | "forged";

const NO_CREDENTIAL = {
  message: "The relay gives no credential of the recipient.",
  hint: "Check its id: relay status says whether it has ever been online. It has to register with a credential that holds an X25519 key.",
};

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
   * The X25519 key of an agent, in base64url, for payloads that only it is to read. Rejects with `recipient_unverified`
   * unless a pinned issuer vouches for it now.
   * @param now epoch milliseconds.
   */
  async sealingKeyOf(agent: string, now: number): Promise<string> {
    const credential = await this.#credentials.find({ agent }, now);
    if (credential === undefined) throw new RelayError("recipient_unverified", NO_CREDENTIAL);
    const vouching = await vouchingFor(credential, now, this.#trust);
    if (vouching.verified !== "agent" || credential.sealingKey === undefined) {
      throw new RelayError("recipient_unverified");
    }
    return credential.sealingKey;
  }
}
