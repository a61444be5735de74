import { lstat, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, isAbsolute, join, relative, resolve, sep } from "node:path";
import { AGENT_ID, AGENT_SCHEME } from "../../agent-id.ts";
import { ANY_AGENT } from "../../credentials/contract.ts";
import { type IssuerRecord, isIssuerRecord } from "../../credentials/issuer-record.ts";
import { membersOf, textOf } from "../../frames.ts";
import { AGENT_OPTIONS, agentMissing, isLoopback, nearest, readArguments, unexpectedWord } from "../arguments.ts";
import { EXIT, Failure, usageError } from "../failure.ts";
import { packageFolder, writePrivateFile } from "../files.ts";
import type { Command, Options } from "../io.ts";
import { jsonLine, shellWord, writeLine } from "../io.ts";
import { type KeyRecord, readKeyFile } from "../key-file.ts";
import { RelayHttp } from "../relay-http.ts";
import { newAgentKey, newKeyId, type PublicRecord } from "./keygen.ts";

const OPTIONS = {
  language: { type: "string", value: "NAME", default: "typescript", help: "typescript (default) or python" },
  agent: { type: "string", value: "ID", help: "the agent; default agent:// and the folder's name" },
  key: { type: "string", value: "FILE", help: "its key file; default RELAY_KEY_FILE, else a new key.json" },
  "trust-issuer": {
    type: "string",
    value: "NAME",
    multiple: true,
    help: "an issuer of the relay to trust; may be repeated",
  },
  url: AGENT_OPTIONS.url,
} as const satisfies Options;

export const init: Command = {
  usage: "[folder] [options]",
  options: OPTIONS,
  examples: ["relay init weather", "relay init . --language python --key ~/keys/weather.json"],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, OPTIONS);
    const [folder = ".", other] = positionals;
    if (other !== undefined) throw unexpectedWord("init", "one folder", other);
    const language = languageOf(values.language);
    const http = new RelayHttp(values.url, io);
    const keyFile = values.key ?? (io.env.RELAY_KEY_FILE || undefined);
    const named = values["trust-issuer"] ?? [];
    if (keyFile && named.length > 0)
      throw usageError("--trust-issuer is for a new key. A key file has its own trusted_issuers.");
    const { key, trusted } = keyFile
      ? { key: await givenProjectKey(folder, keyFile, values.agent), trusted: [] }
      : await newKey(newProjectAgent(folder, values.agent), http, named);

    const files = await filesOf(language, key, http);
    const keyFiles = new Map(key.made && [[key.path, key.made.file]]);
    const names = [...files.keys(), ...keyFiles.keys()].sort();
    await refuseToOverwrite(folder, names);
    await writeProject(folder, files, keyFiles);
    if (values.json) {
      const result = {
        ok: true,
        agent_id: key.agent,
        language,
        folder,
        files: names,
        key_file: key.path,
        trusted_issuers: trusted,
      };
      await writeLine(io.stdout, jsonLine(result));
      return EXIT.ok;
    }
    const said = [
      `${key.agent} has its files in ${folder}: ${names.join(", ")}.`,
      key.about,
      ...trusted.map(shownIssuer),
    ];
    if (key.made && isOnThisMachine(http)) {
      const record = shellWord(resolve(folder, RECORD_FILE));
      said.push(`If the relay is of npm start, make the key known in its folder first: npm run keys -- add ${record}`);
    }
    const commands = [`cd ${shellWord(folder)}`, ...pastedCommands(files.get("README.md") ?? "", process.execPath)];
    for (const line of [...said, "", ...commands.map((command) => `  ${command}`)]) await writeLine(io.stdout, line);
    return EXIT.ok;
  },
};

/** A new key, and the issuers that its agent trusts. */
async function newKey(agent: string, http: RelayHttp, named: readonly string[]) {
  const trusted = await relayIssuers(http, named);
  return { key: newProjectKey(agent, trusted), trusted };
}

