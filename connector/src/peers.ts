import type { Clock } from "./clock.ts";
import { SenderCredentials } from "./credentials/sender-credentials.ts";
import { RelayError } from "./errors.ts";
import type { HttpClient } from "./http-client.ts";
import { LOOK_UP } from "./limits.ts";
import type { ConnectorOptions } from "./options.ts";
import { RelayManifest } from "./relay-manifest.ts";
import { SenderVerifier } from "./sender-verifier.ts";
import { trustedBy } from "./trust.ts";

export interface PeersOptions {
  readonly trust: ConnectorOptions["trust"];
  readonly http: HttpClient;
  /** The relay's host, as a register names it. */
  readonly relay: string;
  readonly clock: Clock;
  readonly requireVerified?: boolean | undefined;
}

/** What this agent knows of others: whom it trusts, and what it looks up at the relay. */
export class Peers {
  readonly verifier: SenderVerifier;
  readonly #clock: Clock;
  readonly #manifest: RelayManifest;
  readonly #credentials: SenderCredentials;

  constructor({ trust, http, relay, clock, requireVerified = false }: PeersOptions) {
    this.#clock = clock;
    this.#manifest = new RelayManifest(http);
    this.#credentials = new SenderCredentials((path, signal) => http.ask(path, LOOK_UP.answer, signal));
    const [manifest, credentials] = [this.#manifest, this.#credentials];
    const trusted = trustedBy(trust);
    this.verifier = new SenderVerifier({ trusted, manifest, credentials, relay, requireVerified });
  }

  /** Rejects with `invalid_key` or `invalid_issuer`. */
  async start(): Promise<void> {
    await this.verifier.start();
  }

  stop(): void {
    this.#manifest.stop();
    this.#credentials.stop();
  }

  /**
   * The X25519 key of an agent. Rejects with `recipient_unknown`, `recipient_unverified` or `recipient_unsealable`, and with
   * `clock_untrusted` when nobody can tell here what has ended.
   */
  async sealingKeyOf(agent: string, neededAt: number): Promise<string> {
    if (!this.#clock.isTrusted) throw new RelayError("clock_untrusted");
    return await this.verifier.byCredential.sealingKeyOf(agent, this.#clock.boundedNow(), neededAt);
  }
}
