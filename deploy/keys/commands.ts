import { randomBytes } from "node:crypto";
import { access, mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { isDeepStrictEqual } from "node:util";
import {
  GATEWAY_KEY_ID_PATTERN,
  GATEWAY_KEY_PREFIX,
  type IssuerRecord,
  type KeysFile,
  type SigningAlgorithm,
  type SigningKeyRecord,
} from "relay-protocol/contract/keys-file.ts";
import { thumbprintOf } from "relay-protocol/signing/credentials.ts";
import { CREDENTIAL_KEY_PREFIX } from "relay-protocol/wire/credential.ts";
import { CREDENTIAL_LIMITS } from "relay-protocol/wire/limits.ts";
import { textIn } from "relay-runtime/files.ts";
import {
  DEVELOPMENT_FOLDER,
  DEVELOPMENT_ISSUER,
  developmentIssuerFile,
  developmentKeysFile,
} from "../local/dev-keys.ts";
import type { Io } from "../local/io.ts";
import { expiryOf, type Options, oneAgentOf, onlyOne, parseCommandLine, UsageError, waitOf } from "./command-line.ts";
import { PAGES, USAGE } from "./help.ts";
import {
  type Outcome,
  ofCredential,
  ofKey,
  ofNewApiKey,
  ofRevokedApiKey,
  ofRevokedGatewayKey,
  untilInForce,
} from "./in-force.ts";
import { issue, newAgentKeys } from "./issue.ts";
import { addIssuer, newIssuer, removeIssuer, revokeIssued } from "./issuer-commands.ts";
import { defaultIssuerFile, readIssuerFile } from "./issuers.ts";
import { type KeyTerms, makeApiKey, makeEd25519Key, makeHmacKey } from "./make.ts";
import { editKeys, fileError, type Given, readKeys, readRecord, writePrivateFile } from "./store.ts";

const COMMANDS = "list add add-issuer remove-issuer revoke new new-issuer new-api-key".split(" ");
const ALGORITHMS: readonly SigningAlgorithm[] = ["ed25519", "hmac-sha256"];

/** Sentences, data that a script uses, or both. */
interface Said {
  readonly text?: string;
  readonly data?: string | undefined;
  /** What is in force after it, asked of a relay. @throws {NotInForceError} */
  readonly inForce?: () => Promise<string>;
}

/**
 * Runs one command of `npm run keys`.
 * @returns what to print: it may hold a secret that is shown once, and so comes before a relay is asked.
 * @throws {UsageError | Error} that says what to do; the keys file is then unchanged.
 */
export async function runKeysCommand(args: string[], { env, stdin }: Pick<Io, "env" | "stdin">): Promise<Said> {
  const { values, positionals } = parseCommandLine(args);
  const [command, ...rest] = positionals;
  if (values.help === true || command === undefined) return { data: PAGES.get(command ?? "") ?? USAGE };

  if (!COMMANDS.includes(command)) {
    throw new UsageError(`There is no command ${command}: there are ${COMMANDS.join(", ")}.`);
  }
  const keysFile = values.file ?? (env.RELAY_KEYS_FILE || (await keysFileOfNpmStart()));
  if (command === "list" && rest.length === 0) return { data: describe(await readKeys(keysFile), Date.now()) };
  const wait = waitOf(values, env);
  const { change, ...said } = await changeKeys(keysFile, command, rest, values, stdin);
  return { ...said, inForce: () => untilInForce(change, wait) };
}

async function changeKeys(
  keysFile: string,
  command: string,
  rest: string[],
  values: Options,
  stdin: Readable,
): Promise<Outcome> {
  if (command === "add") return await addRecord(keysFile, await textGiven(command, rest, stdin));
  if (command === "add-issuer") return await addIssuer(keysFile, await textGiven(command, rest, stdin), values.agents);
  if (command === "remove-issuer") return await removeIssuer(keysFile, rest, values.key);
  if (command === "revoke" && values.agent === undefined) return await revoke(keysFile, rest);
  if (rest.length > 0) throw new UsageError(`${command} takes no further arguments.`);
  if (command === "revoke") return await revokeIssued(keysFile, values);
  if (command === "new-issuer") return await newIssuer(keysFile, values);
  if (command === "new" && !isListed(values)) return await issueFor(keysFile, values);
  if (command === "new") return await addSigningKey(keysFile, termsOf(values), algorithmOf(values.alg));
  return await addApiKey(keysFile, termsOf(values));
}

/** What the file of a command holds; standard input without one, and for `-`. */
async function textGiven(command: string, files: readonly string[], stdin: Readable): Promise<Given> {
  const [file = "-"] = files;
  if (files.length > 1) throw new UsageError(`${command} takes one file at most.`);
  if (file === "-") return { text: textIn(await buffer(stdin), "Standard input") };
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw fileError(file, "read", error);
  });
  return { text: textIn(bytes, file), file };
}

