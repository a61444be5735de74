import { rm } from "node:fs/promises";
import type { Readable } from "node:stream";
import { ANY_AGENT, ISSUER_PATTERN } from "protocol/contract/credential.ts";
import type { IssuerRecord, KeysFile } from "protocol/contract/keys-file.ts";
import { thumbprintOf } from "protocol/credentials/public-jwk.ts";
import { expiryOf, type Options, onlyOne, UsageError } from "./command-line.ts";
import { defaultIssuerFile, makeIssuerFile } from "./issuer-file.ts";
import { issuerNamed, withIssuer, withKeys, withoutIssuer, withoutKey } from "./issuer-records.ts";
import { writePrivateFile } from "./private-file.ts";
import { readIssuerRecord } from "./record.ts";
import { editKeys } from "./store.ts";

/** `new-issuer`: an issuer, or one more key of a known one. */
export async function newIssuer(keysFile: string, options: Options): Promise<string> {
  const { issuer = "", agents } = options;
  if (!ISSUER_PATTERN.test(issuer)) throw new UsageError("--issuer is required: a name, such as --issuer acme.");
  const expiresAt = expiryOf(options);
  const privateFile = makeIssuerFile(issuer);
  const publicKey = privateFile.public_key;
  const record = { public_key: publicKey, ...(expiresAt !== undefined && { expires_at: expiresAt }) };
  const out = options.out ?? defaultIssuerFile(keysFile);

  await writePrivateFile(out, privateFile);
  try {
    await editKeys(keysFile, (keys) => admitted(keys, issuer, [record], agents));
  } catch (error) {
    await rm(out);
    throw error;
  }
  return `Issuer ${issuer} has the key ${thumbprintOf(publicKey, "Ed25519")}, until ${expiresAt ?? "removed"}.
Its private half is in ${out}. Who has it can speak for every agent of the issuer: keep it yourself, on no server.
A running relay accepts what it issues within 5 seconds. Issue: npm run keys -- new --agent agent://<name>
`;
}

/** `add-issuer`: admits an organisation, or takes in the new keys of a known one. */
export async function addIssuer(
  keysFile: string,
  files: string[],
  agents: string[] | undefined,
  stdin: Readable,
): Promise<string> {
  const [file = "-"] = files;
  if (files.length > 1) throw new UsageError("add-issuer takes one file at most.");
  const { issuer, keys: added, agents: wanted } = await readIssuerRecord(file, stdin);
  let [speaksFor, revocations]: [string[], number] = [[], 0];
  await editKeys(keysFile, (keys) => {
    const isKnown = keys.issuers.some((record) => record.issuer === issuer);
    const changed = admitted(keys, issuer, added, isKnown ? agents : (agents ?? claimed(wanted)));
    const { agents: all, revoked } = issuerNamed(changed.issuers, issuer);
    [speaksFor, revocations] = [all, revoked.length];
    return changed;
  });
  const still = revocations === 0 ? "" : `What it revoked stays revoked (${revocations}; list shows them).\n`;
  return `${issuer} may issue credentials for ${speaksFor.join(", ")}. A running relay accepts them within 5 seconds.\n${still}`;
}

/** `remove-issuer`: all of it, or one of its keys. */
export async function removeIssuer(keysFile: string, names: string[], key: string | undefined): Promise<string> {
  const name = onlyOne(names, "remove-issuer takes exactly one name");
  await editKeys(keysFile, (keys) => {
    if (key !== undefined) return { ...keys, issuers: withoutKey(keys.issuers, name, key) };
    issuerNamed(keys.issuers, name);
    return withoutIssuer(keys, name, Date.now());
  });
  const what = key === undefined ? `issuer ${name}` : `the key ${key} of issuer ${name}`;
  return `Removed ${what}. A running relay releases the agents that it vouched for within 5 seconds.
The keys file keeps what it revoked: should it be admitted again, that stays revoked.
`;
}

/** What an issuer may speak for is the operator's decision: it is set once, and no further key changes it. */
function admitted(keys: KeysFile, issuer: string, added: IssuerRecord["keys"], agents: string[] | undefined): KeysFile {
  if (!keys.issuers.some((record) => record.issuer === issuer)) {
    if (agents === undefined) throw new UsageError("--agents is required: --agents 'agent://acme.*', or '*' for all.");
    return withIssuer(keys, { issuer, keys: added, agents });
  }
  if (agents !== undefined) throw new Error(`Issuer ${issuer} is known, with its agents: leave --agents out.`);
  return { ...keys, issuers: withKeys(keys.issuers, issuer, added) };
}

/** The agents of a record that somebody else wrote. All agents are never given away by what a file says. */
function claimed(agents: string[]): string[] {
  if (!agents.includes(ANY_AGENT)) return agents;
  throw new Error("The record asks for all agents. Say which it may speak for: --agents 'agent://acme.*', or '*'.");
}