async function filesOf(language: Language, key: ProjectKey, http: RelayHttp): Promise<ReadonlyMap<string, string>> {
  const addresses = await packageAddresses(http, LANGUAGES[language]);
  const { agent, path, ignored, about, made } = key;
  const url = http.httpUrl === undefined ? http.baseUrl : http.url;
  const facts = {
    agent,
    name: agent.slice(AGENT_SCHEME.length),
    url,
    url_word: shellWord(url),
    testing_word: shellWord(addresses.testing ?? ""),
    key: path,
    key_word: shellWord(path),
    ignored_key: ignored,
    about_key: about,
  };
  const files = await filledTemplate(language, { ...addresses, ...facts });
  return made === undefined ? files : files.set(RECORD_FILE, `${jsonLine(made.record)}\n`);
}

function languageOf(name: string): Language {
  const names = Object.keys(LANGUAGES);
  if (names.includes(name)) return name as Language;
  const meant = nearest(name, names);
  throw usageError(`--language must be ${names.join(" or ")}.`, meant && `Did you mean ${meant}? See --help.`);
}

/** Of a Node that npm installed, by npx or in a repository, for a machine whose own is too old. */
const BORROWED = `${sep}node_modules${sep}`;
const WITH_NODE = "npx --yes --package=node@24 ";
/** Commands for whose Node npx may fetch one. Within npx, another npx finds no packages of the project. */
const RUN_BY_NODE: readonly (readonly [RegExp, with24: string])[] = [
  [/^npx --no (?=relay )/, `${WITH_NODE}-- `],
  [/^npx --yes (?=--package=)/, WITH_NODE],
  [/^(?=npm (?:install|test|start)\b)/, `${WITH_NODE}-- `],
];
/** The package for tests has a whole relay, which needs a later Node than the connector. */
const TESTS = /^npm test\b| with-relay /;
const TESTS_NEED = 24;

/**
 * The lines of a project's README that its reader pastes. If the machine's Node is too old for a line, npx fetches another.
 * @param execPath of the Node that runs. @param version of that Node.
 */
export function pastedCommands(readme: string, execPath: string, version = process.versions.node): string[] {
  const [, block = ""] = /^```sh\n([\s\S]*?)^```/m.exec(readme) ?? [];
  const isBorrowed = execPath.includes(BORROWED);
  const isOldForTests = Number.parseInt(version, 10) < TESTS_NEED;
  const lines = block.trimEnd().split("\n");
  return lines.map((line) => (isBorrowed || (isOldForTests && TESTS.test(line)) ? withNode(line) : line));
}

function withNode(line: string): string {
  const [pattern, with24] = RUN_BY_NODE.find(([command]) => command.test(line)) ?? [];
  return pattern === undefined ? line : line.replace(pattern, with24 as string);
}

/** A path goes into files that others run. Source: docs/protocol.md#discovery. */
const PATH = /^\/packages\/\w[\w.+-]{0,127}$/;
const INTEGRITY = /^sha512-([A-Za-z0-9+/]{86}==)$/;

/**
 * Where the relay hands out packages, each under the address of its present content: never a name that a registry has; and, as
 * `<key>_sha512`, the digest of that content in hex.
 * @param names by whatever they are called here. @throws {Failure} `not_found`, or as RelayHttp does.
 */
async function packageAddresses(http: RelayHttp, names: Readonly<Record<string, string>>) {
  const { packages } = await http.get("/connectors");
  const listed = Array.isArray(packages) ? packages.map(membersOf) : [];
  const addresses = Object.entries(names).flatMap(([key, name]) => {
    const { path, integrity } = membersOf(listed.find((one) => one.name === name));
    const [, digest] = INTEGRITY.exec(textOf(integrity) ?? "") ?? [];
    if (typeof path === "string" && PATH.test(path) && digest !== undefined) {
      return [[key, http.baseUrl + path] as const, [`${key}_sha512`, Buffer.from(digest, "base64").toString("hex")]];
    }
    throw new Failure(
      "not_found",
      `The relay at ${http.baseUrl} does not hand out ${name}, which the project needs.`,
      "Name another relay with --url; GET /connectors at a relay lists its packages.",
      { retry: "fix" },
    );
  });
  return Object.fromEntries(addresses);
}

