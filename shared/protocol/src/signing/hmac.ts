import { hash } from "node:crypto";
import { ENVELOPE_LIMITS } from "../contract/limits.ts";

/** Bytes of a SHA-256 block, and of a digest. */
const BLOCK = 64;
const DIGEST = 32;
/** The padding bytes of RFC 2104. */
const INNER = 0x36;
const OUTER = 0x5c;
/** The most bytes that UTF-8 takes for one UTF-16 code unit. */
const MAX_BYTES_PER_UNIT = 3;

/** Overwritten by each call: the inner block, then the text. A text longer than an envelope gets a buffer of its own. */
const MESSAGE = Buffer.alloc(BLOCK + MAX_BYTES_PER_UNIT * ENVELOPE_LIMITS.maxFrameBytes);

/**
 * HMAC-SHA256 with one secret. By hand, since two one-shot hashes over reused buffers take half the time of createHmac,
 * which makes two objects for each call. Source: RFC 2104.
 */
export class HmacSecret {
  readonly #inner = Buffer.alloc(BLOCK, INNER);
  /** The outer block, and room for the inner digest. */
  readonly #outer = Buffer.alloc(BLOCK + DIGEST, OUTER);

  constructor(secret: Buffer) {
    const key = secret.length > BLOCK ? hash("sha256", secret, "buffer") : secret;
    for (const [index, byte] of key.entries()) {
      this.#inner[index] = INNER ^ byte;
      this.#outer[index] = OUTER ^ byte;
    }
  }

  /** The MAC of the UTF-8 bytes of `text`, in base64url. */
  sign(text: string): string {
    const isLong = text.length * MAX_BYTES_PER_UNIT > MESSAGE.length - BLOCK;
    const message = isLong ? Buffer.alloc(BLOCK + Buffer.byteLength(text)) : MESSAGE;
    message.set(this.#inner);
    const end = BLOCK + message.write(text, BLOCK);
    this.#outer.write(hash("sha256", message.subarray(0, end), "binary"), BLOCK, "binary");
    return hash("sha256", this.#outer, "base64url");
  }
}
