import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Connectors } from "relay-protocol/contract/packages.ts";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import { codeBlock } from "../support/documents.ts";
import { madePackages } from "../support/packages.ts";
import { serveWhole } from "../support/relay.ts";
import { given, use, useRelay } from "../support/use-relay.ts";
import { Machine } from "./npm.ts";
import { Registry } from "./registry.ts";

const KEYS = fileURLToPath(new URL("../../deploy/keys/run.ts", import.meta.url));
const QUESTIONS = 50;

// Before the relay, which must leave nothing behind.
const registry = new Registry(/^(@types\/node|undici-types|typescript|@typescript\/typescript-[a-z0-9-]+)$/);
beforeAll(() => registry.start());
afterAll(() => registry.stop());
const relay = useRelay();
const machine = use(new Machine());
let packages: string;
beforeAll(async () => {
  packages = await madePackages();
}, 60_000);
const pod = given(() => serveWhole(relay, { RELAY_PACKAGES_DIR: packages }));

/** In TypeScript bob asks the first program, which is alice. */
const ASK_TS = (url: string) => `
import { Connector } from "agent-relay-connector";
import { readKeyFile } from "agent-relay-connector/key-file";

const bob = new Connector({ url: "${url}", ...(await readKeyFile("bob.json")) });
await bob.start();
const answers: unknown[] = [];
for (let n = 0; n < ${QUESTIONS}; n += 1) {
  const { payload } = await bob.ask("agent://alice", { n }, { waitOnline: 20_000, timeoutMs: 10_000 });
  answers.push(payload.message);
}
await bob.close();
console.log(JSON.stringify(answers));
`;

/** In Python alice asks it, which is bob. */
const ASK_PY = (url: string) => `
import asyncio
import json

from agent_relay_connector import Connector


async def main() -> None:
    answers: list[object] = []
    async with Connector("${url}", key_file="alice.json", start_timeout=30) as alice:
        for n in range(${QUESTIONS}):
            reply = await alice.ask("agent://bob", {"n": n}, wait_online=20, timeout=10)
            answers.append(reply.payload["message"])
    print(json.dumps(answers))


asyncio.run(main())
`;

/** What the relay prints of a package. */
async function printed(
  wanted: string,
): Promise<Connectors["packages"][number] & { readonly lines: readonly string[] }> {
  const { packages } = Connectors.parse(await (await fetch(`${pod.url}/connectors`)).json());
  const found = packages.find(({ name }) => name === wanted) as Connectors["packages"][number];
  return { ...found, lines: found.usage.map(({ line }) => line) };
}

/** Runs the lines one after the other, each in a shell of its own; resolves with what the last of them printed. */
async function follow(cwd: string, lines: readonly string[], environment = ":"): Promise<string> {
  let last = "";
  for (const line of lines) {
    const { code, stdout, stderr } = await machine.shell(`${environment}\n${line}`, cwd);
    expect({ line, code, said: code === 0 ? "" : stdout + stderr }).toEqual({ line, code: 0, said: "" });
    last = stdout;
  }
  return last;
}

/** The keys of both, by the printed command; the operator adds what it prints. */
async function keyLines(): Promise<string[]> {
  const [help] = (await printed("agent-relay-connector")).lines as [string];
  const add = `RELAY_KEYS_FILE=${relay.keysFile} node ${KEYS} add --url ${pod.url}`;
  return ["alice", "bob"].map(
    (name) => `${help.replace("--help", "keygen")} --agent agent://${name} --out ${name}.json | ${add}`,
  );
}

/** The agent runs while the other asks it. */
const beside = (agent: string, asker: string) =>
  `${agent} > agent.log 2>&1 & agent=$!\ntrap 'kill $agent' EXIT\n${asker}`;

const took: string[] = [];
afterAll(() => {
  process.stderr.write(`From an empty folder to ${QUESTIONS} answers: ${took.join(", ")}\n`);
});

describe("From an empty folder, with nothing but the relay's address and the lines that it prints,", () => {
  test("a strict TypeScript project asks and is answered 50 questions", async () => {
    const cwd = await machine.folder("typescript");
    const begun = Date.now();
    const { lines, first_program } = await printed("agent-relay-connector");
    const install = lines.filter((line) => /^npm (install|pkg) /.test(line));
    expect(install).toHaveLength(2);
    const environment = `export npm_config_registry=${registry.url}`;
    await follow(cwd, [...install, ...(await keyLines())], environment);
    const readme = await readFile(join(cwd, "node_modules/agent-relay-connector/README.md"), "utf8");
    const { compilerOptions } = JSON.parse(codeBlock(readme, "json tsconfig"));
    expect(compilerOptions).toMatchObject({ strict: true });
    const config = { compilerOptions: { ...compilerOptions, skipLibCheck: false } };
    await writeFile(join(cwd, "tsconfig.json"), JSON.stringify(config));
    await writeFile(join(cwd, "agent.ts"), first_program as string);
    await writeFile(join(cwd, "ask.ts"), ASK_TS(pod.url));
    const answers = await follow(cwd, ["npx --no tsc", beside("node agent.ts", "node ask.ts")], environment);
    expect(JSON.parse(answers)).toEqual(Array(QUESTIONS).fill("Hello, agent://bob."));
    took.push(`TypeScript ${((Date.now() - begun) / 1000).toFixed(0)} s`);
  }, 300_000);

  test("a strictly typed Python project asks and is answered 50 questions", async () => {
    const cwd = await machine.folder("python");
    const begun = Date.now();
    const { lines, first_program } = await printed("agent_relay_connector");
    const install = lines.filter((line) => !line.startsWith("from "));
    expect(install).toHaveLength(2);
    // The python3 that has Debian's packages; its pip asks no index.
    const environment = `export PATH=${dirname(pythonProgram())}:$PATH PIP_NO_INDEX=1 PIP_CONFIG_FILE=/dev/null`;
    await follow(cwd, install, environment);
    await follow(cwd, await keyLines());
    await writeFile(join(cwd, "agent.py"), first_program as string);
    await writeFile(join(cwd, "ask.py"), ASK_PY(pod.url));
    const python = ".venv/bin/python";
    const check = `${python} -m mypy --strict agent.py ask.py`;
    const answers = await follow(cwd, [check, beside(`${python} agent.py`, `${python} ask.py`)], environment);
    expect(JSON.parse(answers)).toEqual(Array(QUESTIONS).fill("Hello, agent://alice."));
    took.push(`Python ${((Date.now() - begun) / 1000).toFixed(0)} s`);
  }, 300_000);
});
