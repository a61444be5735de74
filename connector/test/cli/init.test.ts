import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { copyFile, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { WebSocketServer } from "ws";
import { TestIssuer } from "../../../test/support/issuer.ts";
import { connectorIn, madePackages } from "../../../test/support/packages.ts";
import { serveWhole } from "../../../test/support/relay.ts";
import { until } from "../../../test/support/until.ts";
import { given } from "../../../test/support/use-relay.ts";
import { LANGUAGES, type Language, pastedCommands, relayIssuers } from "../../src/cli/commands/init.ts";
import { RelayHttp } from "../../src/cli/relay-http.ts";
import { sharedByAll } from "../fixture.ts";
import { jsonLines, Stage } from "../kit.ts";
import { nowhere, Process, Shell } from "./shell.ts";

describe("relay init", () => {
  const stage = sharedByAll(new Stage());
  const shell = sharedByAll(new Shell());
  const acme = new TestIssuer("acme");
  const issuer = acme.record(["agent://acme.*"]) as { agents: string[] };
  const relay = given(async () => {
    await stage.relay.writeKeys({ issuers: [issuer] });
    return await serveWhole(stage.relay, { RELAY_PACKAGES_DIR: await madePackages() });
  }, 60_000);

  const init = (args: string[], env: Record<string, string> = {}) =>
    shell.run(["init", "--json", ...args], { env: { RELAY_URL: relay.url, ...env } });

  const textOf = (...path: string[]) => readFile(join(shell.folder, ...path), "utf8");

  /** What answers this to whatever it is asked. */
  async function answering(body: object) {
    const server = createServer((_, response) => response.end(JSON.stringify(body)));
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const { port } = server.address() as { port: number };
    const close = () => new Promise<void>((closed) => server.close(() => closed()));
    return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: close };
  }

  /** Why it was refused, once nothing was written. */
  async function refusal(args: string[], env?: Record<string, string>) {
    const before = await readdir(shell.folder, { recursive: true });
    const { code, stdout, stderr } = await init(args, env);
    expect(stdout).toBe("");
    expect(await readdir(shell.folder, { recursive: true })).toEqual(before);
    const [error] = jsonLines(stderr);
    return { exitCode: code, code: error.code, message: error.message, hint: error.hint };
  }

  /** What git would put into a first commit. */
  async function committed(folder: string): Promise<string[]> {
    const cwd = join(shell.folder, folder);
    const git = async (...args: string[]) => (await promisify(execFile)("git", args, { cwd })).stdout;
    await git("init", "--quiet");
    return (await git("ls-files", "--others", "--exclude-standard", "-z")).split("\0").filter(Boolean);
  }

  test.each(["typescript", "python"])("writes an agent in %s, and a key that git does not see", async (language) => {
    const name = `new-${language}`;
    const { code, stdout } = await init([`deep/${name}`, "--language", language]);
    const [{ files, ...result }] = jsonLines(stdout);
    expect({ code, ...result }).toMatchObject({ code: 0, ok: true, agent_id: `agent://${name}`, key_file: "key.json" });
    const folder = join("deep", name);
    expect((await readdir(shell.file(folder))).sort()).toEqual(files);
    expect(await shell.mode(join(folder, "key.json"))).toBe(0o600);
    expect((await committed(folder)).sort()).toEqual(files.filter((file: string) => file !== "key.json"));
    for (const file of files) expect(await textOf(folder, file)).not.toContain("{{");
    const key = await shell.json(join(folder, "key.json"));
    const { key_id, agents } = await shell.json(join(folder, "record.json"));
    expect([key.agent_id, key.key_id]).toEqual([agents[0], key_id]);
  });

  test("writes TypeScript where no language is named, for the agent that is named", async () => {
    const { stdout } = await init(["named", "--agent", "agent://carol"]);
    expect(jsonLines(stdout)).toMatchObject([{ agent_id: "agent://carol", language: "typescript" }]);
  });

  test("takes packages from the relay alone, by addresses that it answers", async () => {
    for (const language of ["typescript", "python"]) await init([`at-${language}`, "--language", language]);
    const texts = [await textOf("at-typescript", "package.json"), await textOf("at-python", "requirements.txt")];
    const addresses = texts.flatMap((text) => text.match(/http[^"\s]+/g) ?? []);
    expect(addresses).toHaveLength(3);
    for (const address of addresses) {
      expect(address.startsWith(`${relay.url}/packages/`)).toBe(true);
      const answer = await fetch(address);
      await answer.arrayBuffer();
      expect(answer.status).toBe(200);
    }
    const wheel = addresses.find((address) => address.includes(".whl")) as string;
    const content = Buffer.from(await (await fetch(wheel)).arrayBuffer());
    expect(wheel.split("#sha512=")[1]).toBe(createHash("sha512").update(content).digest("hex"));
    const { dependencies, devDependencies } = JSON.parse(texts[0] as string);
    const ours = Object.entries({ ...dependencies, ...devDependencies }).filter(([name]) => name.includes("relay"));
    expect(ours.map(([, version]) => String(version).startsWith(relay.url))).toEqual([true, true]);
  });

  test("compiles with the TypeScript that the repository is checked with", async () => {
    await init(["compiled"]);
    const { devDependencies } = JSON.parse(await textOf("compiled", "package.json"));
    const own = JSON.parse(await readFile(new URL("../../../package.json", import.meta.url), "utf8"));
    expect(devDependencies).toMatchObject({
      typescript: own.dependencies.typescript,
      "@types/node": own.devDependencies["@types/node"],
    });
  });

  test("makes an agent that trusts the issuers of a relay on this machine", async () => {
    const { stdout } = await init(["trusting"]);
    expect((await shell.json("trusting/key.json")).trusted_issuers).toMatchObject([issuer]);
    expect(jsonLines(stdout)).toMatchObject([{ trusted_issuers: [issuer] }]);
  });

  test("trusts the issuer of a relay elsewhere that is named, and nobody by itself", async () => {
    const http = new RelayHttp("https://relay.example", { env: {}, signal: new AbortController().signal });
    http.get = async () => ({ issuers: [issuer] });
    expect(await relayIssuers(http, [])).toEqual([]);
    expect(await relayIssuers(http, ["acme", "acme"])).toEqual([issuer]);
    const anybody = { ...issuer, agents: [...issuer.agents, "*"] };
    const onThisMachine = Object.assign(new RelayHttp(undefined, { env: {}, signal: new AbortController().signal }), {
      get: async () => ({ issuers: [anybody] }),
    });
    expect(await relayIssuers(onThisMachine, [])).toEqual([issuer]);
    const local = { env: { RELAY_URL: "wss://relay.example", RELAY_HTTP_URL: "http://127.0.0.1:1" } };
    const split = new RelayHttp(undefined, { ...local, signal: new AbortController().signal });
    expect(await relayIssuers(split, [])).toEqual([]);
  });

  test("trusts no issuer that stands twice in the manifest of the relay, which would have two meanings", async () => {
    const http = new RelayHttp("https://relay.example", { env: {}, signal: new AbortController().signal });
    http.get = async () => ({ issuers: [issuer, { ...issuer, agents: ["*"] }] });
    await expect(relayIssuers(http, ["acme"])).rejects.toMatchObject({ code: "not_found" });
  });

  test.each(["typescript", "python"])(
    "prints and writes an address that a shell would act on as one word, in %s",
    async (language) => {
      const integrity = `sha512-${"A".repeat(86)}==`;
      const packages = Object.values(LANGUAGES[language as Language]).map((name) => ({
        name,
        path: "/packages/a.tgz",
        integrity,
      }));
      await using server = await answering({ ok: true, packages });
      const url = `${server.url}/$(touch)`;
      const folder = `hostile-${language}`;
      const { stdout } = await shell.run(["init", folder, "--language", language, "--url", url]);
      for (const text of [stdout, await textOf(folder, "README.md")]) {
        const unquoted = text
          .split("\n")
          .filter((line) => line.includes("npx"))
          .join("\n")
          .replace(/'[^']*'/g, "");
        expect(unquoted).not.toContain("touch");
      }
    },
  );

  test("refuses an issuer that the relay does not admit, and one for a key file that is there", async () => {
    expect(await refusal(["nobody", "--trust-issuer", "nobody"])).toMatchObject({ code: "not_found" });
    expect(await refusal(["kept", "--key", "key.json", "--trust-issuer", "acme"])).toMatchObject({ code: "usage" });
  });

  test("prints what is to be done next, as its README says", async () => {
    const { code, stdout } = await shell.run(["init", "next steps", "--agent", "agent://next", "--url", relay.url]);
    expect(code).toBe(0);
    expect(stdout).toContain("cd 'next steps'\n");
    const commands = pastedCommands(await textOf("next steps", "README.md"), process.execPath);
    expect(commands).toHaveLength(4);
    for (const line of commands) expect(stdout).toContain(`  ${line}\n`);
  });

  test("never overwrites a file, and says which one stands in the way", async () => {
    await mkdir(shell.file("taken"));
    await writeFile(shell.file("taken/README.md"), "mine");
    await symlink("nowhere", shell.file("taken/key.json"));
    const refused = await refusal(["taken"]);
    expect(refused).toMatchObject({ exitCode: 1, code: "failed" });
    for (const name of ["README.md", "key.json"]) expect(refused.message).toContain(name);
    expect(refused.message).not.toContain("agent.ts");
    expect(await textOf("taken", "README.md")).toBe("mine");
    expect((await refusal(["taken/README.md", "--agent", "agent://bob"])).exitCode).toBe(1);
  });

  test("copies a template without what Python compiled beside it", async () => {
    const packages = await madePackages();
    const archive = join(packages, (await connectorIn(packages)).file);
    await promisify(execFile)("tar", ["-xzf", archive], { cwd: shell.folder });
    await mkdir(shell.file("package/templates/python/__pycache__"));
    await writeFile(shell.file("package/templates/python/__pycache__/main.cpython-313.pyc"), "compiled");
    const line = ["package/bin/relay.js", "init", "--json", "uncompiled", "--language", "python", "--url", relay.url];
    const { stdout } = await promisify(execFile)(process.execPath, line, { cwd: shell.folder });
    const [{ files }] = jsonLines(stdout);
    expect(files).toContain("main.py");
    expect((await readdir(shell.file("uncompiled"))).sort()).toEqual(files);
  });

  test("writes beside files that are not in its way", async () => {
    await mkdir(shell.file("beside"));
    await writeFile(shell.file("beside/LICENSE"), "mine");
    expect((await init(["beside"])).code).toBe(0);
  });

  test("uses the key that it is given, copies it nowhere, and hides it from git where it lies in the folder", async () => {
    const odd = "in/!odd [key]#.json";
    await mkdir(shell.file("in"));
    for (const file of ["out.json", odd]) await shell.run(["keygen", "--agent", "agent://bob", "--out", file]);
    const { private_key } = await shell.json("out.json");
    const outside = jsonLines((await init(["given", "--key", "out.json"])).stdout)[0];
    expect(outside).toMatchObject({ agent_id: "agent://bob", key_file: "../out.json" });
    for (const file of await readdir(shell.file("given")))
      expect(await textOf("given", file)).not.toContain(private_key);
    const inside = jsonLines((await init(["in"], { RELAY_KEY_FILE: odd })).stdout)[0];
    expect(inside).toMatchObject({ agent_id: "agent://bob", key_file: "!odd [key]#.json" });
    expect((await committed("in")).sort()).toEqual(inside.files);
  });

  test("refuses what it cannot make sense of, with a hint", async () => {
    await shell.run(["keygen", "--agent", "agent://bob", "--out", "bob.json"]);
    const usage = { exitCode: 2, code: "usage" };
    const pyton = await refusal(["a", "--language", "pyton"]);
    expect(pyton).toMatchObject({ ...usage, hint: expect.stringContaining("python") });
    expect(await refusal(["a", "--langage", "python"])).toMatchObject({
      ...usage,
      hint: expect.stringContaining("--language"),
    });
    expect(await refusal(["No Agent"])).toMatchObject({ ...usage, message: expect.stringContaining("--agent") });
    for (const args of [
      ["a", "b"],
      ["a", "--agent", "bob"],
      ["a", "--agent", "agent://al", "--key", "bob.json"],
    ])
      expect({ args, ...(await refusal(args)) }).toMatchObject({ args, ...usage, hint: expect.stringMatching(/./) });
    expect(await refusal(["a", "--key", "none.json"])).toMatchObject({ exitCode: 7, code: "invalid_key" });
  });

  test("writes nothing without a relay that hands out what the project needs", async () => {
    expect(await refusal(["a", "--url", await nowhere()])).toMatchObject({ exitCode: 4, code: "unreachable" });
    const bare = await serveWhole(stage.relay);
    expect(await refusal(["a", "--url", bare.url])).toMatchObject({ exitCode: 3, code: "not_found" });
    await bare.stop();
  });

  test.each(['/packages/a"b.tgz', "/packages/../x.tgz", "//elsewhere.example/a.tgz", "/packages/a b.tgz\n-r other"])(
    "takes no package from a path such as %j, whatever the relay says",
    async (path) => {
      const integrity = `sha512-${"A".repeat(86)}==`;
      const packages = ["agent-relay-connector", "agent-relay-testing"].map((name) => ({ name, path, integrity }));
      await using server = await answering({ ok: true, packages });
      expect(await refusal(["a", "--url", server.url])).toMatchObject({ code: "not_found" });
    },
  );
});

describe("The commands that are printed for a new project", () => {
  const OWN = "/usr/bin/node";
  const BORROWED = "/root/.npm/_npx/0123456789abcdef/node_modules/node/bin/node";
  const WITH_NODE = "npx --yes --package=node@24";

  async function commandsOn(language: string, execPath: string, version: string): Promise<string[]> {
    const readme = await readFile(new URL(`../../templates/${language}/README.md`, import.meta.url), "utf8");
    return pastedCommands(readme, execPath, version).map((line) =>
      line.replace(/\s+#.*$/, "").replace(/ --key .*$/, ""),
    );
  }

  /** The line that tests an agent in Python on a relay of its own. */
  async function relayLineOn(execPath: string, version: string): Promise<string> {
    const lines = await commandsOn("python", execPath, version);
    return lines.find((line) => line.includes(" with-relay ")) as string;
  }

  test("are those of its README where the machine's own Node runs", async () => {
    const commands = await commandsOn("typescript", OWN, "24.0.0");
    expect(commands).toEqual(["npm install", "npm test", "npx --no relay check", "npm start"]);
    expect(await relayLineOn(OWN, "24.0.0")).toMatch(/^npx --yes --package=\{\{testing_word\}\} with-relay /);
  });

  test("bring a Node also where npm brought it, since the machine's is too old", async () => {
    expect(await commandsOn("typescript", "/home/ann/relay/node_modules/node/bin/node", "24.0.0")).toContain(
      `${WITH_NODE} -- npm start`,
    );
    expect(await commandsOn("typescript", BORROWED, "24.0.0")).toEqual([
      `${WITH_NODE} -- npm install`,
      `${WITH_NODE} -- npm test`,
      `${WITH_NODE} -- relay check`,
      `${WITH_NODE} -- npm start`,
    ]);
    expect(await relayLineOn(BORROWED, "24.0.0")).toMatch(
      /^npx --yes --package=node@24 --package=\{\{testing_word\}\} with-relay /,
    );
  });

  test("bring one for the tests alone where the machine's own is too old for nothing else", async () => {
    const commands = await commandsOn("typescript", OWN, "22.18.0");
    expect(commands).toEqual(["npm install", `${WITH_NODE} -- npm test`, "npx --no relay check", "npm start"]);
    expect(await relayLineOn(OWN, "22.18.0")).toMatch(
      /^npx --yes --package=node@24 --package=\{\{testing_word\}\} with-relay /,
    );
  });
});

describe("The agent in TypeScript that relay init writes", () => {
  const CONNECTOR = new URL("../../", import.meta.url);

  /** What console.log and its like would fill in: with the next argument, or with nothing. */
  const SAID = "100%s of %d, %o, %j, %c and %%.";

  /** A relay that accepts all, and says something of nothing. */
  class TalkingRelay extends Shell {
    readonly #http = createServer((_, answer) => answer.end(JSON.stringify({ status: "offline" })));
    #server: WebSocketServer | undefined;
    #url = "";

    override async start(): Promise<void> {
      await super.start();
      await this.#writeAgent();
      this.#http.listen(0, "127.0.0.1");
      await once(this.#http, "listening");
      this.#server = new WebSocketServer({ server: this.#http });
      this.#url = `ws://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
      this.#server.on("connection", (socket) => {
        const tell = (frame: object) => socket.send(JSON.stringify(frame));
        tell({ frame: "hello", server_time: Date.now() });
        socket.on("message", (text) => {
          tell({ frame: "ack", accepted: true, envelope_id: JSON.parse(String(text)).id });
          tell({ frame: "error", code: "over_capacity", message: SAID, hint: SAID });
        });
      });
    }

    /** The agent that relay init writes, begun. */
    beginAgent(keyFile = "key.json"): Process {
      const env = { RELAY_URL: this.#url, RELAY_KEY_FILE: keyFile };
      return new Process(["main.ts"], { cwd: this.folder, env });
    }

    override async stop(): Promise<void> {
      for (const socket of this.#server?.clients ?? []) socket.terminate();
      this.#server?.close();
      this.#http.close();
      await super.stop();
    }

    async #writeAgent(): Promise<void> {
      await this.run(["keygen", "--agent", "agent://alice", "--out", "key.json"]);
      for (const file of ["main.ts", "agent.ts"])
        await copyFile(new URL(`templates/typescript/${file}`, CONNECTOR), this.file(file));
      await mkdir(this.file("node_modules"));
      await symlink(fileURLToPath(CONNECTOR), this.file("node_modules/agent-relay-connector"));
    }
  }

  const relay = sharedByAll(new TalkingRelay());

  test("says that it is online, and ends with a signal", async () => {
    const agent = relay.beginAgent();
    await until("it is online", () => agent.stdout.includes("agent://alice is online\n"));
    expect(await agent.end("SIGTERM")).toBe(0);
  });

  test("shows what a relay says as it is, as no format", async () => {
    const agent = relay.beginAgent();
    await agent.wrote(`${SAID} ${SAID}\n`).finally(() => agent.end("SIGKILL"));
  });

  test.each([
    ["is missing", "missing.json", "cannot be read (ENOENT)"],
    ["is no key file", "package.json", "has no valid agent_id"],
  ])("says in one line that its key file %s, and ends with 1", async (_, keyFile, why) => {
    await relay.write("package.json", { type: "module" });
    const agent = relay.beginAgent(keyFile);
    expect(await agent.end()).toBe(1);
    expect(agent.stderr.trimEnd().split("\n")).toEqual([expect.stringContaining(`The key file ${keyFile} ${why}`)]);
  });
});
