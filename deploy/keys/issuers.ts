import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { IssuerRecord, KeysFile } from "relay-protocol/contract/keys-file.ts";
import { decodeBase64url, ED25519_BYTES, privateKeyOfSeed, publicKeyText } from "relay-protocol/signing/algorithms.ts";
import { thumbprintOf } from "relay-protocol/signing/credentials.ts";
import { ISSUER_PATTERN } from "relay-protocol/wire/credential.ts";
import { parseJson } from "relay-protocol/wire/json.ts";
import { CREDENTIAL_LIMITS } from "relay-protocol/wire/limits.ts";
import { textIn } from "relay-runtime/files.ts";
import { z } from "zod";
import { newOkpKey } from "./make.ts";
import { fileError } from "./store.ts";

/** Changes of the issuers of a keys file; pure. Whether the whole is valid is the relay's to say (store.ts). */

type Issuers = readonly IssuerRecord[];
type IssuerKey = IssuerRecord["keys"][number];
type Revocation = IssuerRecord["revoked"][number];

/** @throws {Error} when there is none of this name. */
export function issuerNamed(issuers: Issuers, name: string): IssuerRecord {
  const record = issuers.find(({ issuer }) => issuer === name);
  if (record === undefined) throw new Error(`There is no issuer ${name}; list shows them.`);
  return record;
}

/** An issuer that was removed has what it revoked before: otherwise that would hold again. */
export function withIssuer(keys: KeysFile, admitted: Omit<IssuerRecord, "revoked">): KeysFile {
  const removed = keys.removed_issuers ?? [];
  const { revoked = [] } = removed.find(({ issuer }) => issuer === admitted.issuer) ?? {};
  return {
    ...keys,
    issuers: [...keys.issuers, { ...admitted, revoked }],
    removed_issuers: noneAsAbsent(removed.filter(({ issuer }) => issuer !== admitted.issuer)),
  };
}

/** Its revocations stay, unless all that they revoke has expired. Without such an issuer nothing changes. */
export function withoutIssuer(keys: KeysFile, name: string, now: number): KeysFile {
  const record = keys.issuers.find(({ issuer }) => issuer === name);
  if (record === undefined) return keys;
  const revoked = record.revoked.filter((entry) => isNeeded(entry, now));
  const removed = keys.removed_issuers ?? [];
  return {
    ...keys,
    issuers: keys.issuers.filter((other) => other !== record),
    removed_issuers: noneAsAbsent(revoked.length === 0 ? removed : [...removed, { issuer: name, revoked }]),
  };
}

/** A known issuer gets the keys that it does not have yet, and keeps its agents and revocations. */
export function withKeys(issuers: Issuers, name: string, keys: readonly IssuerKey[]): IssuerRecord[] {
  const record = issuerNamed(issuers, name);
  const known = new Set(record.keys.map(({ public_key }) => public_key));
  const added = keys.filter(({ public_key }) => !known.has(public_key));
  if (added.length === 0) throw new Error(`Issuer ${name} has these keys already. Nothing was changed.`);
  return replaced(issuers, { ...record, keys: [...record.keys, ...added] });
}

/** @param thumbprint of the key. @throws {Error} when the issuer has no such key, or no other. */
export function withoutKey(issuers: Issuers, name: string, thumbprint: string): IssuerRecord[] {
  const record = issuerNamed(issuers, name);
  const left = record.keys.filter(({ public_key }) => thumbprintOf(public_key, "Ed25519") !== thumbprint);
  if (left.length === record.keys.length) throw new Error(`Issuer ${name} has no key ${thumbprint}; list shows them.`);
  if (left.length === 0) throw new Error(`Issuer ${name} has no other key; remove-issuer ${name} removes it.`);
  return replaced(issuers, { ...record, keys: left });
}

/** The latest revocation of each agent stays, unless all that it revokes has expired. */
export function withRevocation(issuers: Issuers, name: string, revocation: Revocation, now: number): IssuerRecord[] {
  const record = issuerNamed(issuers, name);
  const latest = new Map<string, Revocation>();
  for (const entry of [...record.revoked, revocation]) {
    const isLater = timeOf(entry) >= timeOf(latest.get(entry.agent));
    if (isLater && isNeeded(entry, now)) latest.set(entry.agent, entry);
  }
  return replaced(issuers, { ...record, revoked: [...latest.values()] });
}

/** False when every credential of that time has expired. */
function isNeeded(revocation: Revocation, now: number): boolean {
  return timeOf(revocation) > now - CREDENTIAL_LIMITS.maxLifeMs;
}

function noneAsAbsent<T>(list: T[]): T[] | undefined {
  return list.length === 0 ? undefined : list;
}

function timeOf(revocation: Revocation | undefined): number {
  return revocation === undefined ? Number.NEGATIVE_INFINITY : Date.parse(revocation.issued_before);
}

function replaced(issuers: Issuers, record: IssuerRecord): IssuerRecord[] {
  return issuers.map((other) => (other.issuer === record.issuer ? record : other));
}

/** An issuer with its private key, a 32-byte seed in base64url. It lies with the operator, and on no server. */
const IssuerFile = z
  .strictObject({
    issuer: z.string().regex(ISSUER_PATTERN),
    alg: z.literal("ed25519"),
    private_key: z.string().refine((text) => decodeBase64url(text)?.length === ED25519_BYTES.seed),
    public_key: z.string(),
    // As relay issuer new writes it.
    agents: z.array(z.string()).optional(),
  })
  .refine(({ private_key, public_key }) => publicKeyOf(private_key) === public_key);
export type IssuerFile = z.infer<typeof IssuerFile>;

/** A new issuer. */
export function makeIssuerFile(issuer: string): IssuerFile {
  const { privateKey, publicJwk } = newOkpKey("Ed25519");
  return { issuer, alg: "ed25519", private_key: privateKey, public_key: publicJwk.x };
}

/** Where `new-issuer` writes and `new` reads unless told otherwise. */
export function defaultIssuerFile(keysFile: string): string {
  return join(dirname(keysFile), "issuer.json");
}

/** @throws {Error} that says how an issuer is made where there is none, and shows nothing of the file. */
export async function readIssuerFile(file: string): Promise<IssuerFile> {
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw error.code === "ENOENT" ? new Error(missing(file)) : fileError(file, "read", error);
  });
  const result = IssuerFile.safeParse(parsed(textIn(bytes, file)));
  if (result.success) return result.data;
  throw new Error(`${file} is not an issuer file, as new-issuer writes it.`);
}

/** undefined where the text is not JSON. */
function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

function publicKeyOf(privateKey: string): string | undefined {
  const seed = decodeBase64url(privateKey);
  return seed?.length === ED25519_BYTES.seed ? publicKeyText(privateKeyOfSeed(seed)) : undefined;
}

function missing(file: string): string {
  return `There is no issuer at ${file}. Do one of these:

  npm start                                                  without RELAY_KEYS_FILE: has an issuer for development
  npm run keys -- new-issuer --issuer <name> --agents '*'    makes an issuer
  npm run keys -- new --listed --agent agent://<name>        lists a key, without an issuer

--issuer-file names an issuer that is elsewhere.`;
}
