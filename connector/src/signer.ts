import { encodeBase64url } from "./base64url.ts";
import { canonicalText, type Draft, draftText, signedText } from "./canonical.ts";
import type { Clock } from "./clock.ts";
import type { Credential } from "./credentials/read-credential.ts";
import { invalidEnvelope } from "./envelope-rules.ts";
import { RelayError } from "./errors.ts";
import { membersOf } from "./frames.ts";
import { ALGORITHMS, importSigningKey } from "./keys.ts";
import { ANNOUNCED_DEFAULTS, MAX_FRAME_BYTES, PAYLOAD_LIMITS } from "./limits.ts";
import { parseJson } from "./parse-json.ts";
import { isPayload } from "./payload-rules.ts";
import type { AgentKey, WebCryptoKey } from "./types.ts";

/** An envelope as it goes over the wire. */
export interface SignedEnvelope {
  readonly text: string;
  /** Epoch milliseconds, by the relay's clock. */
  readonly ts: number;
  readonly keyId: string;
}

/** Bytes that time, key and signature add to a draft: an Ed25519 signature, a time of 16 digits, and their names. */
const REST_BYTES = 86 + 16 + `,"ts":,"key_id":"","sig":""}`.length;

/** Of the id that a key has by its credential: `jkt-` and a thumbprint. */
const CREDENTIAL_KEY_ID_BYTES = 47;

/** No envelope begins like this: whatever it signs, it is none. */
const PROOF = new TextEncoder().encode("agent-relay: is this the key of a credential?");

/** Signs this agent's envelopes with one key. */
export class Signer {
  readonly #agentKey: AgentKey;
  readonly #clock: Clock;
  #keyId: string | undefined;
  #key: WebCryptoKey | undefined;

  constructor(agentKey: AgentKey, clock: Clock) {
    this.#agentKey = agentKey;
    this.#clock = clock;
    this.#keyId = agentKey.keyId;
  }

  /** Rejects with `invalid_key`. */
  async start(): Promise<void> {
    this.#key = await importSigningKey(this.#agentKey);
  }

  /** There is one in the end: the caller's, or of a credential. */
  get keyId(): string {
    return this.#keyId as string;
  }

  get isEd25519(): boolean {
    return this.#agentKey.alg === "ed25519";
  }

  /** Takes the key's id from its credential. Rejects with `invalid_credential` for the credential of another key. */
  async takeIdOf({ keyId, key }: Credential): Promise<void> {
    const isNamed = this.#keyId === undefined || this.#keyId === keyId;
    const isOwn = isNamed && this.#agentKey.alg === key.alg && (await this.#isHalfOf(key.key));
    if (!isOwn) {
      throw new RelayError("invalid_credential", {
        message: "The credential is of another key.",
        hint: "Have one issued for this key, or let the callback give the key with it.",
      });
    }
    this.#keyId = keyId;
  }

  /**
   * The text of an envelope that is to be signed. Throws `invalid_envelope` and `frame_too_large`: the relay closes the
   * connection for a frame over its limit, and for refusals in a row. A payload may be what a stranger wrote, sent back.
   */
  draft(draft: Draft): string {
    const text = tryDraft(draft);
    if (!text.endsWith("}")) throw invalidEnvelope([{ field: "payload", message: NOT_AN_OBJECT }]);
    const keyIdBytes = this.#keyId?.length ?? CREDENTIAL_KEY_ID_BYTES;
    const bytes = new TextEncoder().encode(text).length + keyIdBytes + REST_BYTES;
    if (bytes > MAX_FRAME_BYTES) throw new RelayError("frame_too_large");
    if (!isPayload(membersOf(parseJson(`${text}}`)).payload)) {
      throw invalidEnvelope([{ field: "payload", message: BREAKS_RULES }]);
    }
    return text;
  }

  /**
   * Signs with the present time. Rejects with `invalid_key` when the key cannot sign.
   * @param notBefore what it answers was signed at this time, epoch milliseconds: by a clock that may be ahead of this one, as
   * far as the relay takes it. Nobody's clock moves it farther.
   */
  async sign(draft: string, notBefore = 0): Promise<SignedEnvelope> {
    const now = this.#clock.now();
    const ts = notBefore - now <= ANNOUNCED_DEFAULTS.maxClockSkewMs ? Math.max(now, notBefore) : now;
    const canonical = canonicalText(draft, ts, this.keyId);
    try {
      const sig = await this.#sign(new TextEncoder().encode(canonical));
      return { text: signedText(canonical, encodeBase64url(new Uint8Array(sig))), ts, keyId: this.keyId };
    } catch {
      throw new RelayError("invalid_key");
    }
  }

  async #sign(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
    return await crypto.subtle.sign(ALGORITHMS[this.#agentKey.alg], this.#key as WebCryptoKey, bytes);
  }

  /** A private key of WebCrypto may not be read, only used. */
  async #isHalfOf(publicKey: WebCryptoKey): Promise<boolean> {
    try {
      return await crypto.subtle.verify(ALGORITHMS.ed25519, publicKey, await this.#sign(PROOF), PROOF);
    } catch {
      throw new RelayError("invalid_key");
    }
  }
}

const NOT_AN_OBJECT = 'is not a JSON object, such as {"message": "hi"}';
const NOT_JSON = "holds what JSON has not: a BigInt (send it as a text), NaN, Infinity, a lone surrogate, or a cycle";
const BREAKS_RULES = `must have at most ${PAYLOAD_LIMITS.maxLevels} levels and ${PAYLOAD_LIMITS.maxMembers} members and array elements, none named __proto__`;

function tryDraft(draft: Draft): string {
  try {
    return draftText(draft);
  } catch {
    throw invalidEnvelope([{ field: "payload", message: NOT_JSON }]);
  }
}
