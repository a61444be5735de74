import { CredentialVerifier, type SenderVerdict } from "./credentials/credential-verifier.ts";
import { Issuers } from "./credentials/issuers.ts";
import type { Credential } from "./credentials/read-credential.ts";
import type { SenderCredentials } from "./credentials/sender-credentials.ts";
import { isSignedBy } from "./envelope-signature.ts";
import { GATEWAY_KEY_PREFIX } from "./gateway-keys.ts";
import { importVerifyKey, type VerifyKey } from "./keys.ts";
import type { RelayManifest } from "./relay-manifest.ts";
import type { Trusted } from "./trust.ts";
import type { Delivery, Envelope } from "./types.ts";

/** What is known of who signed an envelope; `credential` where one made it known. */
export type Verdict = SenderVerdict | { readonly verified: "agent" | "gateway" };

export interface SenderVerifierOptions {
  readonly trusted: Trusted;
  readonly manifest: RelayManifest;
  readonly credentials: SenderCredentials;
  /** The host, with a port that is not the default, that this agent dialled. */
  readonly relay: string;
  /** What is not verified is dropped. */
  readonly requireVerified: boolean;
}

/** Tells who signed an envelope: a trusted key of its sender, one of the relay's gateways, or a key with a credential. */
export class SenderVerifier {
  readonly #options: SenderVerifierOptions;
  readonly #keys = new Map<string, VerifyKey>();
  #pinned: Issuers = Issuers.NONE;
  #byCredential: CredentialVerifier | undefined;

  constructor(options: SenderVerifierOptions) {
    this.#options = options;
  }

  /** Rejects with `invalid_key` or `invalid_issuer` when what is trusted cannot be used. */
  async start(): Promise<void> {
    const { trusted, manifest, credentials, relay, requireVerified } = this.#options;
    for (const [agent, keys] of Object.entries(trusted.keys)) {
      for (const key of keys) this.#keys.set(nameOf(agent, key.keyId), await importVerifyKey(key));
    }
    this.#pinned = await Issuers.from(trusted.issuers);
    const trust = {
      pinned: this.#pinned,
      ofRelay: (credential: Credential) => manifest.issuersFor(credential),
      hasPinnedKeys: (agent: string) => this.#hasPinnedKeys(agent),
      relay,
    };
    this.#byCredential = new CredentialVerifier(credentials, trust, requireVerified);
  }

  /** There is one after `start`. */
  get byCredential(): CredentialVerifier {
    return this.#byCredential as CredentialVerifier;
  }

  /** Never rejects. */
  async check(envelope: Envelope): Promise<Verdict> {
    const { from, key_id } = envelope;
    if (key_id.startsWith(GATEWAY_KEY_PREFIX)) {
      const key = await this.#options.manifest.gatewayKey(key_id);
      return key === undefined ? { verified: "unverified" } : await verdict(envelope, key, "gateway");
    }
    const key = this.#keys.get(nameOf(from, key_id));
    return key === undefined ? await this.byCredential.check(envelope) : await verdict(envelope, key, "agent");
  }

  /** True for one that passes where only what is verified is wanted. */
  isVerified({ verified }: Pick<Delivery, "verified">, { key_id }: Envelope): boolean {
    return verified === "agent" || (verified === "gateway" && this.#options.trusted.gateways.includes(key_id));
  }

  /** True for an agent of which this one pinned keys, or an issuer that may have it: what is the agent's can be verified. */
  isPinned(agent: string): boolean {
    return this.#hasPinnedKeys(agent) || this.#pinned.mayHold(agent);
  }

  #hasPinnedKeys(agent: string): boolean {
    return (this.#options.trusted.keys[agent]?.length ?? 0) > 0;
  }
}

/** A key is trusted for one agent only. Neither id can contain a space. */
function nameOf(agent: string, keyId: string): string {
  return `${agent} ${keyId}`;
}

async function verdict(envelope: Envelope, key: VerifyKey, verified: "agent" | "gateway"): Promise<Verdict> {
  return (await isSignedBy(key, envelope)) ? { verified } : "forged";
}
