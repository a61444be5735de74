import { thumbprintOf } from "../credentials/public-jwk.ts";
import { RelayError } from "../errors.ts";
import type { SealingKeyPair } from "../options.ts";
import type { KeyPair } from "./hpke.ts";

export type { SealingKeyPair };

const X25519 = { name: "X25519" } as const;

export async function newSealingKey(): Promise<SealingKeyPair> {
  const { privateKey } = (await crypto.subtle.generateKey(X25519, true, ["deriveBits"])) as KeyPair;
  const { x = "", d = "" } = await crypto.subtle.exportKey("jwk", privateKey);
  return { publicKey: x, privateKey: d };
}

/** A key, and when it ends, in epoch milliseconds. */
export interface SealingKey extends KeyPair {
  readonly until: number | undefined;
}

/** Keys that payloads are sealed to; immutable. */
export class SealingKeys {
  static readonly NONE: SealingKeys = new SealingKeys(new Map());
  /** By thumbprint. */
  readonly #keys: ReadonlyMap<string, SealingKey>;

  private constructor(keys: ReadonlyMap<string, SealingKey>) {
    this.#keys = keys;
  }

  /** Rejects with `invalid_key`. */
  static async from(pairs: readonly SealingKeyPair[]): Promise<SealingKeys> {
    return new SealingKeys(new Map(await Promise.all(pairs.map(imported))));
  }

  get isEmpty(): boolean {
    return this.#keys.size === 0;
  }

  /** By thumbprint. */
  entries(): Iterable<[string, SealingKey]> {
    return this.#keys;
  }

  /** @param kid thumbprint of the public key. */
  get(kid: string): SealingKey | undefined {
    return this.#keys.get(kid);
  }
}

async function imported({ publicKey: x, privateKey: d, until }: SealingKeyPair): Promise<[string, SealingKey]> {
  const jwk = { kty: "OKP", crv: "X25519", x };
  try {
    const keys = {
      publicKey: await crypto.subtle.importKey("jwk", jwk, X25519, true, []),
      privateKey: await crypto.subtle.importKey("jwk", { ...jwk, d }, X25519, false, ["deriveBits"]),
      until,
    };
    return [await thumbprintOf(x, "X25519"), keys];
  } catch {
    throw new RelayError("invalid_key", {
      message: "One of the sealingKeys cannot be used.",
      hint: "Each is an X25519 key: { publicKey, privateKey }, 32 bytes in base64url each.",
    });
  }
}
