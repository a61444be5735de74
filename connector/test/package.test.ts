import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { codeBlock } from "../../test/support/documents.ts";
import type { Pod } from "../../test/support/relay.ts";
import { temporaryFolder } from "../../test/support/temporary-folder.ts";
import { Stage } from "./kit.ts";

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));
const CONNECTOR = join(REPOSITORY, "connector");
const TSC = join(REPOSITORY, "node_modules/typescript/bin/tsc");
const NPM_ENVIRONMENT = { npm_config_offline: "true", npm_config_audit: "false", npm_config_fund: "false" };

/** Uses the installed package, leaves promises unheeded, and must end by itself. */
const USER = `
import { Connector, RelayError } from "@agent-relay/connector";
const { url, dead, alice, bob } = JSON.parse(process.argv[2]);

const lost = new Connector({ url: dead, ...alice });
for (const type of ["message.send", "NONE"]) lost.send("agent://bob", {}, { type, timeoutMs: 10 });
lost.send("agent://bob", { n: NaN });
lost.start();
setTimeout(() => lost.close(), 50);
new Connector({ url, ...alice, key: { keyId: "k", alg: "ed25519", privateKey: "" } }).start().catch(() => {});

const receiver = new Connector({ url, ...bob, trust: { [alice.agent]: [alice.trusted] } });
const sender = new Connector({ url, ...alice });
await Promise.all([receiver.start(), sender.start()]);
const { delivery } = await sender.send(bob.agent, { hello: "bob" });
for await (const { payload, verified } of receiver) {
  console.log(JSON.stringify({ delivery, payload, verified }));
  break;
}
const error = await sender.send("agent://BOB", {}).catch((error) => error);
console.log(error instanceof RelayError, error.code);
sender.send(bob.agent, {});
await Promise.all([sender.close(), receiver.close()]);
`;

const stage = new Stage("alice", "bob");
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let project: string;
let files: string[];
let pod: Pod;

beforeAll(async () => {
  folder = await temporaryFolder();
  project = join(folder.path, "project");
  await mkdir(project);
  await writeFile(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const [packed, dependency] = [await pack(CONNECTOR), await pack(join(REPOSITORY, "node_modules/canonicalize"))];
  files = packed.files;
  await run("npm", ["install", "--ignore-scripts", packed.path, dependency.path], project);
  await stage.start();
  pod = await stage.relay.startWsConnector();
}, 120_000);
afterAll(async () => {
  await stage.stop();
  await folder[Symbol.asyncDispose]();
});

interface Run {
  readonly stdout: string;
  readonly stderr: string;
}

async function run(program: string, args: readonly string[], cwd: string): Promise<Run> {
  const env = { ...process.env, ...NPM_ENVIRONMENT, NODE_OPTIONS: "" };
  return await promisify(execFile)(program, args, { cwd, env, timeout: 60_000 }).catch((error) => {
    throw new Error(`${program} ${args[0]} failed:\n${error.stdout}\n${error.stderr}`);
  });
}

/** @param args select the package. */
async function pack(cwd: string, ...args: string[]): Promise<{ path: string; files: string[] }> {
  const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", folder.path, ...args], cwd);
  const [{ filename, files }] = Object.values(JSON.parse(stdout.slice(stdout.search(/^[[{]/m)))) as [
    { filename: string; files: { path: string }[] },
  ];
  return { path: join(folder.path, filename), files: files.map(({ path }) => path) };
}

/** Checks a program of a user of the package. */
async function typesFit(name: string, text: string, options: object): Promise<void> {
  await writeFile(join(project, `${name}.ts`), text);
  const compilerOptions = { strict: true, noEmit: true, target: "es2024", module: "nodenext", skipLibCheck: false };
  const config = { compilerOptions: { ...compilerOptions, ...options }, files: [`${name}.ts`] };
  await writeFile(join(project, `${name}.json`), JSON.stringify(config));
  await run(process.execPath, [TSC, "-p", `${name}.json`], project);
}

describe("The package", () => {
  test("holds the compiled SDK, its types, the command and the README, and nothing else", () => {
    expect(files).toEqual(
      expect.arrayContaining(["README.md", "package.json", "bin/relay.mjs", "dist/index.js", "dist/index.d.ts"]),
    );
    expect(files.filter((path) => !/^(dist|bin)\/|^(README\.md|package\.json)$/.test(path))).toEqual([]);
  });

  test("comes out the same when it is packed from the root of the repository", async () => {
    expect((await pack(REPOSITORY, "--workspace", "connector")).files).toEqual(files);
  });

  test("works in a project of its own, which ends when its connectors are closed, with no rejection unhandled", async () => {
    await writeFile(join(project, "user.mjs"), USER);
    const { agent, key, trusted } = stage.agent("alice");
    const bob = { agent: stage.agent("bob").agent, key: stage.agent("bob").key };
    const given = { url: pod.url, dead: "ws://127.0.0.1:1", alice: { agent, key, trusted }, bob };
    const strict = ["--unhandled-rejections=strict", "user.mjs", JSON.stringify(given)];
    const { stdout, stderr } = await run(process.execPath, strict, project);
    const delivery = { status: "online", canDeliverRealtime: true };
    expect(stdout.split("\n")).toEqual([
      JSON.stringify({ delivery, payload: { hello: "bob" }, verified: "agent" }),
      "true invalid_envelope",
      "",
    ]);
    expect(stderr).toBe("");
  }, 60_000);

  test("has types that fit a browser's and Node's, and the examples of its README", async () => {
    const readme = await readFile(join(CONNECTOR, "README.md"), "utf8");
    const browser = { lib: ["es2024", "dom"], types: [] };
    const node = { types: ["node"], typeRoots: [join(REPOSITORY, "node_modules/@types")], lib: ["es2024"] };
    await typesFit("quickstart", codeBlock(readme, "ts quickstart"), browser);
    await typesFit("trust", codeBlock(readme, "ts trust"), { ...browser, lib: ["es2024", "dom", "esnext.disposable"] });
    await typesFit("quickstart", codeBlock(readme, "ts quickstart"), { ...node, skipLibCheck: true });
    await expect(
      typesFit("wrong", `${codeBlock(readme, "ts quickstart")}\nconnector.send(7);`, browser),
    ).rejects.toThrow("TS2554");
  }, 60_000);

  test("needs nothing of Node: the SDK compiles with a browser's types alone", async () => {
    const compilerOptions = { types: [], lib: ["es2024", "dom"] };
    const config = { extends: join(REPOSITORY, "tsconfig.base.json"), compilerOptions };
    const path = join(folder.path, "sdk.json");
    await writeFile(path, JSON.stringify({ ...config, files: [join(CONNECTOR, "src/index.ts")] }));
    await run(process.execPath, [TSC, "-p", path], REPOSITORY);
  });
});