/** Of a key that is made for a project. */
const KEY_FILE = "key.json";
/** Its public half. */
const RECORD_FILE = "record.json";

/** The agent of a project, and the key that it acts with. */
interface ProjectKey {
  readonly agent: string;
  /** Path of its key file, from the project's folder on. */
  readonly path: string;
  /** The line of .gitignore that covers it; empty where it lies outside the folder. */
  readonly ignored: string;
  /** What its author has to know of it. */
  readonly about: string;
  /** What is to be written for a key that was made. */
  readonly made?: { readonly file: KeyRecord; readonly record: PublicRecord };
}

/** A new key. @param trusted the issuers that its file pins. @throws {Failure} `usage`. */
function newProjectKey(agent: string, trusted: readonly IssuerRecord[]): ProjectKey {
  const { file, record } = newAgentKey(agent, newKeyId(agent));
  return {
    agent,
    path: KEY_FILE,
    ignored: ignoring(KEY_FILE),
    about: `${KEY_FILE} is its private key, which git ignores. ${RECORD_FILE} is public: the relay's operator adds it, or an issuer signs for it.`,
    made: { file: trusted.length > 0 ? { ...file, trusted_issuers: trusted } : file, record },
  };
}

/** The agent that is named, or else that of the folder's name. @throws {Failure} `usage`. */
function newProjectAgent(folder: string, agent = AGENT_SCHEME + basename(resolve(folder))): string {
  if (AGENT_ID.test(agent)) return agent;
  throw usageError(agentMissing(agent));
}

/** The key of a file that is there. @throws {Failure} `usage` when it is another agent's, or as readKeyFile does. */
async function givenProjectKey(folder: string, file: string, agent?: string): Promise<ProjectKey> {
  const known = await readKeyFile(file);
  if (agent !== undefined && agent !== known.agent)
    throw usageError(
      "The key file belongs to another agent than --agent.",
      "Leave out --agent, or leave out --key and RELAY_KEY_FILE.",
    );
  const path = relative(resolve(folder), resolve(file)).split(sep).join("/");
  const isInside = !path.startsWith("../") && !isAbsolute(path);
  const ignored = isInside ? ignoring(path) : "";
  return { agent: known.agent, path, ignored, about: `${path} is its private key.` };
}

/** The line of a .gitignore that means this path and no other. */
function ignoring(path: string): string {
  return `/${path.replace(/[\\*?[\]#! ]/g, "\\$&")}`;
}

const MANIFEST = "/.well-known/signing-manifest.json";
/** More than a rotation needs: all of them are printed to be compared. */
const MAX_KEYS = 8;

/**
 * The issuers of a relay that a new agent trusts: those that are named; of a relay on this machine, where nobody else can stand
 * between, all that it admits.
 * @throws {Failure} `not_found` for a name that the relay does not admit, or as RelayHttp does.
 */
export async function relayIssuers(http: RelayHttp, names: readonly string[]): Promise<readonly IssuerRecord[]> {
  if (names.length === 0 && !isOnThisMachine(http)) return [];
  const { issuers } = await http.get(MANIFEST);
  const records = (Array.isArray(issuers) ? issuers : []).filter(isIssuerRecord);
  const admitted = records.filter(({ issuer }, n) => records.findIndex((other) => other.issuer === issuer) === n);
  if (admitted.length !== records.length || admitted.some(({ keys }) => keys.length > MAX_KEYS))
    throw notOfARelay(http);
  if (names.length === 0) return admitted.map(namedAgentsOf);
  return [...new Set(names)].map((name) => {
    const record = admitted.find(({ issuer }) => issuer === name);
    if (record !== undefined) return record;
    throw new Failure(
      "not_found",
      `The relay at ${http.baseUrl} admits no issuer of this name.`,
      admitted.length === 0 ? "It admits no issuer." : `It admits ${admitted.map(({ issuer }) => issuer).join(", ")}.`,
      { retry: "fix" },
    );
  });
}

