import { CREDENTIAL_LIMITS, SEALING_KEY_KEPT_MS } from "../limits.ts";
import type { SealingKeyPair } from "../options.ts";
import { okpKeyOf } from "./okp-keys.ts";

/** The member `sealing_key` of a key file: one key, or several, the newest first, former ones with their end (ISO 8601). */
export type SealingKeyList = SealingKeyEntry | readonly SealingKeyEntry[];
type SealingKeyEntry = string | { readonly private_key: string; readonly until: string };

/** A credential, as far as its sealing key goes. */
interface SealedTo {
  readonly sealingKey: string | undefined;
  readonly expiresAt: number;
}

/** The keys of the member; undefined when one of them is none. */
export function sealingKeysOf(given: unknown): SealingKeyPair[] | undefined {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  const pairs = list.map(pairOf);
  return pairs.every((pair) => pair !== undefined) ? pairs : undefined;
}

/**
 * The member once a credential is replaced: keys behind that of the new one are former. Each opens until ten minutes after the end
 * of its last credential, or, where the file does not have that, of the longest that there may be; then it is dropped.
 */
export function rotated(
  pairs: readonly SealingKeyPair[],
  next: SealedTo,
  replaced: SealedTo | undefined,
  now: number,
): SealingKeyPair[] {
  const present = pairs.findIndex(({ publicKey }) => publicKey === next.sealingKey);
  if (present === -1) return [...pairs];
  const endOf = ({ publicKey }: SealingKeyPair) =>
    (publicKey === replaced?.sealingKey ? replaced.expiresAt : now + CREDENTIAL_LIMITS.maxLifeMs) + SEALING_KEY_KEPT_MS;
  const former = pairs.slice(present + 1).map((pair) => ({ ...pair, until: pair.until ?? endOf(pair) }));
  return [...pairs.slice(0, present + 1), ...former.filter(({ until }) => until > now)];
}

export function sealingKeyListOf(pairs: readonly SealingKeyPair[]): SealingKeyList {
  const entries = pairs.map(({ privateKey, until }) =>
    until === undefined ? privateKey : { private_key: privateKey, until: new Date(until).toISOString() },
  );
  return entries.length === 1 ? (entries[0] as SealingKeyEntry) : entries;
}

function pairOf(entry: unknown): SealingKeyPair | undefined {
  if (typeof entry !== "object" || entry === null) return okpKeyOf("X25519", entry);
  const { private_key, until } = entry as { readonly private_key?: unknown; readonly until?: unknown };
  const [pair, end] = [okpKeyOf("X25519", private_key), Date.parse(String(until))];
  return pair && Number.isFinite(end) ? { ...pair, until: end } : undefined;
}
