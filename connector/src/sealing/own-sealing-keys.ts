import type { Clock } from "../clock.ts";
import { thumbprintOf } from "../credentials/public-jwk.ts";
import type { Credential } from "../credentials/read-credential.ts";
import { RelayError } from "../errors.ts";
import { SEALING_KEY_KEPT_MS } from "../limits.ts";
import type { SealingKeyPair } from "../options.ts";
import type { KeyPair } from "./hpke.ts";
import { SealingKeys } from "./sealing-keys.ts";

/**
 * The X25519 keys of this agent: those that it was given last, and those before them for as long as something may be on its way
 * that was sealed to them. Source: docs/protocol.md#sealed-payloads.
 */
export class OwnSealingKeys {
  readonly #clock: Clock;
  #given = SealingKeys.NONE;
  /** Given before, and not any more; by thumbprint. */
  readonly #former = new Map<string, KeyPair>();
  /** Until when something may come that is sealed to the key of a credential, by thumbprint. */
  readonly #openUntil = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Rejects with `invalid_key`. */
  async start(pairs: readonly SealingKeyPair[]): Promise<void> {
    this.#given = await SealingKeys.from(pairs);
  }

  /** @param kid thumbprint of the public key. */
  get(kid: string): KeyPair | undefined {
    const given = this.#given.get(kid);
    const { until = Number.POSITIVE_INFINITY } = given ?? {};
    if (until <= this.#clock.boundedNow()) return undefined;
    return given ?? (this.#isNeeded(kid) ? this.#former.get(kid) : undefined);
  }

  /**
   * Takes over the keys that come with a credential, or keeps those that it has. Rejects with `invalid_key`, and with
   * `invalid_credential` when others would seal to a key that this agent does not have; nothing has changed then.
   */
  async take(pairs: readonly SealingKeyPair[] | undefined, { sealingKey, expiresAt }: Credential): Promise<void> {
    const given = pairs === undefined ? this.#given : await SealingKeys.from(pairs);
    const kid = sealingKey === undefined ? undefined : await thumbprintOf(sealingKey, "X25519");
    if (kid !== undefined && !given.isEmpty && given.get(kid) === undefined) throw notHeld();
    for (const [former, pair] of this.#given.entries()) this.#former.set(former, pair);
    this.#given = given;
    if (kid !== undefined) {
      this.#openUntil.set(kid, Math.max(expiresAt + SEALING_KEY_KEPT_MS, this.#openUntil.get(kid) ?? 0));
    }
    this.#forgetEnded();
  }

  #isNeeded(kid: string): boolean {
    return (this.#openUntil.get(kid) ?? Number.NEGATIVE_INFINITY) > this.#clock.boundedNow();
  }

  #forgetEnded(): void {
    for (const kid of [...this.#former.keys(), ...this.#openUntil.keys()]) {
      if (this.#isNeeded(kid)) continue;
      this.#former.delete(kid);
      this.#openUntil.delete(kid);
    }
  }
}

function notHeld(): RelayError {
  return new RelayError("invalid_credential", {
    message: "The credential has an X25519 key in enc that is not among the sealing keys.",
    hint: "Give the private half in sealingKeys, or with the credential; or have one issued without enc.",
  });
}
