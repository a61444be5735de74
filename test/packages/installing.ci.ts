import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { allOnPath } from "../../deploy/local/programs.mjs";
import { codeBlock } from "../support/documents.ts";
import { connectorIn, packagesIn } from "../support/packages.ts";
import type { Machine } from "./npm.ts";
import { useServedConnectors } from "./served-connectors.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const TSC = join(REPOSITORY, "node_modules/typescript/bin/tsc");

/** Of an error, with what caused it and caused that. */
const MAX_PRINTED_BYTES = 2500;

const { stage, machine, made, pod, usageLine, keyFileIn } = useServedConnectors();
/** A project that has the package installed. */
let project: string;
let installed: Awaited<ReturnType<Machine["run"]>>;

beforeAll(async () => {
  project = await machine.folder("project");
  await writeFile(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
  installed = await machine.shell(await usageLine("npm install"), project);
});

/** Exchanges a message, leaves promises unhandled, and must end by itself. */
const USER = `
import { Connector, RelayError, type AgentKey, type Delivery } from "agent-relay-connector";
interface Given { agent: string; key: AgentKey; }
declare const process: { argv: string[] };
const { url, dead, alice, bob } = JSON.parse(process.argv[2]!) as { url: string; dead: string; alice: Given; bob: Given };

const lost = new Connector({ url: dead, ...alice });
lost.on("error", () => {});
for (const type of ["message.send", "message.NONE"] as const) lost.send("agent://bob", {}, { type, timeoutMs: 10 });
lost.start();

const receiver = new Connector({ url, ...bob, takeOver: true });
const sender = new Connector({ url, ...alice });
for (const connector of [receiver, sender]) connector.on("warning", ({ code }) => console.log(code));
await Promise.all([receiver.start(), sender.start()]);
const { delivery } = await sender.send(bob.agent, { hello: "bob" });
for await (const got of receiver) {
  const { payload, verified }: Delivery = got;
  console.log(JSON.stringify({ delivery, payload, verified }));
  break;
}
const error: unknown = await sender.send("agent://BOB", {}).catch((error) => error);
console.log(error instanceof RelayError ? error.code : "no RelayError");
sender.send(bob.agent, {});
await Promise.all([sender.close(), receiver.close(), lost.close()]);
`;

/** Compiles a program of the project's; resolves with what the compiler complains of. */
async function compile(name: string, text: string, options: object): Promise<string> {
  await writeFile(join(project, `${name}.ts`), text);
  const compilerOptions = {
    strict: true,
    skipLibCheck: false,
    target: "es2024",
    module: "nodenext",
    types: [],
    ...options,
  };
  await writeFile(join(project, `${name}.json`), JSON.stringify({ compilerOptions, files: [`${name}.ts`] }));
  return (await machine.run(process.execPath, [TSC, "-p", `${name}.json`], project)).stdout;
}

describe("npm install of its address", () => {
  test("adds one package and asks no registry", async () => {
    expect(installed).toMatchObject({ code: 0, stdout: expect.stringContaining("added 1 package") });
    const lock = JSON.parse(await readFile(join(project, "package-lock.json"), "utf8"));
    const { integrity } = await connectorIn(made.folder);
    expect(lock.packages["node_modules/agent-relay-connector"]).toMatchObject({ version: made.version, integrity });
  });

  test("lets a strict TypeScript program compile against a browser's types, and exchange a message", async () => {
    expect(await compile("user", USER, { lib: ["es2024", "dom"] })).toBe("");
    const { agent, key } = stage.agent("alice");
    const bob = { agent: stage.agent("bob").agent, key: stage.agent("bob").key };
    const given = JSON.stringify({ url: pod.url, dead: "ws://127.0.0.1:1", alice: { agent, key }, bob });
    const { stdout, stderr } = await machine.run(
      process.execPath,
      ["--unhandled-rejections=strict", "user.js", given],
      project,
    );
    const delivery = { status: "online", canDeliverRealtime: true };
    expect(stdout.split("\n")).toEqual([
      JSON.stringify({ delivery, payload: { hello: "bob" }, verified: "unverified" }),
      "invalid_envelope",
      "",
    ]);
    expect(stderr).toBe("");
  });

  test("prints of an error that nobody catches what it is, and not the package", async () => {
    const { agent, key } = stage.agent("alice");
    const program = `import { Connector } from "agent-relay-connector";
      await new Connector({ url: "ws://127.0.0.1:1", ...JSON.parse(process.argv[2]) }).start({ timeoutMs: 2000 });`;
    await writeFile(join(project, "uncaught.mjs"), program);
    const { code, stderr } = await machine.run(
      process.execPath,
      ["uncaught.mjs", JSON.stringify({ agent, key })],
      project,
    );
    const printed = stderr.replaceAll(pathToFileURL(project).href, "");
    expect(code).toBe(1);
    expect(Buffer.byteLength(printed)).toBeLessThanOrEqual(MAX_PRINTED_BYTES);
    expect(stderr).toMatch(/^RelayError: /m);
  });

  test("brings types that fit Node's, too, and the examples of its README", async () => {
    const readme = await readFile(join(project, "node_modules/agent-relay-connector/README.md"), "utf8");
    const node = { types: ["node"], typeRoots: [join(REPOSITORY, "node_modules/@types")], lib: ["es2024"] };
    const browser = { lib: ["es2024", "dom", "esnext.disposable"] };
    const { compilerOptions } = JSON.parse(codeBlock(readme, "json tsconfig"));
    const asTold = { ...compilerOptions, typeRoots: node.typeRoots, skipLibCheck: true };
    expect(await compile("quickstart", codeBlock(readme, "ts quickstart"), asTold)).toBe("");
    expect(await compile("quickstart", codeBlock(readme, "ts quickstart"), browser)).toBe("");
    expect(await compile("quickstart", codeBlock(readme, "ts quickstart"), { ...node, skipLibCheck: true })).toBe("");
    for (const block of ["trust", "ask"])
      expect(await compile(block, codeBlock(readme, `ts ${block}`), browser)).toBe("");
    expect(await compile("credentials", codeBlock(readme, "ts credentials"), browser)).toBe("");
    expect(await compile("key-file", codeBlock(readme, "ts key-file"), asTold)).toBe("");
    const wrong = `${codeBlock(readme, "ts quickstart")}\nconnector.send(7);`;
    expect(await compile("wrong", wrong, browser)).toContain("TS2554");
  });

  test("brings a command whose help names the reference beside it", async () => {
    const bin = join(project, "node_modules/.bin/relay");
    const { stdout } = await machine.run(process.execPath, [bin, "listen", "--help"], project);
    const [, file = ""] = /^Reference: (.+)#listen$/m.exec(stdout) ?? [];
    expect(file).toBe(join("node_modules", "agent-relay-connector", "CLI.md"));
    expect(await readFile(join(project, file), "utf8")).toContain("\n## listen\n");
  });

  test("brings a command that serves MCP", async () => {
    const bin = join(project, "node_modules/.bin/relay");
    const args = [bin, "mcp", "--url", pod.url, "--key", await keyFileIn(project, "bob")];
    const client = new Client({ name: "test", version: "1.0.0" });
    const transport = new StdioClientTransport({ command: process.execPath, args, stderr: "ignore" });
    await client.connect(transport as Parameters<Client["connect"]>[0]);
    try {
      expect(client.getServerVersion()).toMatchObject({ version: made.version });
      const { structuredContent } = await client.callTool({ name: "my_status", arguments: {} });
      expect(structuredContent).toMatchObject({ agent_id: "agent://bob" });
    } finally {
      await client.close();
    }
  });
});

describe("On a Node that is too old", () => {
  /** An old Node on this machine, or else this one made to say that it is old. */
  const old = allOnPath("node", process.env.PATH ?? "").find((path) => majorOf(path) < 22);
  const pretend = join(REPOSITORY, "test/packages/old-node.mjs");
  const [node, flags] = old === undefined ? [process.execPath, ["--import", pathToFileURL(pretend).href]] : [old, []];

  test("the library throws an error that names the Node it needs", async () => {
    await writeFile(
      join(project, "old.mjs"),
      `await import("agent-relay-connector").catch(({ name, message }) => console.log(name, message));`,
    );
    const { code, stdout } = await machine.run(node, [...flags, "old.mjs"], project, node);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Error .*Node 22 or later/);
  });

  test("a program that imports it ends with that error, and so does one that requires it", async () => {
    for (const [file, text] of [
      ["old-import.mjs", `import "agent-relay-connector";`],
      ["old-require.cjs", `require("agent-relay-connector");`],
    ] as const) {
      await writeFile(join(project, file), text);
      const { code, stderr } = await machine.run(node, [...flags, file], project, node);
      expect([file, code, /Node 22 or later/.test(stderr)]).toEqual([file, 1, true]);
    }
  });

  test("the command says so in one line, and ends with 1", async () => {
    const bin = join(project, "node_modules/.bin/relay");
    const { code, stdout, stderr } = await machine.run(node, [...flags, bin, "--version"], project, node);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^relay: .*Node 22 or later.*--package=node@24.*\n$/);
  });
});

