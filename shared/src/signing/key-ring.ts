import { timingSafeEqual } from "node:crypto";
import type { KeysFile } from "../contract/keys-file.ts";
import { importVerifyKey, type VerifyKey } from "./algorithms.ts";
import { hashApiKey } from "./api-key.ts";

/** A signing key, in force when it was looked up. */
export interface SigningEntry {
  readonly keyId: string;
  readonly key: VerifyKey;
  /** True when the key may sign for this agent id. */
  mayAct(agent: string): boolean;
}

/** An API key, in force when it was looked up. `id` is its name in the keys file, never the key. */
export interface ApiKeyEntry {
  readonly id: string;
  mayAct(agent: string): boolean;
}

/** A keys file that cannot be used. Faults name positions and fields, never values. */
export class KeysFileError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(`The keys file is not valid: ${faults.join("; ")}`);
    this.name = "KeysFileError";
    this.faults = faults;
  }
}

/** In force from `from` (inclusive) until `until` (exclusive), epoch ms. */
interface Term {
  readonly from: number;
  readonly until: number;
}
type Termed<T> = T & { readonly term: Term };

/** The keys of one reading of the keys file; never changes. Source: protocol, section 4. */
export class KeyRing {
  readonly #signing: ReadonlyMap<string, Termed<SigningEntry>>;
  readonly #api: ReadonlyMap<string, Termed<ApiKeyEntry> & { readonly digest: Buffer }>;
  readonly #transitions: readonly number[];

  private constructor(
    signing: Map<string, Termed<SigningEntry>>,
    api: Map<string, Termed<ApiKeyEntry> & { digest: Buffer }>,
  ) {
    this.#signing = signing;
    this.#api = api;
    this.#transitions = [...signing.values(), ...api.values()]
      .flatMap(({ term }) => [term.from, term.until])
      .filter(Number.isFinite)
      .sort((a, b) => a - b);
  }

  /** Throws a KeysFileError that lists every fault: ids or hashes that come twice, keys that cannot be used. */
  static from(file: KeysFile): KeyRing {
    const faults = [
      ...repeats("signing_keys", "key_id", file.signing_keys),
      ...repeats("api_keys", "id", file.api_keys),
      ...repeats("api_keys", "sha256", file.api_keys),
    ];
    const signing = new Map<string, Termed<SigningEntry>>();
    for (const [index, record] of file.signing_keys.entries()) {
      try {
        const key = importVerifyKey(record);
        signing.set(record.key_id, {
          keyId: record.key_id,
          key,
          mayAct: allowance(record.agents),
          term: termOf(record),
        });
      } catch (error) {
        faults.push(`signing_keys.${index}: ${(error as Error).message}`);
      }
    }
    if (faults.length > 0) throw new KeysFileError(faults);

    const api = new Map(
      file.api_keys.map((record) => [
        record.sha256,
        {
          id: record.id,
          mayAct: allowance(record.agents),
          term: termOf(record),
          digest: Buffer.from(record.sha256, "hex"),
        },
      ]),
    );
    return new KeyRing(signing, api);
  }

  /** The key, or undefined when it is unknown, not yet valid or expired. */
  signingKey(keyId: string, now: number): SigningEntry | undefined {
    const entry = this.#signing.get(keyId);
    return entry !== undefined && inForce(entry.term, now) ? entry : undefined;
  }

  /** True when the key is in force and may sign for the agent. */
  mayAct(keyId: string, agent: string, now: number): boolean {
    return this.signingKey(keyId, now)?.mayAct(agent) ?? false;
  }

  /** The API key of this text, or undefined when it is unknown, not yet valid or expired. */
  apiKey(text: string, now: number): ApiKeyEntry | undefined {
    const hash = hashApiKey(text);
    const entry = this.#api.get(hash);
    if (entry === undefined || !timingSafeEqual(entry.digest, Buffer.from(hash, "hex"))) return undefined;
    return inForce(entry.term, now) ? entry : undefined;
  }

  /** Epoch ms at which the next key after `after` comes into force or expires; Infinity when none does. */
  nextTransition(after: number): number {
    return this.#transitions.find((time) => time > after) ?? Number.POSITIVE_INFINITY;
  }
}

function repeats<Name extends string>(list: string, name: Name, records: readonly Record<Name, string>[]): string[] {
  const seen = new Set<string>();
  return records.flatMap((record, index) => {
    const isRepeat = seen.has(record[name]);
    seen.add(record[name]);
    return isRepeat ? [`${list}.${index}.${name}: stands in the list twice`] : [];
  });
}

/** `agent://bob.*` holds every `agent://bob.<more>`, and not `agent://bob` itself. */
function allowance(agents: readonly string[]): (agent: string) => boolean {
  const exact = new Set(agents.filter((agent) => !agent.endsWith(".*")));
  const prefixes = agents.filter((agent) => agent.endsWith(".*")).map((agent) => agent.slice(0, -1));
  return (agent) => exact.has(agent) || prefixes.some((prefix) => agent.startsWith(prefix));
}

function termOf(record: { readonly not_before?: string | undefined; readonly expires_at?: string | undefined }): Term {
  return {
    from: record.not_before === undefined ? Number.NEGATIVE_INFINITY : Date.parse(record.not_before),
    until: record.expires_at === undefined ? Number.POSITIVE_INFINITY : Date.parse(record.expires_at),
  };
}

function inForce(term: Term, now: number): boolean {
  return term.from <= now && now < term.until;
}
