import { isSignedBy } from "./envelope-signature.ts";
import { GATEWAY_KEY_PREFIX, type GatewayKeys } from "./gateway-keys.ts";
import { importVerifyKey, type VerifyKey } from "./keys.ts";
import type { Delivery, Envelope, TrustedKey } from "./types.ts";

/** Tells who signed an envelope: by the trusted keys of its sender, or by the keys of the relay's gateways. */
export class SenderVerifier {
  readonly #trust: Readonly<Record<string, readonly TrustedKey[]>>;
  readonly #gatewayKeys: GatewayKeys;
  readonly #keys = new Map<string, VerifyKey>();

  constructor(trust: Readonly<Record<string, readonly TrustedKey[]>>, gatewayKeys: GatewayKeys) {
    this.#trust = trust;
    this.#gatewayKeys = gatewayKeys;
  }

  /** Rejects with `invalid_key` when one of the trusted keys cannot be used. */
  async start(): Promise<void> {
    for (const [agent, trusted] of Object.entries(this.#trust)) {
      for (const key of trusted) this.#keys.set(nameOf(agent, key.keyId), await importVerifyKey(key));
    }
  }

  /** Never rejects. */
  async check(envelope: Envelope): Promise<Delivery["verified"] | "forged"> {
    const { from, key_id } = envelope;
    if (key_id.startsWith(GATEWAY_KEY_PREFIX)) {
      return await verdict(envelope, await this.#gatewayKeys.find(key_id), "gateway");
    }
    return await verdict(envelope, this.#keys.get(nameOf(from, key_id)), "agent");
  }
}

/** A key is trusted for one agent only. Neither id can contain a space. */
function nameOf(agent: string, keyId: string): string {
  return `${agent} ${keyId}`;
}

async function verdict<V>(
  envelope: Envelope,
  key: VerifyKey | undefined,
  signer: V,
): Promise<V | "unverified" | "forged"> {
  if (key === undefined) return "unverified";
  return (await isSignedBy(key, envelope)) ? signer : "forged";
}
