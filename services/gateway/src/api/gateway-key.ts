import { createHash, createPrivateKey, type KeyObject, randomBytes } from "node:crypto";
import { GATEWAY_KEY_PREFIX } from "relay-protocol/contract/keys-file.ts";
import {
  ED25519_BYTES,
  privateKeyOfSeed,
  publicKeyText,
  type SigningKey,
  sign,
} from "relay-protocol/signing/algorithms.ts";
import { signedText } from "relay-protocol/signing/canonical.ts";
import { GATEWAY_KEY_LIMITS } from "relay-protocol/wire/limits.ts";
import { type FileError, FileFollower, readRegularFile } from "relay-runtime/files.ts";
import type { KeyStore } from "relay-runtime/key-store.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { SettingsError } from "relay-runtime/settings.ts";
import {
  announceGatewayKey,
  type GatewayKey as ListedKey,
  readGatewayKeys,
} from "relay-window/public-keys/gateway-keys.ts";
import { type RedisCalls, unavailable } from "relay-window/redis/redis-calls.ts";
import type { ProcessWindow } from "relay-window/window/process-window.ts";

/**
 * This gateway's own signing key. Recipients verify with the published list, so the window lists the key before it
 * accepts an envelope signed with it. The key stays listed while the gateway runs. A replaced file takes effect without
 * a restart. A key that the keys file revokes signs nothing and is not listed. Source:
 * docs/protocol.md#gateway-signing.
 */
