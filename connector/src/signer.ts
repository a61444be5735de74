import { encodeBase64url } from "./base64url.ts";
import { canonicalText, type Draft, draftText, signedText } from "./canonical.ts";
import type { Clock } from "./clock.ts";
import { RelayError } from "./errors.ts";
import { ALGORITHMS, importSigningKey } from "./keys.ts";
import { MAX_FRAME_BYTES } from "./limits.ts";
import type { AgentKey, WebCryptoKey } from "./types.ts";

/** An envelope as it goes over the wire. */
export interface SignedEnvelope {
  readonly text: string;
  /** Epoch milliseconds, by the relay's clock. */
  readonly ts: number;
}

/** Bytes that time, key and signature add to a draft: an Ed25519 signature, a time of 16 digits, and their names. */
const REST_BYTES = 86 + 16 + `,"ts":,"key_id":"","sig":""}`.length;

/** Signs this agent's envelopes. */
export class Signer {
  readonly #agentKey: AgentKey;
  readonly #clock: Clock;
  #key: WebCryptoKey | undefined;

  constructor(agentKey: AgentKey, clock: Clock) {
    this.#agentKey = agentKey;
    this.#clock = clock;
  }

  /** Rejects with `invalid_key`. */
  async start(): Promise<void> {
    this.#key = await importSigningKey(this.#agentKey);
  }

  /**
   * The text of an envelope that is to be signed. Throws `invalid_envelope` and `frame_too_large`: the relay closes the
   * connection for a frame over its limit.
   */
  draft(draft: Draft): string {
    const text = tryDraft(draft);
    if (text === undefined) throw new RelayError("invalid_envelope", { message: "The payload is not a JSON object." });
    const bytes = new TextEncoder().encode(text + this.#agentKey.keyId).length + REST_BYTES;
    if (bytes > MAX_FRAME_BYTES) throw new RelayError("frame_too_large");
    return text;
  }

  /** Signs with the present time. Rejects with `invalid_key` when the key cannot sign. */
  async sign(draft: string): Promise<SignedEnvelope> {
    const { alg, keyId } = this.#agentKey;
    const ts = this.#clock.now();
    const canonical = canonicalText(draft, ts, keyId);
    try {
      const bytes = new TextEncoder().encode(canonical);
      const sig = await crypto.subtle.sign(ALGORITHMS[alg], this.#key as WebCryptoKey, bytes);
      return { text: signedText(canonical, encodeBase64url(new Uint8Array(sig))), ts };
    } catch {
      throw new RelayError("invalid_key");
    }
  }
}

function tryDraft(draft: Draft): string | undefined {
  try {
    const text = draftText(draft);
    return text.endsWith("}") ? text : undefined;
  } catch {
    return undefined;
  }
}
