import { chmod, mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ApiKeyRecord, KeysFile, SigningKeyRecord } from "relay-protocol/contract/keys-file.ts";
import { ANY_AGENT } from "relay-protocol/wire/credential.ts";
import { type AgentKeys, issue } from "../keys/issue.ts";
import { type IssuerFile, makeIssuerFile, readIssuerFile, withIssuer, withoutIssuer } from "../keys/issuers.ts";
import { makeApiKey } from "../keys/make.ts";
import { editKeys, readKeys, writePrivateFile } from "../keys/store.ts";
import {
  AGENTS,
  type DevelopmentAgent,
  type DevelopmentAgents,
  type DevelopmentSecrets,
  developmentAgentsFile,
  developmentKeyFile,
  NAMES,
  type Name,
  newSecrets,
  storedSecrets,
} from "./dev-agents.ts";
import { isInUse } from "./folder-use.ts";
import { withLock } from "./lock-file.mjs";
import { replaceFile } from "./replace-file.ts";

/** Where `npm start` keeps its development keys; not in git. */
export const DEVELOPMENT_FOLDER = fileURLToPath(new URL("../../.local", import.meta.url));
export const DEVELOPMENT_ISSUER = "development";
const LOCK_TIMEOUT_MS = 10_000;

const API_KEY = { id: "dev-alice-gateway", agents: [AGENTS.alice, `${AGENTS.alice}.*`] };
const KEY_IDS: Readonly<Record<Name, string>> = { alice: "dev-alice", bob: "dev-bob" };
/** It speaks for the agents of `npm start`, and for all that no other key or issuer speaks for. */
const ISSUED_AGENTS = [AGENTS.alice, `${AGENTS.alice}.*`, AGENTS.bob, ANY_AGENT];
const CREDENTIAL_DAYS = 30;
const IN_USE =
  "npm start runs on the development keys of this folder, and would lose its agents: stop it first, or name a keys file of your own in RELAY_KEYS_FILE.";

/** How the relay comes to know the agents' keys: an issuer in the same folder vouches for them, or the keys file lists them. */
export type Knowledge = "issued" | "listed";

/** The keys file of a development folder. */
export function developmentKeysFile(folder: string): string {
  return join(folder, "keys.json");
}

/** The private file of the development issuer. */
export function developmentIssuerFile(folder: string): string {
  return join(folder, "dev-issuer.json");
}

/**
 * The development keys of `npm start`: made at the first start, and with new credentials from each. Folder 0700, files 0600.
 * Keys and issuers that `npm run keys` added to the same file stay.
 * @throws {Error} when the keys are to be listed while a relay runs on the credentials: it would let its agents go.
 */
export async function developmentKeys(folder: string, knowledge: Knowledge): Promise<DevelopmentAgents> {
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o700);
  return await withLock(join(folder, "dev-keys.lock"), LOCK_TIMEOUT_MS, async () => {
    if (knowledge === "listed" && (await isInUse(folder))) throw new Error(IN_USE);
    const issuer = knowledge === "issued" ? await issuerIn(folder) : undefined;
    const secrets = await secretsIn(folder, issuer);
    const keys = await readKeys(developmentKeysFile(folder));
    const [alice, bob] = NAMES.map((name) => agentOf(name, secrets[name], keys, issuer)) as [
      DevelopmentAgent,
      DevelopmentAgent,
    ];
    const agents = { api_key: secrets.api_key, alice, bob };
    await replaceFile(developmentAgentsFile(folder), textOf(agents));
    for (const name of NAMES) await replaceFile(developmentKeyFile(folder, name), textOf(agents[name]));
    return agents;
  });
}

async function issuerIn(folder: string): Promise<IssuerFile> {
  const file = developmentIssuerFile(folder);
  if (!(await exists(file))) await writePrivateFile(file, makeIssuerFile(DEVELOPMENT_ISSUER));
  return await readIssuerFile(file);
}

/** The secrets, once the keys file says what belongs to them. */
async function secretsIn(folder: string, issuer: IssuerFile | undefined): Promise<DevelopmentSecrets> {
  const keysFile = developmentKeysFile(folder);
  const stored = (await exists(keysFile)) ? await storedSecrets(folder) : undefined;
  const made = stored === undefined ? makeApiKey(API_KEY) : undefined;
  const secrets = stored ?? newSecrets(made?.apiKey as string);
  await editKeys(keysFile, (keys) => withDevelopment(keys, secrets, made?.record, issuer));
  return secrets;
}

/**
 * What others have in the keys file stays theirs: whoever lists a key for an agent of ours speaks for it too, or alone. What
 * the development issuer revoked stays revoked, also while it is left out.
 */
function withDevelopment(
  keys: KeysFile,
  secrets: DevelopmentSecrets,
  apiKey: ApiKeyRecord | undefined,
  issuer: IssuerFile | undefined,
): KeysFile {
  const signingKeys = keys.signing_keys.filter(({ key_id }) => !Object.values(KEY_IDS).includes(key_id));
  const others = withoutIssuer(keys, DEVELOPMENT_ISSUER, Date.now());
  const taken = new Set([...signingKeys, ...others.issuers].flatMap(({ agents }) => agents));
  const agents = issuer === undefined ? [] : ISSUED_AGENTS.filter((pattern) => !taken.has(pattern));
  const listed = NAMES.filter((name) => !agents.includes(AGENTS[name]));
  const changed = {
    ...others,
    api_keys: apiKey === undefined ? keys.api_keys : [...keys.api_keys.filter(({ id }) => id !== API_KEY.id), apiKey],
    signing_keys: [...signingKeys, ...listed.map((name) => listedKey(name, secrets[name]))],
  };
  if (issuer === undefined || agents.length === 0) return changed;
  return withIssuer(changed, { issuer: issuer.issuer, keys: [{ public_key: issuer.public_key }], agents });
}

function listedKey(name: Name, { signing }: AgentKeys): SigningKeyRecord {
  return { key_id: KEY_IDS[name], alg: "ed25519", public_key: signing.publicJwk.x, agents: [AGENTS[name]] };
}

/** The key file of an agent whose key the keys file lists, or else the issuer vouches for. */
function agentOf(name: Name, own: AgentKeys, keys: KeysFile, issuer: IssuerFile | undefined): DevelopmentAgent {
  const agent = AGENTS[name];
  const isListed = keys.signing_keys.some(({ key_id }) => key_id === KEY_IDS[name]);
  if (issuer !== undefined && !isListed) {
    return issue(issuer, keys, { agent, days: CREDENTIAL_DAYS }, own, Date.now()).keyFile;
  }
  const [private_key, sealing_key] = [own.signing.privateKey, own.sealing.privateKey];
  return { agent_id: agent, key_id: KEY_IDS[name], alg: "ed25519", private_key, sealing_key };
}

async function exists(file: string): Promise<boolean> {
  return await stat(file).then(
    () => true,
    () => false,
  );
}

function textOf(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
