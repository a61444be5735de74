import { hash } from "node:crypto";
import type { IssuerRecord, KeysFile, SigningKeyRecord } from "../contract/keys-file.ts";
import { ANY_AGENT } from "../wire/credential.ts";
import { importVerifyKey, type VerifyKey } from "./algorithms.ts";
import { hashApiKey } from "./api-key.ts";
import { AgentHolders, Issuers, isPublicKey, isValidAt, type Validity, validityOf } from "./credentials.ts";

/** A signing key that was valid at its look-up. */
export interface SigningEntry {
  readonly keyId: string;
  /** Identity of the key. Another public key or secret under the same `keyId` has another identity. */
  readonly identity: string;
  readonly key: VerifyKey;
  /** True if the key may sign for agents that its record does not list one by one. */
  readonly hasNamespace: boolean;
  /** Issuer of the key's credential. Undefined for a listed key. */
  readonly issuer?: string;
  /** True if the key may sign for this agent id. */
  mayAct(agent: string): boolean;
}

/** An API key that was valid at its look-up. `id` is its name in the keys file, never the key. */
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

type WithValidity<T> = T & { readonly validity: Validity };

/** Keys of one version of the keys file. Immutable. Source: docs/protocol.md#keys. */
export class KeyRing {
  readonly #signing: ReadonlyMap<string, WithValidity<SigningEntry>>;
  readonly #api: ReadonlyMap<string, WithValidity<ApiKeyEntry>>;
  readonly #transitions: readonly number[];
  readonly #file: KeysFile;
  /** Issuers of credentials. */
  readonly issuers: Issuers;

  private constructor(
    signing: Map<string, WithValidity<SigningEntry>>,
    api: Map<string, WithValidity<ApiKeyEntry>>,
    issuers: Issuers,
    file: KeysFile,
  ) {
    this.#file = file;
    this.#signing = signing;
    this.#api = api;
    this.issuers = issuers;
    this.#transitions = [...signing.values(), ...api.values()]
      .flatMap(({ validity }) => [validity.from, validity.until])
      .concat(issuers.transitions)
      .filter(Number.isFinite)
      .sort((a, b) => a - b);
  }

  /** @throws KeysFileError with every problem: duplicates, unusable keys, and agents with two holders. */
  static from(file: KeysFile): KeyRing {
    const holders = new AgentHolders(file.signing_keys, file.issuers);
    const problems = [
      ...duplicates("signing_keys", "key_id", file.signing_keys),
      ...duplicates("api_keys", "id", file.api_keys),
      ...duplicates("api_keys", "sha256", file.api_keys),
      ...duplicates("issuers", "issuer", file.issuers),
      ...readmittedProblems(file),
      ...issuerKeyProblems(file.issuers),
      ...holders.problems,
    ];
    const signing = new Map<string, WithValidity<SigningEntry>>();
    for (const [index, record] of file.signing_keys.entries()) {
      const entry = entryOf(record);
      if (typeof entry === "string") problems.push(`signing_keys.${index}: ${entry}`);
      else signing.set(record.key_id, file.issuers.length === 0 ? entry : boundedBy(holders, entry));
    }
    if (problems.length > 0) throw new KeysFileError(problems);

    const api = new Map(
      file.api_keys.map((record) => [
        record.sha256,
        {
          id: record.id,
          mayAct: agentMatcher(record.agents),
          validity: validityOf(record),
        },
      ]),
    );
    return new KeyRing(signing, api, new Issuers(file.issuers, holders), file);
  }

  /** @returns undefined if the key is unknown, not valid yet, or expired. */
  signingKey(keyId: string, now: number): SigningEntry | undefined {
    const entry = this.#signing.get(keyId);
    return entry !== undefined && isValidAt(entry.validity, now) ? entry : undefined;
  }

  /** True if the key still has its id, is valid, and may sign for the agent. */
  mayAct(identity: string, agent: string, now: number): boolean {
    const entry = this.signingKey(keyIdOf(identity), now);
    return entry !== undefined && entry.identity === identity && entry.mayAct(agent);
  }

  /** True if the signer's key, or the issuer of its credential, may speak for an agent. */
  speaksFor(
    signer: { readonly keyId: string; readonly issuer?: string | undefined },
    agent: string,
    now: number,
  ): boolean {
    const { keyId, issuer } = signer;
    if (issuer !== undefined) return this.issuers.speaksFor(issuer, agent);
    return this.signingKey(keyId, now)?.mayAct(agent) ?? false;
  }

  /** True if the key is valid and may sign for agents that its record does not list one by one. */
  hasNamespace(keyId: string, now: number): boolean {
    return this.signingKey(keyId, now)?.hasNamespace ?? false;
  }

  /**
   * Agents that a key's record lists one by one, without its namespaces.
   * @returns undefined if the key is unknown, not valid yet, or expired.
   */
  agentsOfKey(keyId: string, now: number): readonly string[] | undefined {
    if (this.signingKey(keyId, now) === undefined) return undefined;
    return this.#file.signing_keys.find(({ key_id }) => key_id === keyId)?.agents.filter(isAgent);
  }