/** Without `*`: a recipient that pins it accepts no reply of an agent that the relay lists. Only where it stands alone it stays. */
function namedAgentsOf(record: IssuerRecord): IssuerRecord {
  const agents = record.agents.filter((pattern) => pattern !== ANY_AGENT);
  return agents.length === 0 ? record : { ...record, agents };
}

function notOfARelay({ baseUrl }: RelayHttp): Failure {
  const why = `The signing manifest of ${baseUrl} has an issuer twice, or one with more than ${MAX_KEYS} keys.`;
  return new Failure("not_found", why, "Name the relay with --url.", { retry: "fix" });
}

/** Over HTTP and over the websocket. */
function isOnThisMachine({ baseUrl, websocketUrl }: RelayHttp): boolean {
  return [baseUrl, websocketUrl].every((url) => isLoopback(new URL(url).hostname.replace(/^\[|\]$/g, "")));
}

/** What an issuer is trusted with, as its own record has it: to be compared with that. */
function shownIssuer({ issuer, keys, agents, revoked = [] }: IssuerRecord): string {
  const [ofKeys, ofAgents] = [keys.map(({ public_key }) => public_key), agents].map((all) => all.join(", "));
  return `It trusts the relay's issuer ${issuer}, with the public key ${ofKeys}, for ${ofAgents}; revocations: ${revoked.length}.`;
}

/** The languages of the templates, with the packages of the relay that each needs, by the mark that stands for the address. */
export const LANGUAGES = {
  typescript: { connector: "agent-relay-connector", testing: "agent-relay-testing" },
  python: { connector: "agent_relay_connector", testing: "agent-relay-testing" },
} as const;
export type Language = keyof typeof LANGUAGES;

/** `{{name}}`; within quotes, which TypeScript, Python and JSON share, the whole literal. */
const MARK = /"\{\{(\w+)\}\}"|\{\{(\w+)\}\}/g;

/** The files of a template by name, each mark replaced by its value. */
async function filledTemplate(language: Language, values: Readonly<Record<string, string>>) {
  const folder = new URL(`templates/${language}/`, packageFolder());
  const entries = await readdir(folder, { withFileTypes: true });
  // A folder is none of it: Python leaves what it compiled beside its modules.
  const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  const files = names.sort().map(async (name) => {
    const text = await readFile(new URL(name, folder), "utf8");
    return [nameOf(name), filled(text, values)] as const;
  });
  return new Map(await Promise.all(files));
}

function filled(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(MARK, (mark, quoted?: string, bare?: string) => {
    const value = values[quoted ?? bare ?? ""];
    if (value === undefined) return mark;
    return quoted === undefined ? value : JSON.stringify(value);
  });
}

/** npm renames a .gitignore when it installs a package. */
function nameOf(file: string): string {
  return file === "gitignore" ? ".gitignore" : file;
}

/** @throws {Failure} that names the files of the folder that are there already, of those that are to be written. */
async function refuseToOverwrite(folder: string, names: readonly string[]): Promise<void> {
  const found = await Promise.all(names.map((name) => lstat(join(folder, name)).catch(() => undefined)));
  const inTheWay = names.filter((_, index) => found[index] !== undefined);
  if (inTheWay.length === 0) return;
  throw new Failure(
    "failed",
    `These files exist already in ${folder}: ${inTheWay.join(", ")}. Nothing was written.`,
    "Name an empty or a new folder: relay init <folder>.",
  );
}

/**
 * @param files by name, with the .gitignore that covers the keys: it is there before they are.
 * @param keys contents of key files, by name. @throws {Failure}
 */
async function writeProject(
  folder: string,
  files: ReadonlyMap<string, string>,
  keys: ReadonlyMap<string, object>,
): Promise<void> {
  const failed = ({ code }: NodeJS.ErrnoException) => {
    throw new Failure("failed", `${folder} cannot be written (${code}).`, "Choose another folder.");
  };
  await mkdir(folder, { recursive: true }).catch(failed);
  for (const [name, text] of files) await writeFile(join(folder, name), text, { flag: "wx" }).catch(failed);
  for (const [name, content] of keys) await writePrivateFile(join(folder, name), content);
}