function majorOf(node: string): number {
  return Number.parseInt(execFileSync(node, ["--version"], { encoding: "utf8" }).slice(1), 10);
}

test("The module for browsers is one file that needs nothing else, and exchanges a message", async () => {
  const { packages } = await packagesIn(made.folder);
  const { file } = packages.find(({ name }) => name === "connector") as { file: string };
  const cwd = await machine.folder("module");
  await writeFile(join(cwd, "connector.mjs"), await (await fetch(`${pod.url}/packages/${file}`)).text());
  await writeFile(
    join(cwd, "user.mjs"),
    `import * as sdk from "./connector.mjs";
    const { url, ...alice } = JSON.parse(process.argv[2]);
    const connector = new sdk.Connector({ url, ...alice });
    connector.on("warning", ({ code }) => console.log(code));
    await connector.start();
    console.log(Object.keys(sdk).sort().join(), (await connector.send(alice.agent, { hello: "me" })).delivery.status);
    await connector.close();`,
  );
  const { agent, key } = stage.agent("alice");
  const given = JSON.stringify({ url: pod.url, agent, key });
  const { stdout } = await machine.run(process.execPath, ["user.mjs", given], cwd);
  expect(stdout).toBe("Connector,RelayError,verifyReceipt online\n");
});

test("The library needs nothing of Node: it compiles with a browser's types alone", async () => {
  const compilerOptions = { types: [], lib: ["es2024", "dom"] };
  const files = [join(REPOSITORY, "connector/src/index.ts")];
  const config = join(project, "sdk.json");
  await writeFile(config, JSON.stringify({ extends: join(REPOSITORY, "tsconfig.base.json"), compilerOptions, files }));
  expect(await machine.run(process.execPath, [TSC, "-p", config], project)).toMatchObject({ code: 0, stdout: "" });
});