/** Its folder is made where there is none. */
async function keysFileOfNpmStart(): Promise<string> {
  await mkdir(DEVELOPMENT_FOLDER, { recursive: true, mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    throw fileError(DEVELOPMENT_FOLDER, "written", error);
  });
  return developmentKeysFile(DEVELOPMENT_FOLDER);
}

/** The relay checks HMAC with the secret itself: such a key has to stand in the keys file. */
function isListed({ listed, alg }: Options): boolean {
  return listed === true || (alg !== undefined && algorithmOf(alg) === "hmac-sha256");
}

function termsOf(options: Options): KeyTerms {
  const [first] = options.agent ?? [];
  if (first === undefined) throw new UsageError("--agent is required: --agent agent://<name>.");
  if (options.days !== undefined) throw new UsageError("--days is for credentials; other keys have --expires-at.");
  return { id: options["key-id"] ?? nameFor(first), agents: [...new Set(options.agent)], expiresAt: expiryOf(options) };
}

function algorithmOf(name = "ed25519"): SigningAlgorithm {
  const algorithm = ALGORITHMS.find((candidate) => candidate === name);
  if (algorithm === undefined) throw new UsageError(`--alg must be one of ${ALGORITHMS.join(", ")}.`);
  return algorithm;
}

/** `alice-3f9a1c` for `agent://alice`: random, so that the id of a revoked key is never used again. */
function nameFor(agent: string): string {
  const name = agent.replace(/^agent:\/\//, "").replace(/\.\*$/, "");
  const id = `${name}-${randomBytes(3).toString("hex")}`;
  return isReserved(id) ? `agent-${id}` : id;
}

/** Of gateways' keys, and of keys with a credential. */
function isReserved(id: string): boolean {
  return id.startsWith(GATEWAY_KEY_PREFIX) || id.startsWith(CREDENTIAL_KEY_PREFIX);
}

async function addSigningKey(file: string, terms: KeyTerms, alg: SigningAlgorithm): Promise<Outcome> {
  if (isReserved(terms.id)) throw new UsageError("--key-id must not begin with gateway- or jkt-.");
  const { record, data } = alg === "ed25519" ? newEd25519(terms) : newHmac(terms);
  await editKeys(file, (keys) => {
    refuseExistingId(keys, terms.id);
    return { ...keys, signing_keys: [...keys.signing_keys, record] };
  });
  const handover = "Write it to a file that only the agent may read, for relay --key FILE.";
  const text = describeNew(`Signing key ${terms.id} (${alg})`, terms, handover);
  return { text, data, change: ofKey(record, "accept") };
}

function newEd25519(terms: KeyTerms) {
  const { record, privateKey } = makeEd25519Key(terms);
  return { record, data: keyFileOf(terms, { alg: record.alg, private_key: privateKey }) };
}

function newHmac(terms: KeyTerms) {
  const { record, secret } = makeHmacKey(terms);
  return { record, data: keyFileOf(terms, { alg: record.alg, secret }) };
}

/** What `relay --key` reads. Of a namespace the file names one agent, which its user may replace by another of it. */
function keyFileOf({ id, agents }: KeyTerms, key: object): string {
  const agent = agents.find((one) => !one.endsWith(".*")) ?? agents[0]?.replace(/\*$/, "1");
  return `${JSON.stringify({ agent_id: agent, key_id: id, ...key }, null, 2)}\n`;
}

/**
 * Adds a key that its agent made. A record that stands there already is waited for just the same: what was added to no avail is
 * asked for again.
 */
async function addRecord(keysFile: string, given: Given): Promise<Outcome> {
  const record = readRecord(given.text, given.file);
  let isThere = false;
  await editKeys(keysFile, (keys) => {
    isThere = keys.signing_keys.some((key) => isDeepStrictEqual(key, record));
    if (isThere) return keys;
    refuseExistingId(
      keys,
      record.key_id,
      `it is another one. Make a key with another id, or revoke ${record.key_id} first`,
    );
    return { ...keys, signing_keys: [...keys.signing_keys, record] };
  });
  const until = record.expires_at ?? "revoked";
  const already = isThere ? " already" : "";
  const text = `${record.key_id} may${already} sign for ${record.agents.join(", ")}, until ${until}.\n`;
  return { text, change: ofKey(record, "accept") };
}

async function addApiKey(file: string, terms: KeyTerms): Promise<Outcome> {
  const { record, apiKey } = makeApiKey(terms);
  await editKeys(file, (keys) => {
    refuseExistingId(keys, terms.id);
    return { ...keys, api_keys: [...keys.api_keys, record] };
  });
  const text = describeNew(`API key ${terms.id}`, terms, "Give it to the agent, for the header x-api-key.");
  return { text, data: `${apiKey}\n`, change: ofNewApiKey(record, apiKey) };
}

async function revoke(file: string, ids: string[]): Promise<Outcome> {
  const id = onlyOne(ids, "revoke takes exactly one key id, or --agent");
  let signingKey: SigningKeyRecord | undefined;
  let isListed = true;
  await editKeys(file, (keys) => {
    isListed = idsOf(keys).includes(id);
    if (!isListed && GATEWAY_KEY_ID_PATTERN.test(id)) return withRevokedGatewayKey(keys, id);
    // It may be a secret, given for its id.
    if (!isListed) throw new Error("There is no key of this id; list shows every key.");
    signingKey = keys.signing_keys.find((key) => key.key_id === id);
    return {
      ...keys,
      api_keys: keys.api_keys.filter((key) => key.id !== id),
      signing_keys: keys.signing_keys.filter((key) => key.key_id !== id),
    };
  });
  const text = `Revoked ${id}.\n`;
  if (signingKey !== undefined) return { text, change: ofKey(signingKey, "refuse") };
  return { text, change: isListed ? ofRevokedApiKey(id) : ofRevokedGatewayKey(id) };
}

/** No record of the keys file has a gateway's key: it is named as revoked. */
function withRevokedGatewayKey(keys: KeysFile, id: string): KeysFile {
  return { ...keys, revoked_gateway_keys: [...new Set([...(keys.revoked_gateway_keys ?? []), id])] };
}

function refuseExistingId(keys: KeysFile, id: string, hint = "choose another --key-id"): void {
  if (idsOf(keys).includes(id)) throw new Error(`Key ${id} exists already; ${hint}.`);
}

function idsOf(keys: KeysFile): string[] {
  return [...keys.api_keys.map((key) => key.id), ...keys.signing_keys.map((key) => key.key_id)];
}

function describeNew(title: string, { agents, expiresAt = "revoked" }: KeyTerms, handover: string): string {
  return `${title} for ${agents.join(", ")}, until ${expiresAt}.\nIt is shown only once. ${handover}\n`;
}

const DAY_MS = 24 * 3_600_000;
const DEFAULT_DAYS = 30;
const MAX_DAYS = CREDENTIAL_LIMITS.maxLifeMs / DAY_MS;

/** `new`: issues a credential into a key file for the agent. The keys file is read only: nothing is listed. */
async function issueFor(keysFile: string, options: Options): Promise<Outcome> {
  const agent = oneAgentOf(options);
  refuseTermsOfListedKeys(options);
  const days = daysOf(options.days);
  const issuer = await readIssuerFile(options["issuer-file"] ?? (await issuerFileBeside(keysFile)));
  const { keyFile, until } = issue(issuer, await readKeys(keysFile), { agent, days }, newAgentKeys(), Date.now());
  const file = options.out ?? join(dirname(keysFile), `${agent.slice("agent://".length)}.json`);
  await writePrivateFile(file, keyFile);
  const text = `${issuer.issuer} issued a credential for ${agent}, until ${new Date(until).toISOString()}.
Key, credential and the issuer's public record are in ${file}.
Give it to the agent and keep no copy. Nothing was listed.
`;
  return { text, change: ofCredential(agent, keyFile.key_id, keyFile.credential) };
}

/** The issuer of `new-issuer`. Without one, the issuer of `npm start`, if the keys file admits it. */
async function issuerFileBeside(keysFile: string): Promise<string> {
  const [own, development] = [defaultIssuerFile(keysFile), developmentIssuerFile(dirname(keysFile))];
  if ((await exists(own)) || !(await exists(development))) return own;
  const { issuers } = await readKeys(keysFile);
  return issuers.some(({ issuer }) => issuer === DEVELOPMENT_ISSUER) ? development : own;
}

async function exists(file: string): Promise<boolean> {
  return await access(file).then(
    () => true,
    () => false,
  );
}

/** They would be without effect, and who set them would believe otherwise. */
function refuseTermsOfListedKeys(options: Options): void {
  if (options["key-id"] !== undefined)
    throw new UsageError("--key-id is for --listed: a credential's key has its own.");
  if (options["expires-at"] !== undefined)
    throw new UsageError("--expires-at is for --listed: a credential has --days.");
}

function daysOf(text = String(DEFAULT_DAYS)): number {
  const days = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  if (days < 1 || days > MAX_DAYS) throw new UsageError(`--days must be a whole number from 1 to ${MAX_DAYS}.`);
  return days;
}

type Row = readonly [id: string, kind: string, agents: string, valid: string];

/** One line for each key and each revocation, without secrets. */
function describe(keys: KeysFile, now: number): string {
  const listed = [
    ...keys.api_keys.map((key) => ({ ...key, alg: "api-key" })),
    ...keys.signing_keys.map((key) => ({ ...key, id: key.key_id })),
  ].map((key): Row => [key.id, key.alg, key.agents.join(" "), validity(key.not_before, key.expires_at, now)]);
  const rows = [
    ...listed,
    ...keys.issuers.flatMap((record) => rowsOfIssuer(record, now)),
    ...(keys.removed_issuers ?? []).flatMap(({ issuer, revoked }) =>
      rowsOfRevoked(`removed issuer ${issuer}`, revoked),
    ),
    ...(keys.revoked_gateway_keys ?? []).map((id): Row => [id, "gateway", "-", "revoked"]),
  ];
  if (rows.length === 0) return "No keys yet.\n";

  const table = [["ID", "KIND", "AGENTS", "VALID"], ...rows];
  const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  return table.map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}\n`).join("");
}

/** An issuer's key by its thumbprint, as the credentials name it. */
function rowsOfIssuer({ issuer, keys, agents, revoked }: IssuerRecord, now: number): Row[] {
  const kind = `issuer ${issuer}`;
  return [
    ...keys.map(
      (key): Row => [
        thumbprintOf(key.public_key, "Ed25519"),
        kind,
        agents.join(" "),
        validity(key.not_before, key.expires_at, now),
      ],
    ),
    ...rowsOfRevoked(kind, revoked),
  ];
}

function rowsOfRevoked(kind: string, revoked: IssuerRecord["revoked"]): Row[] {
  return revoked.map(({ agent, issued_before }) => ["-", kind, agent, `revoked if issued before ${issued_before}`]);
}

function validity(notBefore: string | undefined, expiresAt: string | undefined, now: number): string {
  if (expiresAt !== undefined && Date.parse(expiresAt) <= now) return `expired ${expiresAt}`;
  if (notBefore !== undefined && Date.parse(notBefore) > now) return `from ${notBefore}`;
  return expiresAt === undefined ? "until revoked" : `until ${expiresAt}`;
}
