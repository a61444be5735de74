import { rm } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import type { IssuerRecord, KeysFile } from "relay-protocol/contract/keys-file.ts";
import { AgentHolders, thumbprintOf } from "relay-protocol/signing/credentials.ts";
import { ANY_AGENT, ISSUER_PATTERN } from "relay-protocol/wire/credential.ts";
import { AGENT_ID_PATTERN } from "relay-protocol/wire/ids.ts";
import { CREDENTIAL_LIMITS } from "relay-protocol/wire/limits.ts";
import { expiryOf, type Options, onlyOne, UsageError } from "./command-line.ts";
import type { Outcome } from "./in-force.ts";
import { ofIssuerKeys, ofRevocation } from "./in-force.ts";
import {
  defaultIssuerFile,
  issuerNamed,
  makeIssuerFile,
  withIssuer,
  withKeys,
  withoutIssuer,
  withoutKey,
  withRevocation,
} from "./issuers.ts";
import { editKeys, type Given, readIssuerRecord, writePrivateFile } from "./store.ts";

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

/** `revoke --agent`: the credentials that an issuer signed for an agent, or for any, before a time. */
export async function revokeIssued(keysFile: string, options: Options): Promise<Outcome> {
  const agent = agentOf(options);
  const now = Date.now();
  const beforeMs = timeOf(options["issued-before"], now);
  const before = new Date(beforeMs).toISOString();
  let issuer = "";
  const keys = await editKeys(keysFile, (keys) => {
    issuer = issuerOf(keys, agent, options.issuer);
    return { ...keys, issuers: withRevocation(keys.issuers, issuer, { agent, issued_before: before }, now) };
  });
  // From then on a relay takes a credential that is dated as the revocation asks; it is less than a second.
  await wait(Math.max(0, beforeMs - CREDENTIAL_LIMITS.maxAheadMs - Date.now()));
  const whose = agent === ANY_AGENT ? `all agents of ${issuer}` : `${agent} of ${issuer}`;
  const text = `Revoked credentials for ${whose}, as far as they were issued before ${before}.
${beforeMs > now ? NEXT : ""}`;
  return { text, change: ofRevocation(keys, issuer, agent, beforeMs) };
}

function agentOf({ agent = [] }: Options): string {
  const [id = "", ...more] = agent;
  if (more.length === 0 && (id === ANY_AGENT || AGENT_ID_PATTERN.test(id))) return id;
  throw new UsageError("--agent takes one agent id, or '*' for all agents of the issuer.");
}

const AHEAD_SECONDS = CREDENTIAL_LIMITS.maxAheadMs / 1000;

const NEXT = `That covers issuers whose clocks are up to ${AHEAD_SECONDS} seconds ahead, as a relay takes their credentials. To issue anew:
npm run keys -- new, at once, which dates the credential accordingly; with other tools wait ${AHEAD_SECONDS + 1} seconds.
`;

/** What a relay takes at this time, `iat` ahead of it by as much as may be, in whole seconds, is all revoked. Unix ms. */
function timeOf(text: string | undefined, now: number): number {
  if (text === "now") return (Math.floor((now + CREDENTIAL_LIMITS.maxAheadMs) / 1000) + 1) * 1000;
  const time = Date.parse(text ?? "");
  if (time <= now) return time;
  throw new UsageError("--issued-before is required: now, or a time that is past, such as 2026-11-01T00:00:00Z.");
}

/** Only who speaks for an agent has credentials to revoke: under another name the right ones would stay in force. */
function issuerOf({ signing_keys, issuers }: KeysFile, agent: string, name: string | undefined): string {
  const holders = new AgentHolders(signing_keys, issuers);
  const named = name === undefined ? issuers : [issuerNamed(issuers, name)];
  const candidates = named.filter(({ issuer }) => agent === ANY_AGENT || holders.isOfIssuer(agent, issuer));
  const [only, ...more] = candidates;
  if (only === undefined) throw new Error(`${name ?? "No issuer"} speaks for ${agent}; list shows who does.`);
  if (more.length > 0) throw new UsageError("--issuer is required: there is more than one.");
  return only.issuer;
}
