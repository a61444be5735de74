import { GATEWAY_KEY_LIMITS } from "relay-protocol/wire/limits.ts";
import { controlKeys } from "../redis/keys.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";

/** Public key of a live gateway, for the signing manifest. Source: docs/protocol.md#gateway-signing. */
export interface GatewayKey {
  readonly keyId: string;
  /** base64url, 32 bytes. */
  readonly publicKey: string;
}

/** Lists a gateway's key, or renews its place in the list. @throws ServiceError `unavailable`. */
export async function announceGatewayKey(link: RedisCalls, key: GatewayKey): Promise<void> {
  const args = [key.keyId, key.publicKey, GATEWAY_KEY_LIMITS.listedForMs];
  await link.run("announce_gateway_key", [controlKeys.gatewayKeys], args);
}

/** @throws ServiceError `unavailable`. */
export async function readGatewayKeys(link: RedisCalls): Promise<GatewayKey[]> {
  const reply = (await link.run(
    "read_gateway_keys",
    [controlKeys.gatewayKeys],
    [GATEWAY_KEY_LIMITS.listedForMs],
  )) as string[];
  const keys: GatewayKey[] = [];
  for (let index = 0; index < reply.length; index += 2) {
    keys.push({ keyId: reply[index] as string, publicKey: reply[index + 1] as string });
  }
  return keys;
}
