import { membersOf, textOf } from "./frames.ts";
import { importVerifyKey, type VerifyKey } from "./keys.ts";
import { MANIFEST } from "./limits.ts";
import { parseJson } from "./parse-json.ts";

/** A `key_id` that only the relay's gateways use. Source: docs/protocol.md#signatures. */
export const GATEWAY_KEY_PREFIX = "gateway-";

/** The public keys of the relay's gateways, fetched from its signing manifest when a delivery names an unknown one. */
export class GatewayKeys {
  readonly #url: string;
  readonly #stopped = new AbortController();
  #keys: ReadonlyMap<string, VerifyKey> = new Map();
  #reading: Promise<void> | undefined;
  #readAt = Number.NEGATIVE_INFINITY;

  /** @param url of the signing manifest. */
  constructor(url: string) {
    this.#url = url;
  }

  /** The key, or undefined when the manifest does not have it or cannot be read. Never rejects. */
  async find(keyId: string): Promise<VerifyKey | undefined> {
    if (!this.#keys.has(keyId)) await this.#refresh();
    return this.#keys.get(keyId);
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** Unknown key ids come from others: at most one request each interval, however many there are. */
  async #refresh(): Promise<void> {
    if (this.#reading === undefined && performance.now() - this.#readAt >= MANIFEST.againAfterMs) {
      this.#readAt = performance.now();
      this.#reading = this.#read().finally(() => {
        this.#reading = undefined;
      });
    }
    await this.#reading;
  }

  async #read(): Promise<void> {
    try {
      const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(MANIFEST.timeoutMs)]);
      const manifest = membersOf(parseJson(await (await fetch(this.#url, { signal })).text()));
      const listed = Array.isArray(manifest.gateway_keys) ? manifest.gateway_keys : [];
      const keys = await Promise.all(listed.map(usableKey));
      this.#keys = new Map(keys.flatMap((key) => (key === undefined ? [] : [key])));
    } catch {
      // Known keys stay; an unknown one asks again after the interval.
    }
  }
}

async function usableKey(listed: unknown): Promise<[string, VerifyKey] | undefined> {
  const { key_id, alg, public_key } = membersOf(listed);
  const keyId = textOf(key_id);
  if (alg !== "ed25519" || keyId === undefined) return undefined;
  try {
    return [keyId, await importVerifyKey({ keyId, alg, publicKey: textOf(public_key) ?? "" })];
  } catch {
    return undefined;
  }
}