  /**
   * Agents that an issuer's record lists one by one.
   * @returns undefined if the issuer is unknown, or if none of its keys is valid.
   */
  agentsOfIssuer(name: string, now: number): readonly string[] | undefined {
    const record = this.issuers.records.find(({ issuer }) => issuer === name);
    return record?.keys.some((key) => isValidAt(validityOf(key), now)) ? record.agents.filter(isAgent) : undefined;
  }

  /** Finds an API key by its text. @returns undefined if the key is unknown, not valid yet, or expired. */
  apiKey(text: string, now: number): ApiKeyEntry | undefined {
    const entry = this.#api.get(hashApiKey(text));
    return entry !== undefined && isValidAt(entry.validity, now) ? entry : undefined;
  }

  /** @param keyId of a gateway's key. */
  isRevokedGatewayKey(keyId: string): boolean {
    return this.#file.revoked_gateway_keys?.includes(keyId) ?? false;
  }

  /** Numbers of valid keys and of issuers, for the operator's log. */
  countsAt(now: number): { signing_keys: number; api_keys: number; issuers: number } {
    const validOf = (keys: ReadonlyMap<string, WithValidity<object>>) =>
      [...keys.values()].filter(({ validity }) => isValidAt(validity, now)).length;
    return {
      signing_keys: validOf(this.#signing),
      api_keys: validOf(this.#api),
      issuers: this.issuers.records.length,
    };
  }

  /** Changed records, by kind (`key`, `api`, `issuer`, `revoked_gateway_key`) and id. */
  changesSince(before: KeyRing): Record<"added" | "removed" | "changed", { kind: string; id: string }[]> {
    const [now, then] = [recordsIn(this.#file), recordsIn(before.#file)];
    const named = (names: Iterable<string>, fits: (name: string) => boolean) =>
      [...names].filter(fits).map((name) => ({ kind: name.split(" ")[0] as string, id: name.split(" ")[1] as string }));
    return {
      added: named(now.keys(), (name) => !then.has(name)),
      removed: named(then.keys(), (name) => !now.has(name)),
      changed: named(now.keys(), (name) => then.has(name) && then.get(name) !== now.get(name)),
    };
  }

  /** Unix ms of the next time after `after` at which a key becomes valid or expires. Infinity if there is none. */
  nextTransition(after: number): number {
    return this.#transitions.find((time) => time > after) ?? Number.POSITIVE_INFINITY;
  }
}

/** Text of each record by kind and id. */
function recordsIn({ signing_keys, api_keys, issuers, revoked_gateway_keys = [] }: KeysFile): Map<string, string> {
  return new Map([
    ...signing_keys.map((record) => [`key ${record.key_id}`, JSON.stringify(record)] as const),
    ...api_keys.map((record) => [`api ${record.id}`, JSON.stringify(record)] as const),
    ...issuers.map((record) => [`issuer ${record.issuer}`, JSON.stringify(record)] as const),
    ...revoked_gateway_keys.map((keyId) => [`revoked_gateway_key ${keyId}`, ""] as const),
  ]);
}

/** The entry of a record, or the reason why its key is unusable. */
function entryOf(record: SigningKeyRecord): WithValidity<SigningEntry> | string {
  try {
    return {
      keyId: record.key_id,
      identity: identityOf(record),
      key: importVerifyKey(record),
      hasNamespace: record.agents.some(isNamespace),
      mayAct: agentMatcher(record.agents),
      validity: validityOf(record),
    };
  } catch (error) {
    return (error as Error).message;
  }
}

/** A listed key may not act for an agent that a more specific pattern gives to an issuer. */
function boundedBy(holders: AgentHolders, entry: WithValidity<SigningEntry>): WithValidity<SigningEntry> {
  return { ...entry, mayAct: (agent) => entry.mayAct(agent) && holders.isOfListedKeys(agent) };
}

/** A public key belongs to one issuer only, once. So a signature under it names its issuer. */
function issuerKeyProblems(issuers: readonly IssuerRecord[]): string[] {
  const seen = new Set<string>();
  return issuers.flatMap(({ keys }, index) =>
    keys.flatMap(({ public_key }, place) => {
      const name = `issuers.${index}.keys.${place}.public_key`;
      const isDuplicate = seen.has(public_key);
      seen.add(public_key);
      if (isDuplicate) return [`${name}: occurs twice`];
      return isPublicKey(public_key) ? [] : [`${name}: cannot be used`];
    }),
  );
}

/**
 * Revocations count only in an issuer's own record. So an admitted issuer may not also be in `removed_issuers`: its
 * revocations there would have no effect.
 */
function readmittedProblems({ issuers, removed_issuers = [] }: KeysFile): string[] {
  const admitted = new Set(issuers.map(({ issuer }) => issuer));
  return removed_issuers.flatMap(({ issuer }, index) =>
    admitted.has(issuer) ? [`removed_issuers.${index}.issuer: is admitted; move its revocations there`] : [],
  );
}

/** No id contains a space, so `keyIdOf` finds its end. */
function identityOf(record: SigningKeyRecord): string {
  const material = record.alg === "ed25519" ? record.public_key : record.secret;
  return `${record.key_id} ${hash("sha256", `${record.alg} ${material}`, "base64url")}`;
}

/** Id of the key in the keys file. */
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

function isAgent(agents: string): boolean {
  return agents !== ANY_AGENT && !isNamespace(agents);
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
