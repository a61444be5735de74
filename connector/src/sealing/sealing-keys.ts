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

/** Keys that payloads are sealed to; immutable. */
export class SealingKeys {
  static readonly NONE: SealingKeys = new SealingKeys(new Map());
  /** By thumbprint. */
  readonly #keys: ReadonlyMap<string, KeyPair>;

  private constructor(keys: ReadonlyMap<string, KeyPair>) {
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
  entries(): Iterable<[string, KeyPair]> {
    return this.#keys;
  }

  /** @param kid thumbprint of the public key. */
  get(kid: string): KeyPair | undefined {
    return this.#keys.get(kid);
  }
}

async function imported({ publicKey: x, privateKey: d }: SealingKeyPair): Promise<[string, KeyPair]> {
  const jwk = { kty: "OKP", crv: "X25519", x };
  try {
    const keys = {
      publicKey: await crypto.subtle.importKey("jwk", jwk, X25519, true, []),
      privateKey: await crypto.subtle.importKey("jwk", { ...jwk, d }, X25519, false, ["deriveBits"]),
    };
    return [await thumbprintOf(x, "X25519"), keys];
  } catch {
    throw new RelayError("invalid_key");
  }
}
