import { writeFileSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { KeysFile } from "relay-protocol/contract/keys-file.ts";
import { hashApiKey } from "relay-protocol/signing/api-key.ts";
import { readKeyFile } from "../../connector/src/cli/key-file.ts";
import { newOkpKey, okpKeyOf } from "../../deploy/keys/make.ts";
import { editKeys } from "../../deploy/keys/store.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { keysCommand } from "./commands.ts";

describe("npm run keys", () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let file: string;

  beforeEach(async () => {
    folder = await temporaryFolder();
    file = join(folder.path, "keys.json");
  });

  afterEach(async () => {
    await folder[Symbol.asyncDispose]();
  });

  const keys = (...args: string[]) => keysCommand(file, args);
  const stored = async () => KeysFile.parse(JSON.parse(await readFile(file, "utf8")));

  test("makes an Ed25519 key whose private half only the agent gets", async () => {
    const { code, stdout, stderr } = await keys(
      "new",
      "--listed",
      "--agent",
      "agent://alice",
      "--agent",
      "agent://alice.*",
      "--key-id",
      "alice-1",
    );
    expect(code).toBe(0);

    const [record] = (await stored()).signing_keys;
    const { private_key } = JSON.parse(stdout);
    expect(record).toEqual({
      key_id: "alice-1",
      alg: "ed25519",
      public_key: okpKeyOf("Ed25519", private_key).publicJwk.x,
      agents: ["agent://alice", "agent://alice.*"],
    });
    expect(stderr + (await readFile(file, "utf8"))).not.toContain(private_key);
  });

  test.each([
    ["ed25519", "agent://alice", "agent://alice"],
    ["hmac-sha256", "agent://alice", "agent://alice"],
    ["ed25519", "agent://team.*", "agent://team.1"],
  ])("prints a key file that relay --key takes, and nothing else: %s for %s", async (alg, agents, agent) => {
    const { stdout } = await keys("new", "--listed", "--agent", agents, "--alg", alg, "--key-id", "k-1");
    const keyFile = join(folder.path, "agent.json");
    await writeFile(keyFile, stdout);
    expect(await readKeyFile(keyFile)).toMatchObject({ agent, key: { keyId: "k-1", alg } });
  });

  test("says that no record came, where the command before the pipe made none", async () => {
    const record = join(folder.path, "record.json");
    await writeFile(record, "");
    const { code, stderr } = await keys("add", record);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${record}: No record`)]);
  });

  test.each([
    [
      "add",
      { issuer: "acme", alg: "ed25519", private_key: "SECRET", public_key: "x" },
      "the private file of an issuer",
    ],
    [
      "add-issuer",
      { issuer: "acme", alg: "ed25519", private_key: "SECRET", public_key: "x" },
      "the private file of an issuer",
    ],
    ["add", { agent_id: "agent://bob", key_id: "bob-1", alg: "ed25519", private_key: "SECRET" }, "an agent's key file"],
    ["add", { agent_id: "agent://bob", key_id: "bob-1", alg: "hmac-sha256", secret: "SECRET" }, "an agent's key file"],
    ["add", { issuer: "acme", keys: [], agents: ["agent://acme.*"] }, "npm run keys -- add-issuer"],
    [
      "add-issuer",
      { key_id: "bob-1", alg: "ed25519", public_key: "x", agents: ["agent://bob"] },
      "npm run keys -- add takes it",
    ],
  ])("says what it was given where %s takes another file, and shows nothing of it", async (command, given, said) => {
    const path = join(folder.path, "given.json");
    await writeFile(path, JSON.stringify(given));
    const { code, stderr } = await keys(command, path);
    expect([code, stderr]).toEqual([1, expect.stringContaining(said)]);
    expect(stderr).toContain(`${path}: This is `);
    expect(stderr).not.toContain("SECRET");
  });

  test.each([
    [
      "add-issuer",
      "{}",
      /: .*issuer.*\n {2}issuer is missing.*\n {2}keys is missing.*\n {2}agents is missing.*\n.*relay issuer new/,
    ],
    [
      "add-issuer",
      '{"issuer":"acme","keys":{},"agents":["agent://a",7]}',
      /\n {2}keys: .*\n {2}agents\[1\]: .*\n.*relay issuer new/,
    ],
    ["add-issuer", "[]", /: .*issuer.*\n.*array.*\n.*relay issuer new/],
    ["add-issuer", "{", /JSON.*\n.*relay issuer new/],
    [
      "add",
      '{"alg":"hmac-sha256","secret":"SECRET"}',
      /\n {2}key_id is missing.*\n {2}secret: .*\n.*missing.*\n.*relay keygen/,
    ],
  ])(
    "%s names the file and each wrong field of %s, and shows how a record is written",
    async (command, given, said) => {
      const path = join(folder.path, "given.json");
      await writeFile(path, given);
      const { code, stderr } = await keys(command, path);
      expect([code, stderr]).toEqual([1, expect.stringMatching(said)]);
      expect(stderr).toContain(path);
      expect(stderr).not.toContain("SECRET");
    },
  );

  test.each([
    ["add", { key_id: "bob-1", alg: "ed25519", public_key: "A".repeat(43), agents: ["agent://bob"] }, "public_key"],
    ["add-issuer", { issuer: "acme", keys: [{ public_key: "A".repeat(43) }], agents: ["agent://acme.*"] }, "keys"],
  ])("%s names the member of a record whose key anybody can sign for: %j", async (command, record, member) => {
    const { code, stderr } = await keysCommand(file, [command], JSON.stringify(record));
    expect([code, stderr]).toEqual([1, expect.stringMatching(`The record is not a valid.*\n  ${member}: `)]);
  });

  test("shows nobody a pattern of a program", async () => {
    const record = { key_id: "bob 1", alg: "ed25519", public_key: "x", agents: ["agent://Bob"] };
    const { stderr } = await keysCommand(file, ["add"], JSON.stringify(record));
    expect(stderr).toMatch(/key_id: .*\n {2}public_key: .*\n {2}agents\[0\]: /);
    expect(stderr).not.toMatch(/pattern|\/\^/);
  });

  test("names the first of many wrong fields, and those unknown names alone that are no secret", async () => {
    const secret = "x".repeat(43);
    const unknown = { [secret]: 1, key_idd: 1, "a b": 1 };
    const record = { key_id: "bob-1", alg: "ed25519", agents: Array(200_000).fill(1), ...unknown };
    const { stderr } = await keysCommand(file, ["add"], JSON.stringify(record));
    expect(stderr.length).toBeLessThan(3000);
    expect(stderr).toMatch(/agents\[0\]: .*\n.* more are not shown\./s);
    const { stderr: short } = await keysCommand(file, ["add"], JSON.stringify({ ...record, agents: ["agent://bob"] }));
    expect(short).toContain('unknown names: "key_idd", 2 not shown.');
    expect(stderr + short).not.toContain(secret);
  });

  test("adds a record twice as it adds it once, and no other key of that id", async () => {
    const add = (publicKey: string) => {
      const record = { key_id: "bob-1", alg: "ed25519", public_key: publicKey, agents: ["agent://bob"] };
      return keysCommand(file, ["add", "--wait", "0"], JSON.stringify(record));
    };
    const [one, other] = [newOkpKey("Ed25519").publicJwk.x, newOkpKey("Ed25519").publicJwk.x];
    expect(await add(one)).toMatchObject({ code: 0 });
    const before = await stored();
    expect(await add(one)).toMatchObject({ code: 0, stdout: "" });
    expect(await add(other)).toMatchObject({ code: 1, stdout: "" });
    expect(await stored()).toEqual(before);
  });

  test("makes an HMAC key that ends when it is told to", async () => {
    const { stdout, stderr } = await keys(
      "new",
      "--agent",
      "agent://bob",
      "--alg",
      "hmac-sha256",
      "--expires-at",
      "2999-01-01T00:00:00Z",
    );
    const [record] = (await stored()).signing_keys;
    expect(record).toMatchObject({ alg: "hmac-sha256", agents: ["agent://bob"], expires_at: "2999-01-01T00:00:00Z" });
    const { secret } = JSON.parse(stdout);
    expect(record).toMatchObject({ secret });
    expect(stderr).not.toContain(secret);
    expect(record?.key_id).toMatch(/^bob-[0-9a-f]{6}$/);
  });

  test("prints an API key and nothing else, and keeps only its hash", async () => {
    const { stdout, stderr } = await keys("new-api-key", "--agent", "agent://alice");
    const [, apiKey = ""] = /^(rk_[0-9A-Za-z]{36})\n$/.exec(stdout) ?? [];
    expect(stderr).not.toContain(apiKey);
    expect((await stored()).api_keys).toMatchObject([{ sha256: hashApiKey(apiKey), agents: ["agent://alice"] }]);
    expect(await readFile(file, "utf8")).not.toContain(apiKey);
  });

  test("revokes an API key whose id is like a gateway's, and takes no id of a gateway that cannot be one", async () => {
    const made = await keys("new-api-key", "--agent", "agent://alice", "--key-id", "gateway-prod");
    expect(made.code).toBe(0);
    expect(await keys("revoke", "gateway-prod")).toMatchObject({ code: 0 });
    expect((await keys("list")).stdout).not.toContain("gateway-prod");
    expect(await keys("revoke", "gateway-prod")).toMatchObject({ code: 1 });
  });

  test.each(["gateway", "jkt"])("makes a key with an id that is allowed for agent://%s", async (name) => {
    expect(await keys("new", "--listed", "--agent", `agent://${name}`)).toMatchObject({ code: 0 });
  });

  test("lists every key and no secret, and revokes by id", async () => {
    await keys("new", "--agent", "agent://bob", "--alg", "hmac-sha256", "--key-id", "bob-1");
    await keys("new-api-key", "--agent", "agent://alice", "--key-id", "alice-gateway");
    const before = await stored();
    const list = await keys("list");
    expect(list.stdout).toMatch(/alice-gateway +api-key +agent:\/\/alice +until revoked/);
    expect(list.stdout).toMatch(/bob-1 +hmac-sha256 +agent:\/\/bob/);
    for (const secret of [
      before.api_keys[0]?.sha256,
      before.signing_keys.map((key) => "secret" in key && key.secret)[0],
    ]) {
      expect(list.stdout).not.toContain(secret);
    }

    expect(await keys("revoke", "bob-1")).toMatchObject({ code: 0, stdout: "" });
    expect((await stored()).signing_keys).toEqual([]);
    expect((await stored()).api_keys).toEqual(before.api_keys);
  });

  test("repeats no argument of revoke that is no id: it may be a secret", async () => {
    const { code, stderr } = await keys("revoke", "SECRET");
    expect([code, stderr]).toEqual([1, expect.stringContaining("list shows")]);
    expect(stderr).not.toContain("SECRET");
  });

  test("loses no key when several are made at once", async () => {
    const ids = Array.from({ length: 6 }, (_, index) => `key-${index}`);
    const runs = await Promise.all(
      ids.map((id) => keys("new", "--listed", "--agent", "agent://alice", "--key-id", id)),
    );
    expect(runs.map(({ code }) => code)).toEqual(ids.map(() => 0));
    expect((await stored()).signing_keys.map((key) => key.key_id).sort()).toEqual(ids);
  });

  test("undoes nothing of a command that took over its lock while it stood still, and says so", async () => {
    await keys("new", "--listed", "--agent", "agent://alice");
    const before = await readFile(file, "utf8");
    const edit = editKeys(file, () => {
      writeFileSync(`${file}.lock`, "1 1 elsewhere");
      return KeysFile.parse({});
    });
    await expect(edit).rejects.toThrow(/no longer holds .*keys\.json\.lock: .* another process took over/);
    expect(await readFile(file, "utf8")).toBe(before);
  });

  test("keeps a new file private, the access of one that is there, and leaves nothing beside it", async () => {
    await keys("new-api-key", "--agent", "agent://alice");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await chmod(file, 0o640);
    await keys("new-api-key", "--agent", "agent://alice");
    expect((await stat(file)).mode & 0o777).toBe(0o640);
    expect(await readdir(folder.path)).toEqual(["keys.json"]);
  });

  test("follows a symbolic link and leaves it in place", async () => {
    const real = join(folder.path, "real");
    await mkdir(real);
    await writeFile(join(real, "keys.json"), "{}");
    await symlink("real/keys.json", file);
    await keys("new-api-key", "--agent", "agent://alice");
    expect(JSON.parse(await readFile(join(real, "keys.json"), "utf8")).api_keys).toHaveLength(1);
    expect(await readdir(real)).toEqual(["keys.json"]);
  });

  test.each([
    ["not JSON", '{"api_keys": "rk_secret-in-a-broken-file'],
    [
      "at odds with itself",
      JSON.stringify({
        api_keys: [1, 2].map((n) => ({ id: "twice", sha256: `${n}`.repeat(64), agents: ["agent://a"] })),
      }),
    ],
    ["not a keys file", '{"signing_keys":[{"key_id":"alice-1","alg":"none"}]}'],
  ])("leaves a file that is %s untouched, and shows nothing of it", async (_, text) => {
    await writeFile(file, text);
    const { code, stdout, stderr } = await keys("new", "--listed", "--agent", "agent://alice");
    expect(code).toBe(1);
    expect(stderr).toContain(file);
    expect(stderr).not.toContain("rk_secret");
    expect(stdout).toBe("");
    expect(await readFile(file, "utf8")).toBe(text);
    expect(await readdir(folder.path)).toEqual(["keys.json"]);
  });

  test.each([
    ["an id that is taken", ["new", "--listed", "--agent", "agent://alice", "--key-id", "taken"], 1, "taken"],
    ["a gateway's id", ["new", "--listed", "--agent", "agent://alice", "--key-id", "gateway-1"], 2, "gateway-"],
    ["an agent that is none", ["new", "--listed", "--agent", "agent://Alice"], 1, "agents"],
    ["no agent", ["new", "--listed"], 2, "--agent"],
    ["an unknown algorithm", ["new", "--agent", "agent://alice", "--alg", "rsa"], 2, "ed25519, hmac-sha256"],
    [
      "an end that is past",
      ["new", "--listed", "--agent", "agent://alice", "--expires-at", "2020-01-01T00:00:00Z"],
      2,
      "--expires-at",
    ],
    ["days for a listed key", ["new", "--listed", "--agent", "agent://alice", "--days", "3"], 2, "--expires-at"],
    ["an unknown option", ["list", "--secrets"], 2, "--help"],
    ["an unknown command", ["delete"], 2, "--help"],
    ["one with something behind it", ["addd", "record.json"], 2, "There is no command addd: there are list, add,"],
    ["a record that is not there", ["add", "none.json"], 1, "none.json cannot be read (ENOENT). It is not there"],
    ["a second id to revoke", ["revoke", "taken", "other"], 2, "revoke"],
  ])("refuses %s with words that help, and changes nothing", async (_, args, code, words) => {
    const text = JSON.stringify({ api_keys: [{ id: "taken", sha256: "0".repeat(64), agents: ["agent://alice"] }] });
    await writeFile(file, text);
    expect(await keys(...args)).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(words) });
    expect(await readFile(file, "utf8")).toBe(text);
  });

  test("says so when there is no keys file", async () => {
    expect(await keys("list")).toMatchObject({
      code: 1,
      stderr: `There is no keys file at ${file}. --file or RELAY_KEYS_FILE names the keys file.\n`,
    });
  });

  test.each([
    ["list", "dir", "EISDIR", "It is a folder"],
    ["new-api-key", "dir", "EISDIR", "It is a folder"],
    ["list", "plain/keys.json", "ENOTDIR", "A part of its path is no folder"],
    ["new-api-key", "plain/keys.json", "ENOTDIR", "A part of its path is no folder"],
    ["new-api-key", "none/keys.json", "ENOENT", "Its folder is not there"],
  ])("%s ends with 1, and one line that names the file and what to do: %s, %s", async (command, name, code, advice) => {
    await mkdir(join(folder.path, "dir"));
    await writeFile(join(folder.path, "plain"), "");
    const path = join(folder.path, name);
    const args = command === "list" ? [] : ["--agent", "agent://alice"];
    const said = await keys(command, ...args, "--file", path);
    expect(said).toMatchObject({ code: 1, stdout: "" });
    expect(said.stderr).toMatch(
      new RegExp(`^${path} cannot be \\w+ \\(${code}\\)\\. ${advice}.* RELAY_KEYS_FILE .*\\n$`),
    );
  });

  test("teaches its use with --help", async () => {
    const { code, stdout } = await keys("--help");
    expect(code).toBe(0);
    for (const word of ["new-api-key", "revoke", "RELAY_KEYS_FILE"]) expect(stdout).toContain(word);
    expect(await keys("new", "--help")).toMatchObject({ code: 0, stdout: expect.stringContaining("--expires-at") });
  });
});
