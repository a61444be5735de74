import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { watchLeaks } from "../../../test/support/leaks.ts";
import { until } from "../../../test/support/until.ts";
import { CommandLine, jsonLines, nowhere } from "./kit.ts";

const KEYS = fileURLToPath(new URL("../../../deploy/keys.ts", import.meta.url));
const line = new CommandLine("alice", "bob-hmac");
const noLeaks = watchLeaks();

beforeAll(() => line.start());
afterEach(() => line.clear());
afterAll(async () => {
  await line.stop();
  await noLeaks();
});

/** `npm run keys`, on the keys file of the relay. */
async function keys(args: string[], stdin = "") {
  const child = spawn(process.execPath, [KEYS, ...args], { env: { RELAY_KEYS_FILE: line.stage.relay.keysFile } });
  child.stdin.end(stdin);
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
  return { code, said };
}

const file = (name: string) => join(line.folder, name);
const mode = async (name: string) => (await stat(file(name))).mode & 0o777;

describe("relay keygen", () => {
  test("makes a key that, once its record is added, passes check and listens", async () => {
    const made = await line.run(["keygen", "--agent", "agent://carol"]);
    const secret = JSON.parse(await readFile(file("carol.json"), "utf8")).private_key;
    expect(made.code).toBe(0);
    expect(made.stdout + made.stderr).not.toContain(secret);
    expect(await mode("carol.json")).toBe(0o600);

    const before = await line.run(["check", "--key", "carol.json"]);
    expect(before).toMatchObject({ code: 7, stdout: expect.stringMatching(/fault signature .*key/) });
    expect(await keys(["add"], made.stdout)).toEqual({ code: 0, said: "" });
    expect(await line.run(["check", "--key", "carol.json"])).toMatchObject({ code: 0 });
    const check = ["check", "--key", "carol.json", "--register"];
    await until("the key is in force", async () => (await line.run(check)).code === 0, 15_000);
    await line.listen("carol");
    expect(await keys(["add"], made.stdout)).toEqual({ code: 1, said: expect.stringContaining("already") });
  }, 30_000);

  test("never prints the record of an HMAC key, which holds the secret, but writes it to a private file", async () => {
    const made = await line.run(["keygen", "--agent", "agent://dave", "--alg", "hmac-sha256", "--key-id", "dave-1"]);
    const { secret } = JSON.parse(await readFile(file("dave.json"), "utf8"));
    expect(made).toMatchObject({ code: 0, stdout: "", stderr: expect.stringContaining("Both files hold the secret") });
    expect(made.stderr).not.toContain(secret);
    expect([await mode("dave.json"), await mode("dave.record.json")]).toEqual([0o600, 0o600]);
    expect((await keys(["add", file("dave.record.json")])).code).toBe(0);
    const stored = JSON.parse(await readFile(line.stage.relay.keysFile, "utf8"));
    expect(stored.signing_keys).toContainEqual({
      key_id: "dave-1",
      alg: "hmac-sha256",
      secret,
      agents: ["agent://dave"],
    });
  });

  test("never overwrites a key", async () => {
    await line.run(["keygen", "--agent", "agent://erin"]);
    const before = await readFile(file("erin.json"), "utf8");
    const again = await line.run(["keygen", "--agent", "agent://erin"]);
    expect(again).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("exists already") });
    expect(await readFile(file("erin.json"), "utf8")).toBe(before);
  });

  test("makes records that keys add refuses when they were tampered with, without quoting them", async () => {
    for (const record of ["no json", '{"key_id":"gateway-x","alg":"hmac-sha256","secret":"c2VjcmV0","agents":[]}']) {
      const { code, said } = await keys(["add"], record);
      expect(code).toBe(1);
      expect(said).not.toContain("c2VjcmV0");
    }
  });
});

