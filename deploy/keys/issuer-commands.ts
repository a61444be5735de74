import { rm } from "node:fs/promises";
import type { IssuerRecord, KeysFile } from "relay-protocol/contract/keys-file.ts";
import { thumbprintOf } from "relay-protocol/signing/credentials.ts";
import { ANY_AGENT, ISSUER_PATTERN } from "relay-protocol/wire/credential.ts";
import { expiryOf, type Options, onlyOne, UsageError } from "./command-line.ts";
import { defaultIssuerFile, makeIssuerFile } from "./issuer-file.ts";
import { issuerNamed, withIssuer, withKeys, withoutIssuer, withoutKey } from "./issuer-records.ts";
import type { Outcome } from "./outcome.ts";
import { writePrivateFile } from "./private-file.ts";
import { ofIssuerKeys } from "./questions.ts";
import { type Given, readIssuerRecord } from "./record.ts";
import { editKeys } from "./store.ts";

/** `new-issuer`: an issuer, or one more key of a known one. */
export async function newIssuer(keysFile: string, options: Options): Promise<Outcome> {
  const { issuer = "", agents } = options;
  if (!ISSUER_PATTERN.test(issuer)) throw new UsageError("--issuer is required: a name, such as --issuer acme.");
  const expiresAt = expiryOf(options);
  const privateFile = makeIssuerFile(issuer);
  const publicKey = privateFile.public_key;
  const record = { public_key: publicKey, ...(expiresAt !== undefined && { expires_at: expiresAt }) };
  const out = options.out ?? defaultIssuerFile(keysFile);

  await writePrivateFile(out, privateFile);
  let keys: KeysFile;
  try {
    keys = await editKeys(keysFile, (keys) => admitted(keys, issuer, [record], agents));
  } catch (error) {
    await rm(out);
    throw error;
  }
  const text = `Issuer ${issuer} has the key ${thumbprintOf(publicKey, "Ed25519")}, until ${expiresAt ?? "removed"}.
Its private half is in ${out}. Who has it can speak for every agent of the issuer: keep it yourself, on no server.
Issue: npm run keys -- new --agent agent://<name>${options.out === undefined ? "" : ` --issuer-file ${out}`}
`;
  return { text, change: ofIssuerKeys(keys, issuer, [publicKey], "accept") };
}

/** `add-issuer`: admits an organisation, or takes in the new keys of a known one. */
export async function addIssuer(
  keysFile: string,
  { text, file }: Given,
  agents: string[] | undefined,
): Promise<Outcome> {
  const { issuer, keys: added, agents: wanted } = readIssuerRecord(text, file);
  let former: string[] = [];
  const keys = await editKeys(keysFile, (keys) => {
    const isKnown = keys.issuers.some((record) => record.issuer === issuer);
    former = isKnown ? publicKeysOf(issuerNamed(keys.issuers, issuer)) : [];
    return admitted(keys, issuer, added, isKnown ? agents : (agents ?? claimed(wanted)));
  });
  const record = issuerNamed(keys.issuers, issuer);
  const { revoked } = record;
  const still = revoked.length === 0 ? "" : `What it revoked stays revoked (${revoked.length}; list shows them).\n`;
  const newKeys = publicKeysOf(record).filter((key) => !former.includes(key));
  return {
    text: `${issuer} may issue credentials for ${record.agents.join(", ")}.\n${still}`,
    change: ofIssuerKeys(keys, issuer, newKeys, "accept"),
  };
}

/** `remove-issuer`: all of it, or one of its keys. */
export async function removeIssuer(keysFile: string, names: string[], key: string | undefined): Promise<Outcome> {
  const name = onlyOne(names, "remove-issuer takes exactly one name");
  let before = {} as KeysFile;
  await editKeys(keysFile, (keys) => {
    before = keys;
    if (key !== undefined) return { ...keys, issuers: withoutKey(keys.issuers, name, key) };
    issuerNamed(keys.issuers, name);
    return withoutIssuer(keys, name, Date.now());
  });
  const what = key === undefined ? `issuer ${name}` : `the key ${key} of issuer ${name}`;
  const had = publicKeysOf(issuerNamed(before.issuers, name));
  const lost = key === undefined ? had : had.filter((one) => thumbprintOf(one, "Ed25519") === key);
  return {
    text: `Removed ${what}. A relay releases the agents that it vouched for as soon as it has the change.
The keys file keeps what it revoked: should it be admitted again, that stays revoked.
`,
    change: ofIssuerKeys(before, name, lost, "refuse"),
  };
}

function publicKeysOf({ keys }: IssuerRecord): string[] {
  return keys.map(({ public_key }) => public_key);
}

/** What an issuer may speak for is the operator's decision: it is set once, and no further key changes it. */
function admitted(keys: KeysFile, issuer: string, added: IssuerRecord["keys"], agents: string[] | undefined): KeysFile {
  if (!keys.issuers.some((record) => record.issuer === issuer)) {
    if (agents === undefined) throw new UsageError("--agents is required: --agents 'agent://acme.*', or '*' for all.");
    refuseAgentsOfOthers(keys.issuers, agents);
    return withIssuer(keys, { issuer, keys: added, agents });
  }
  if (agents !== undefined) throw new Error(`Issuer ${issuer} is known, with its agents: leave --agents out.`);
  return { ...keys, issuers: withKeys(keys.issuers, issuer, added) };
}

/** One pattern has one holder: the relay would refuse the keys file, without a name. */
function refuseAgentsOfOthers(issuers: readonly IssuerRecord[], agents: readonly string[]): void {
  for (const { issuer, agents: held } of issuers) {
    const [both] = agents.filter((agent) => held.includes(agent));
    if (both === undefined) continue;
    throw new Error(
      `Issuer ${issuer} speaks for '${both}' already. Name other --agents, or first: npm run keys -- remove-issuer ${issuer}`,
    );
  }
}

/** The agents of a record that somebody else wrote. All agents are never given away by what a file says. */
function claimed(agents: string[]): string[] {
  if (!agents.includes(ANY_AGENT)) return agents;
  throw new Error("The record asks for all agents. Say which it may speak for: --agents 'agent://acme.*', or '*'.");
}
