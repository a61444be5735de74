import { GATEWAY_KEY_LIMITS } from "protocol/contract/limits.ts";
import { announceGatewayKey, type GatewayKey as ListedKey, readGatewayKeys } from "window/gateway-keys.ts";
import type { ProcessWindow } from "window/process-window.ts";
import type { RedisCalls } from "window/redis/redis-calls.ts";
import { unavailable } from "window/unavailable.ts";
import { createGatewaySigner, type GatewaySigner } from "./gateway-signer.ts";

/**
 * This gateway's own signing key. Recipients verify with the published list, so the key is listed in a window before any
 * envelope that it signed is accepted there, and stays listed while the gateway runs. Source: docs/protocol.md#gateway-signing.
 */
export class GatewayKey {
  readonly #file: string | undefined;
  readonly #link: RedisCalls;
  #signer: GatewaySigner | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: {
    readonly file: string | undefined;
    readonly link: RedisCalls;
    readonly window: ProcessWindow;
  }) {
    this.#file = options.file;
    this.#link = options.link;
    options.window.onChange(() => this.#announce());
    options.link.onUsable(() => this.#announce());
  }

  /** Reads the key from its file, or makes one. @throws Error when the file does not hold a valid key. */
  async load(): Promise<void> {
    this.#signer = await createGatewaySigner(this.#file);
  }

  start(): void {
    this.#timer = setInterval(() => void this.#announce().catch(() => {}), GATEWAY_KEY_LIMITS.refreshEveryMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** @throws ServiceError `unavailable` before the key is loaded. */
  get keyId(): string {
    return this.#loaded.keyId;
  }

  /** @param canonical text of an envelope whose `key_id` is this key's. Returns it with `sig`: what is forwarded. */
  sign(canonical: string): string {
    return this.#loaded.sign(canonical);
  }

  /**
   * The keys of all live gateways. This gateway's own is always included, also when a window reset has just emptied the list.
   * @throws ServiceError `unavailable`.
   */
  async listed(): Promise<ListedKey[]> {
    const { keyId, publicKey } = this.#loaded;
    const others = (await readGatewayKeys(this.#link)).filter((key) => key.keyId !== keyId);
    return [{ keyId, publicKey }, ...others];
  }

  get #loaded(): GatewaySigner {
    if (this.#signer === undefined) throw unavailable();
    return this.#signer;
  }

  #announce(): Promise<void> {
    return announceGatewayKey(this.#link, this.#loaded);
  }
}
