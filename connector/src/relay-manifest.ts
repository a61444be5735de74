import { Issuers } from "./credentials/issuers.ts";
import type { Credential } from "./credentials/read-credential.ts";
import { membersOf } from "./frames.ts";
import { readGatewayKeys } from "./gateway-keys.ts";
import type { HttpClient } from "./http-client.ts";
import type { VerifyKey } from "./keys.ts";
import { MANIFEST } from "./limits.ts";
import { parseJson } from "./parse-json.ts";
import { within } from "./within.ts";

/** The keys that the relay's signing manifest names: of its gateways, and of the issuers that it accepts. */
export class RelayManifest {
  readonly #http: HttpClient;
  readonly #stopped = new AbortController();
  #gatewayKeys: ReadonlyMap<string, VerifyKey> = new Map();
  #issuers: Issuers = Issuers.NONE;
  #reading: Promise<void> | undefined;
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(http: HttpClient) {
    this.#http = http;
  }

  /** Undefined when the manifest does not have the key, or does not say so in time. Never rejects. */
  async gatewayKey(keyId: string): Promise<VerifyKey | undefined> {
    const isOld = performance.now() - this.#readAt >= MANIFEST.gatewayKeysKeptMs;
    if (isOld || !this.#gatewayKeys.has(keyId)) await this.#refresh();
    return this.#gatewayKeys.get(keyId);
  }

  /** Its issuers, read again when none of them has the key that the credential is signed with. Never rejects. */
  async issuersFor(credential: Credential): Promise<Issuers> {
    if (!this.#issuers.knowsKeyOf(credential)) await this.#refresh();
    return this.#issuers;
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** Unknown keys come from others: at most one request each interval, however many there are. */
  async #refresh(): Promise<void> {
    if (this.#reading === undefined && performance.now() - this.#readAt >= MANIFEST.againAfterMs) {
      this.#readAt = performance.now();
      this.#reading = this.#read().finally(() => {
        this.#reading = undefined;
      });
    }
    if (this.#reading !== undefined) {
      await within(MANIFEST.waitMs - (performance.now() - this.#readAt), this.#reading);
    }
  }

  /** What cannot be read changes nothing; a key that is not known asks again after the interval. */
  async #read(): Promise<void> {
    try {
      const { status, text } = await this.#http.ask(MANIFEST.path, MANIFEST.answer, this.#stopped.signal);
      if (status !== 200) return;
      const { gateway_keys, issuers } = membersOf(parseJson(text));
      this.#gatewayKeys = await readGatewayKeys(gateway_keys);
      this.#issuers = await Issuers.from(Array.isArray(issuers) ? issuers : []);
    } catch {
      // Known keys stay.
    }
  }
}