export class GatewayKey {
  readonly #file: FileFollower<GatewaySigner> | undefined;
  readonly #link: RedisCalls;
  readonly #keys: KeyStore;
  readonly #logger: Logger;
  #signer: GatewaySigner | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param options.file of the key; undefined: the gateway makes one. */
  constructor(options: {
    readonly file: string | undefined;
    readonly link: RedisCalls;
    readonly window: ProcessWindow;
    readonly keys: KeyStore;
    readonly logger: Logger;
  }) {
    const { file, link, window, keys, logger } = options;
    this.#link = link;
    this.#keys = keys;
    this.#logger = logger;
    this.#file = file === undefined ? undefined : this.#follow(file);
    window.onChange(() => this.#announce());
    link.onUsable(() => this.#announce());
    keys.onChange(() => void this.#refresh());
  }

  /** Reads the key from its file, or makes one. @throws SettingsError when the file has no valid key, or a revoked one. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.#refresh(), GATEWAY_KEY_LIMITS.refreshEveryMs).unref();
    if (this.#file === undefined) this.#signer = await createGatewaySigner(undefined);
    else await this.#file.start();
  }

  stop(): void {
    this.#file?.stop();
    clearInterval(this.#timer);
  }

  /** @throws ServiceError `unavailable` before the key is loaded, and of a revoked key until another one takes its place. */
  get keyId(): string {
    return this.#loaded.keyId;
  }

  /** @param canonical text of an envelope whose `key_id` is this key's. Returns it with `sig`: what is forwarded. */
  sign(canonical: string): string {
    return this.#loaded.sign(canonical);
  }

  /**
   * The keys of all live gateways, without revoked ones. This gateway's own is included, also when a window reset has just
   * emptied the list.
   * @throws ServiceError `unavailable`.
   */
  async listed(): Promise<ListedKey[]> {
    const own = this.#inUse;
    const others = (await readGatewayKeys(this.#link)).filter(
      ({ keyId }) => keyId !== own?.keyId && !this.#keys.ring.isRevokedGatewayKey(keyId),
    );
    return own === undefined ? others : [{ keyId: own.keyId, publicKey: own.publicKey }, ...others];
  }

  get #loaded(): GatewaySigner {
    const signer = this.#inUse;
    if (signer === undefined) throw unavailable();
    return signer;
  }

  get #inUse(): GatewaySigner | undefined {
    const signer = this.#signer;
    return signer === undefined || this.#keys.ring.isRevokedGatewayKey(signer.keyId) ? undefined : signer;
  }

  /** The key of a changed file is listed before it signs. */
  #follow(path: string): FileFollower<GatewaySigner> {
    return new FileFollower({
      paths: [path],
      read: async () => {
        const signer = await createGatewaySigner(path);
        if (this.#keys.ring.isRevokedGatewayKey(signer.keyId)) throw new SettingsError([REVOKED]);
        if (this.#signer !== undefined) await announceGatewayKey(this.#link, signer);
        return signer;
      },
      loaded: (signer, isFirst) => {
        this.#signer = signer;
        if (!isFirst) this.#logger.info({ key_id: signer.keyId }, "gateway key file changed, new key in use");
      },
      failed: (err) => this.#logger.error({ err }, "gateway key file cannot be used, keeping the current key"),
      recovered: () => this.#logger.info("gateway key file valid again"),
    });
  }

  /** By a key that this gateway makes: it signs until the file has another one, or until the gateway stops. */
  async #replaceRevoked(): Promise<void> {
    if (this.#signer === undefined || this.#inUse !== undefined) return;
    const signer = await createGatewaySigner(undefined);
    await announceGatewayKey(this.#link, signer);
    this.#signer = signer;
    const made = { key_id: signer.keyId };
    if (this.#file === undefined) this.#logger.info(made, "gateway key revoked, new key in use");
    else this.#logger.error(made, `${REVOKED}. A key that this gateway made signs until then`);
  }

  async #refresh(): Promise<void> {
    await this.#replaceRevoked().catch(() => {});
    await this.#announce().catch(() => {});
  }

  async #announce(): Promise<void> {
    const signer = this.#inUse;
    if (signer !== undefined) await announceGatewayKey(this.#link, signer);
  }
}

const REVOKED = "RELAY_GATEWAY_KEY_FILE has a key that the keys file revokes: put another key there";

const MOST_KEY_FILE_BYTES = 65_536;
const KEY_ID_DIGEST_CHARACTERS = 22;

/** Signs the envelopes of one gateway. Source: docs/protocol.md#gateway-signing. */
class GatewaySigner {
  /** `gateway-` and a digest of the public key: the same key has the same id at every start. */
  readonly keyId: string;
  /** 32 bytes in base64url. */
  readonly publicKey: string;
  readonly #key: SigningKey;

  /** @param seed the private key of RFC 8032: 32 bytes. */
  constructor(seed: Buffer) {
    const privateKey = privateKeyOfSeed(seed);
    this.#key = { alg: "ed25519", privateKey };
    this.publicKey = publicKeyText(privateKey);
    const digest = createHash("sha256").update(this.publicKey).digest("base64url");
    this.keyId = GATEWAY_KEY_PREFIX + digest.slice(0, KEY_ID_DIGEST_CHARACTERS);
  }

  /** @param canonical text of an envelope whose `key_id` is this key's. Returns it with `sig`: what is forwarded. */
  sign(canonical: string): string {
    return signedText(canonical, sign(this.#key, canonical));
  }
}

/**
 * The signer of the key in `keyFile` (PKCS#8 PEM, Ed25519), or of a new key when no file is set. Throws SettingsError when the
 * file cannot be read or holds another kind of key; the message never quotes it.
 */
export async function createGatewaySigner(keyFile: string | undefined): Promise<GatewaySigner> {
  if (keyFile === undefined) return new GatewaySigner(randomBytes(ED25519_BYTES.seed));
  const { text } = await readRegularFile(keyFile, MOST_KEY_FILE_BYTES).catch((error: FileError) => {
    throw new SettingsError([`RELAY_GATEWAY_KEY_FILE ${error.message}`]);
  });
  return new GatewaySigner(parseSeed(text));
}

function parseSeed(pem: string): Buffer {
  const key = tryParse(pem);
  if (key?.asymmetricKeyType !== "ed25519")
    throw new SettingsError(["RELAY_GATEWAY_KEY_FILE must hold an Ed25519 private key as PKCS#8 PEM"]);
  return Buffer.from(key.export({ format: "jwk" }).d as string, "base64url");
}

function tryParse(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}
