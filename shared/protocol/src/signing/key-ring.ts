import { hash, timingSafeEqual } from "node:crypto";
import type { KeysFile, SigningKeyRecord } from "../contract/keys-file.ts";
import { importVerifyKey, type VerifyKey } from "./algorithms.ts";
import { hashApiKey } from "./api-key.ts";

/** A signing key that was valid when it was looked up. */
export interface SigningEntry {
  readonly keyId: string;
  /** The key itself: another public key or secret under the same `keyId` is another key. */
  readonly identity: string;
  readonly key: VerifyKey;
  /** True when the key may sign for agents that its record does not list one by one. */
  readonly hasNamespace: boolean;
  /** True when the key may sign for this agent id. */
  mayAct(agent: string): boolean;
}

/** An API key that was valid when it was looked up. `id` is its name in the keys file, never the key itself. */
export interface ApiKeyEntry {
  readonly id: string;
  mayAct(agent: string): boolean;
}

/** An invalid keys file. The problems name positions and fields, never values. */
export class KeysFileError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`Invalid keys file: ${problems.join("; ")}`);
    this.name = "KeysFileError";
    this.problems = problems;
  }
}

/** Valid from `from` (inclusive) until `until` (exclusive), Unix ms. */
interface Validity {
  readonly from: number;
  readonly until: number;
}
type WithValidity<T> = T & { readonly validity: Validity };

/** The keys of one version of the keys file; immutable. Source: docs/protocol.md#keys. */
export class KeyRing {
  readonly #signing: ReadonlyMap<string, WithValidity<SigningEntry>>;
  readonly #api: ReadonlyMap<string, WithValidity<ApiKeyEntry> & { readonly digest: Buffer }>;
  readonly #transitions: readonly number[];

  private constructor(
    signing: Map<string, WithValidity<SigningEntry>>,
    api: Map<string, WithValidity<ApiKeyEntry> & { digest: Buffer }>,
  ) {
    this.#signing = signing;
    this.#api = api;
    this.#transitions = [...signing.values(), ...api.values()]
      .flatMap(({ validity }) => [validity.from, validity.until])
      .filter(Number.isFinite)
      .sort((a, b) => a - b);
  }

  /** @throws KeysFileError that lists every problem: ids or hashes that occur twice, keys that cannot be used. */
  static from(file: KeysFile): KeyRing {
    const problems = [
      ...duplicates("signing_keys", "key_id", file.signing_keys),
      ...duplicates("api_keys", "id", file.api_keys),
      ...duplicates("api_keys", "sha256", file.api_keys),
    ];
    const signing = new Map<string, WithValidity<SigningEntry>>();
    for (const [index, record] of file.signing_keys.entries()) {
      try {
        const key = importVerifyKey(record);
        signing.set(record.key_id, {
          keyId: record.key_id,
          identity: identityOf(record),
          key,
          hasNamespace: record.agents.some(isNamespace),
          mayAct: agentMatcher(record.agents),
          validity: validityOf(record),
        });
      } catch (error) {
        problems.push(`signing_keys.${index}: ${(error as Error).message}`);
      }
    }
    if (problems.length > 0) throw new KeysFileError(problems);

    const api = new Map(
      file.api_keys.map((record) => [
        record.sha256,
        {
          id: record.id,
          mayAct: agentMatcher(record.agents),
          validity: validityOf(record),
          digest: Buffer.from(record.sha256, "hex"),
        },
      ]),
    );
    return new KeyRing(signing, api);
  }

  /** The key; undefined when it is unknown, not valid yet, or expired. */
  signingKey(keyId: string, now: number): SigningEntry | undefined {
    const entry = this.#signing.get(keyId);
    return entry !== undefined && isValidAt(entry.validity, now) ? entry : undefined;
  }

  /** True when the key is still the one of its id, is valid, and may sign for the agent. */
  mayAct(identity: string, agent: string, now: number): boolean {
    const entry = this.signingKey(keyIdOf(identity), now);
    return entry !== undefined && entry.identity === identity && entry.mayAct(agent);
  }

  /** True when the key is valid and may sign for agents that its record does not list one by one. */
  hasNamespace(keyId: string, now: number): boolean {
    return this.signingKey(keyId, now)?.hasNamespace ?? false;
  }

  /** The API key with this text; undefined when it is unknown, not valid yet, or expired. */
  apiKey(text: string, now: number): ApiKeyEntry | undefined {
    const hash = hashApiKey(text);
    const entry = this.#api.get(hash);
    if (entry === undefined || !timingSafeEqual(entry.digest, Buffer.from(hash, "hex"))) return undefined;
    return isValidAt(entry.validity, now) ? entry : undefined;
  }

  /** Unix ms after `after` at which the next key becomes valid or expires; Infinity when none does. */
  nextTransition(after: number): number {
    return this.#transitions.find((time) => time > after) ?? Number.POSITIVE_INFINITY;
  }
}

/** No id contains a space. */
function identityOf(record: SigningKeyRecord): string {
  const material = record.alg === "ed25519" ? record.public_key : record.secret;
  return `${record.key_id} ${hash("sha256", `${record.alg} ${material}`, "base64url")}`;
}

/** The id of a key in the keys file. */
export function keyIdOf(identity: string): string {
  return identity.slice(0, identity.indexOf(" "));
}

function duplicates<Name extends string>(list: string, name: Name, records: readonly Record<Name, string>[]): string[] {
  const seen = new Set<string>();
  return records.flatMap((record, index) => {
    const isDuplicate = seen.has(record[name]);
    seen.add(record[name]);
    return isDuplicate ? [`${list}.${index}.${name}: occurs twice`] : [];
  });
}

function isNamespace(agents: string): boolean {
  return agents.endsWith(".*");
}

/** `agent://bob.*` matches every `agent://bob.<more>`, but not `agent://bob` itself. */
function agentMatcher(agents: readonly string[]): (agent: string) => boolean {
  const exact = new Set(agents.filter((agent) => !isNamespace(agent)));
  const prefixes = agents.filter(isNamespace).map((agent) => agent.slice(0, -1));
  return (agent) => exact.has(agent) || prefixes.some((prefix) => agent.startsWith(prefix));
}

function validityOf(record: {
  readonly not_before?: string | undefined;
  readonly expires_at?: string | undefined;
}): Validity {
  return {
    from: record.not_before === undefined ? Number.NEGATIVE_INFINITY : Date.parse(record.not_before),
    until: record.expires_at === undefined ? Number.POSITIVE_INFINITY : Date.parse(record.expires_at),
  };
}

function isValidAt(validity: Validity, now: number): boolean {
  return validity.from <= now && now < validity.until;
}
