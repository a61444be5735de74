import type { Credential } from "relay-protocol/signing/credentials.ts";

/**
 * The longest that half of the tokens may be together that are remembered: 10,000 of 750 characters, which have a sealing key and an
 * audience, since as many agents that reconnect present the same ones again.
 */
const MOST_CHARACTERS = 7_500_000;

type Token = Pick<Credential, "token" | "signature">;

/**
 * Tokens whose signatures held, those that were presented last. They are kept in two halves, so that nothing is to be removed one
 * by one: when the newer half is full it becomes the older one, and what stood there is forgotten.
 */
export class IssuedTokens {
  /** By their signatures, which are shorter. */
  #newer = new Map<string, string>();
  #older = new Map<string, string>();
  #characters = 0;

  /** True for a token that is remembered, whole: another under its signature is not. */
  has({ token, signature }: Token): boolean {
    if (this.#newer.get(signature) === token) return true;
    if (this.#older.get(signature) !== token) return false;
    this.add({ token, signature });
    return true;
  }

  /** Registers with one token that come together are all verified: it counts once. */
  add({ token, signature }: Token): void {
    if (this.#newer.has(signature)) return;
    this.#newer.set(signature, token);
    this.#characters += token.length;
    if (this.#characters <= MOST_CHARACTERS) return;
    this.#older = this.#newer;
    this.#newer = new Map();
    this.#characters = 0;
  }
}
