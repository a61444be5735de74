import { resolve } from "node:path";
import { AGENT_SCHEME } from "../../agent-id.ts";
import { AGENT_OPTIONS, readArguments, unexpectedWord } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { usageError } from "../failure.ts";
import { nearest } from "../nearest.ts";
import { jsonLine, shellWord, writeLine } from "../output.ts";
import { pastedCommands } from "../project/commands.ts";
import { packageAddresses } from "../project/package-addresses.ts";
import {
  givenProjectKey,
  newProjectAgent,
  newProjectKey,
  type ProjectKey,
  RECORD_FILE,
} from "../project/project-key.ts";
import { isOnThisMachine, relayIssuers, shownIssuer } from "../project/relay-issuers.ts";
import { filledTemplate, LANGUAGES, type Language } from "../project/template.ts";
import { refuseToOverwrite, writeProject } from "../project/write-project.ts";
import { RelayHttp } from "../relay-http.ts";

export const init: Command = {
  help: `relay init [folder]: write an agent that works, with its test, to start from.

  relay init weather                        agent://weather in TypeScript, in the folder weather
  relay init weather --language python
  relay init . --key ~/keys/weather.json    in this folder, with a key that is there already

  --language NAME  typescript (default) or python
  --agent ID       the agent; default: agent:// and the name of the folder
  --key FILE       its key file; or RELAY_KEY_FILE; without one a key is made: key.json for the agent, record.json for the relay's operator
  --trust-issuer NAME
                   an issuer that the relay admits, for the new agent to trust.
                   Compare what is printed with the record that it publishes.
                   May be repeated. On this machine: by default all
  --url URL        the relay; or RELAY_URL; default http://127.0.0.1:8080
  --json           one line of JSON

The agent answers messages, and approves sessions by a rule; both are functions to change. The README beside them has the commands that
install, test and start it. Packages of the relay come from the relay itself, which therefore has to be up; typescript, @types/node and what Python's connector needs
from a registry. No file is overwritten.
`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, {
      ...AGENT_OPTIONS,
      agent: { type: "string" },
      language: { type: "string", default: "typescript" },
      "trust-issuer": { type: "string", multiple: true },
    });
    const [folder = ".", other] = positionals;
    if (other !== undefined) throw unexpectedWord("init", "one folder", other);
    const language = languageOf(values.language);
    const http = new RelayHttp(values.url, io);
    const keyFile = values.key ?? (io.env.RELAY_KEY_FILE || undefined);
    const named = values["trust-issuer"] ?? [];
    if (keyFile && named.length > 0)
      throw usageError("--trust-issuer is for a key that is made: a key file has trusted_issuers of its own.");
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