describe("relay check", () => {
  test("finds nothing wrong, step by step, and registers nobody", async () => {
    const { code, stdout, stderr } = await line.run(["check", "--key", line.keyFile("alice")]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.match(/^ok +\w+/gm)?.map((row) => row.split(/ +/)[1])).toEqual([
      "key",
      "relay",
      "ready",
      "websocket",
      "clock",
      "signature",
    ]);
    expect((await line.run(["status", "--json", "agent://alice"])).stdout).toContain('"status":"not_seen"');
  });

  test("says what is wrong with a key that the relay knows by another's name", async () => {
    const { alg: _, ...alice } = JSON.parse(await readFile(line.keyFile("alice"), "utf8"));
    await writeFile(file("odd.json"), JSON.stringify({ ...alice, alg: "ed25519", agent_id: "agent://bob-hmac" }), {
      mode: 0o600,
    });
    const { code, stdout } = await line.run(["check", "--json", "--key", "odd.json"]);
    expect(code).toBe(7);
    const [{ ok, steps }] = jsonLines(stdout);
    expect(ok).toBe(false);
    expect(steps.at(-1)).toMatchObject({
      step: "signature",
      ok: false,
      message: expect.stringContaining("may not sign"),
    });
  });

  test("goes no further than a relay that does not answer", async () => {
    const { code, stdout } = await line.run(["check", "--url", await nowhere(), "--key", line.keyFile("alice")]);
    expect(code).toBe(4);
    expect(stdout).toMatch(/^ok +key .*\nfault relay .*nothing listens there/);
    expect(stdout.split("\n")).toHaveLength(4);
  });

  test("says when the relay has lost its Redis, and still checks the signature", async () => {
    await line.stage.relay.redis.kill();
    const { code, stdout } = await line.run(["check", "--key", line.keyFile("alice")]);
    await line.stage.relay.redis.start();
    expect(code).toBe(4);
    expect(stdout).toMatch(/fault ready .*Redis/);
    expect(stdout).toMatch(/ok +signature/);
  });
});

describe("relay status", () => {
  test("shows agents and the relay's counts", async () => {
    await line.listen("alice");
    const seen = async () => (await line.run(["status", "agent://alice", "agent://nobody"])).stdout;
    await until("alice is online", async () => (await seen()).includes("agent://alice  online"));
    expect(await seen()).toMatch(
      /agent:\/\/nobody +not_seen +not heard of\nhttp\S+: 1 online, \d+ stale, 0 offline\.\n$/,
    );
  });
});

describe("relay", () => {
  test("teaches: every command has help, with its exit code 0, and says what to do about a wrong line with 2", async () => {
    const { code, stdout } = await line.run(["--help"]);
    const commands = [...stdout.matchAll(/^ {2}relay (\w+) {2,}[A-Z]/gm)].map(([, name]) => name as string);
    expect(code).toBe(0);
    expect(commands).toEqual(["keygen", "check", "listen", "send", "request", "approve", "reject", "status", "mcp"]);
    for (const name of commands) {
      const help = await line.run([name, "--help"]);
      expect([help.code, help.stdout, help.stderr]).toEqual([
        0,
        expect.stringMatching(new RegExp(`^relay ${name}`)),
        "",
      ]);
    }
    for (const words of [
      ["fly"],
      ["send", "--fly"],
      ["listen", "word"],
      ["listen", "--reply"],
      ["request", "agent://bob"],
    ]) {
      expect(await line.run(words)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("--") });
    }
  });

  test("has the exit codes that its README lists", async () => {
    const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");
    const table = /<!-- exit codes[\s\S]*?<!-- \/exit codes -->/.exec(readme)?.[0] ?? "";
    const { stdout } = await line.run(["--help"]);
    const listed = [...table.matchAll(/^\| (\d+) \| (.*) \|$/gm)].map(([, code, words]) => [code, words]);
    expect(listed.length).toBeGreaterThan(0);
    expect([...stdout.matchAll(/^ {2}(\d+) +(.*)$/gm)].map(([, code, words]) => [code, words])).toEqual(listed);
  });

  test("says in plain words when Node is too old for it", async () => {
    const bin = fileURLToPath(new URL("../../bin/relay.mjs", import.meta.url));
    const old = 'Object.defineProperty(process, "versions", { value: { node: "20.1.0" } });';
    const args = ["--import", `data:text/javascript,${encodeURIComponent(old)}`, bin, "--help"];
    const [error, stderr] = await new Promise<[Error | null, string]>((done) =>
      execFile(process.execPath, args, (error, _, stderr) => done([error, stderr])),
    );
    expect(error).toMatchObject({ code: 1 });
    expect(stderr).toMatch(/^relay needs Node 22\.18 or later; .*npx relay.*\n$/);
  });
});
