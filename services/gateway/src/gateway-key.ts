import { GATEWAY_KEY_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { createGatewaySigner, type GatewaySigner } from "@agent-relay/shared/signing/gateway-signer.ts";
import {
  announceGatewayKey,
  type GatewayKey as ListedKey,
  readGatewayKeys,
} from "@agent-relay/shared/window/gateway-keys.ts";
import type { ProcessWindow } from "@agent-relay/shared/window/process-window.ts";
import { type RedisLink, unavailable } from "@agent-relay/shared/window/redis-link.ts";

/**
 * This gateway's own signing key. It is listed in each window before anything it signed can be accepted there, and kept
 * listed for as long as the gateway lives. Source: protocol, section 4, "Gateway signing".
 */
export class GatewayKey {
  readonly #file: string | undefined;
  readonly #link: RedisLink;
  #signer: GatewaySigner | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: {
    readonly file: string | undefined;
    readonly link: RedisLink;
    readonly window: ProcessWindow;
  }) {
    this.#file = options.file;
    this.#link = options.link;
    options.window.onChange(() => this.#announce());
    options.link.onReady(() => this.#announce());
  }

  /** Reads or makes the key. @throws Error when the file holds none that can be used. */
  async load(): Promise<void> {
    this.#signer = await createGatewaySigner(this.#file);
  }

  start(): void {
    this.#timer = setInterval(() => void this.#announce().catch(() => {}), GATEWAY_KEY_LIMITS.refreshEveryMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** @throws RelayError `unavailable` before the key is loaded. */
  get keyId(): string {
    return this.#loaded.keyId;
  }

  /** What is forwarded of an envelope under this key: its canonical text with the signature. */
  sign(canonical: string): string {
    return this.#loaded.sign(canonical);
  }

  /**
   * The keys of all live gateways. This one's is always among them, also when a reset has just emptied the list.
   * @throws RelayError `unavailable`.
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
