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
import { type FileError, readRegularFile } from "relay-runtime/regular-file.ts";
import { SettingsError } from "relay-runtime/settings.ts";

const MOST_KEY_FILE_BYTES = 65_536;
const KEY_ID_DIGEST_CHARACTERS = 22;

/** Signs the envelopes of one gateway. Source: docs/protocol.md#gateway-signing. */
export class GatewaySigner {
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
