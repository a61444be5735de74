import { chmod, chown, link, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { keysCommand } from "../../../test/local/commands.ts";
import { runProgram } from "../../../test/support/pod-process.ts";
import { markedUtf8, temporaryFolder, UTF_16 } from "../../../test/support/temporary-folder.ts";
import { readKeyFile } from "../../src/cli/library.ts";
import { mcpToken } from "../../src/cli/mcp-token.ts";
import { replacePrivateFile } from "../../src/cli/private-file.ts";
import { Connector } from "../../src/connector.ts";
import { RelayError } from "../../src/errors.ts";
import { sharedByAll } from "../fixture.ts";
import { jsonLines } from "../kit.ts";
import { Shell } from "./shell.ts";

const shell = sharedByAll(new Shell());
const NOWHERE = "http://127.0.0.1:1";

/** `npm run keys`, on a keys file that no relay reads. */
const keys = (args: readonly string[], input?: string) =>
  keysCommand(shell.file("keys.json"), [...args, "--wait", "0"], input);

describe("relay keygen", () => {
  test("prints the record of the key once more, and leaves the key as it is, run again for the same agent", async () => {
    const keygen = ["keygen", "--agent", "agent://gail"];
    const { code, stdout, stderr } = await shell.run(keygen);
    const [key, { private_key }] = [await shell.text("gail.json"), await shell.json("gail.json")];
    expect([code, await shell.mode("gail.json")]).toEqual([0, 0o600]);
    expect(stdout + stderr).not.toContain(private_key);
    expect(JSON.parse(stdout)).toMatchObject({ alg: "ed25519", agents: ["agent://gail"] });
    expect(await shell.run(keygen)).toMatchObject({ code: 0, stdout });
    expect(await shell.text("gail.json")).toBe(key);
  });

  test("never prints the record of an HMAC key, which holds the secret, but writes it to a private file", async () => {
    const keygen = ["keygen", "--json", "--agent", "agent://dave", "--alg", "hmac-sha256", "--key-id", "dave-1"];
    const made = await shell.run(keygen);
    const { secret } = await shell.json("dave.json");
    expect(made).toMatchObject({ code: 0, stdout: "" });
    expect(jsonLines(made.stderr)).toMatchObject([
      { event: "key_file", file: "dave.json", record_file: "dave.record.json" },
      { event: "warning" },
    ]);
    expect(made.stderr).not.toContain(secret);
    expect([await shell.mode("dave.json"), await shell.mode("dave.record.json")]).toEqual([0o600, 0o600]);
    expect((await keys(["add", shell.file("dave.record.json")])).code).toBe(0);
    expect((await shell.json("keys.json")).signing_keys).toContainEqual({
      key_id: "dave-1",
      alg: "hmac-sha256",
      secret,
      agents: ["agent://dave"],
    });
  });

  test("never overwrites a key", async () => {
    await shell.run(["keygen", "--agent", "agent://erin"]);
    const before = await shell.text("erin.json");
    const others = [
      ["agent://frank"],
      ["agent://erin", "--key-id", "erin-2"],
      ["agent://erin", "--alg", "hmac-sha256"],
    ];
    for (const other of others) {
      const again = await shell.run(["keygen", "--json", "--out", "erin.json", "--agent", ...other]);
      expect(again).toMatchObject({ code: 1, stdout: "" });
      expect(jsonLines(again.stderr)).toMatchObject([{ event: "error", code: "failed" }]);
    }
    expect(await shell.text("erin.json")).toBe(before);
  });

  test("tells a key file that the shell emptied, since the record was sent to it, from another key", async () => {
    await shell.write("fay.json", "");
    const emptied = await shell.run(["keygen", "--json", "--agent", "agent://fay"]);
    expect(emptied).toMatchObject({ code: 1, stdout: "" });
    expect(await shell.text("fay.json")).toBe("");
    await shell.write("fay.json", "{}");
    const taken = await shell.run(["keygen", "--json", "--agent", "agent://fay"]);
    expect(taken.code).toBe(1);
    expect(taken.stderr).not.toBe(emptied.stderr);
  });

  test("makes records that keys add refuses when they were tampered with, without quoting them", async () => {
    for (const record of ["no json", '{"key_id":"gateway-x","alg":"hmac-sha256","secret":"c2VjcmV0","agents":[]}']) {
      const { code, stderr } = await keys(["add"], record);
      expect(code).toBe(1);
      expect(stderr).not.toContain("c2VjcmV0");
    }
  });
});

describe("A key file", () => {
  test("gives all that a connector is made of", async () => {
    await shell.run(["keygen", "--agent", "agent://bob", "--out", "bob.json"]);
    const options = await readKeyFile(shell.file("bob.json"));
    expect(options).toMatchObject({ agent: "agent://bob", key: { alg: "ed25519" }, trust: { issuers: [] } });
    expect(options.sealingKeys).toHaveLength(1);
    expect(() => new Connector({ url: NOWHERE, ...options })).not.toThrow();
  });

  test("that is none is refused as the library refuses", async () => {
    const error = await readKeyFile(shell.file("none.json")).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(RelayError);
    expect(error).toMatchObject({ code: "invalid_key" });
  });

  test.each([
    [{ alg: "ed25519", private_key: "AAAA" }, "has a private_key that is not the 32 bytes"],
    [{ alg: "ed25519", private_key: "no base64url" }, "has a private_key that is not the 32 bytes"],
    [{ alg: "hmac-sha256", secret: "AAAA" }, "has a secret that is not 32 bytes or more"],
  ])("whose key cannot be used is told by the member of the file: %j", async (key, why) => {
    await shell.write("short.json", { agent_id: "agent://bob", key_id: "bob-1", ...key });
    const error = await readKeyFile(shell.file("short.json")).catch((error: RelayError) => error);
    expect(error).toMatchObject({ code: "invalid_key", message: expect.stringContaining(why) });
    expect((error as RelayError).hint).not.toMatch(/privateKey|browser/);
  });

  test("has a content that is no key, and what is no list is no sealingKeys", async () => {
    await shell.run(["keygen", "--agent", "agent://carol", "--out", "carol.json"]);
    const options = await readKeyFile(shell.file("carol.json"));
    const content = JSON.parse(await readFile(shell.file("carol.json"), "utf8"));
    expect(() => new Connector({ url: NOWHERE, agent: options.agent, key: content })).toThrow(TypeError);
    expect(() => new Connector({ url: NOWHERE, ...options, sealingKeys: "key" as never })).toThrow(/sealingKeys/);
  });
});

describe("A key file that gets another content", () => {
  const SOURCE = new URL("../../src/cli/private-file.ts", import.meta.url).href;
  const NOBODY = 65_534;
  /** Root alone can give files away, and become another user. */
  const asRoot = process.getuid?.() === 0 ? test : test.skip;

  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let file: string;

  beforeEach(async () => {
    folder = await temporaryFolder();
    file = join(folder.path, "bob.json");
  });
  afterEach(async () => {
    await folder[Symbol.asyncDispose]();
  });

  test("keeps its mode, and the link that leads to it", async () => {
    await writeFile(join(folder.path, "target.json"), "{}", { mode: 0o640 });
    await symlink("target.json", file);
    await replacePrivateFile(file, { key_id: "new" });
    expect(JSON.parse(await readFile(join(folder.path, "target.json"), "utf8"))).toEqual({ key_id: "new" });
    expect((await stat(file)).mode & 0o777).toBe(0o640);
    expect(await readdir(folder.path)).toEqual(["bob.json", "target.json"]);
  });

  asRoot("keeps its owner where root writes it, so that the agent that runs can read it", async () => {
    await writeFile(file, "{}", { mode: 0o600 });
    await chown(file, NOBODY, NOBODY);
    await replacePrivateFile(file, { key_id: "new" });
    const { uid, gid } = await stat(file);
    expect([uid, gid]).toEqual([NOBODY, NOBODY]);
  });

  asRoot("stays as it is where a user writes it who cannot give it its owner", async () => {
    await writeFile(file, "{}", { mode: 0o644 });
    await chown(folder.path, NOBODY, NOBODY);
    // It loads what it needs first: the repository may be root's alone.
    const program = `const { replacePrivateFile } = await import(${JSON.stringify(SOURCE)});
      process.setegid(${NOBODY}); process.seteuid(${NOBODY});
      await replacePrivateFile(${JSON.stringify(file)}, {}).catch(({ message }) => console.log(message));`;
    const { stdout } = await runProgram(process.execPath, ["--input-type=module", "--eval", program]);
    expect(stdout).toMatch(/bob\.json belongs to user 0 and group 0, .* it was not changed\.\n$/);
    expect([await readFile(file, "utf8"), await readdir(folder.path)]).toEqual(["{}", ["bob.json"]]);
  });
});

describe("The token of a file that relay mcp is given", () => {
  const OWN = process.getuid?.() as number;
  const IS_ROOT = OWN === 0;
  const TOKEN = "t".repeat(40);

  /** @param change what another user did to the file, or made in its place; gives the file that is named then. */
  async function tokenOf(change: (file: string) => Promise<string>, user = OWN): Promise<string> {
    await using folder = await temporaryFolder();
    const file = join(folder.path, "token");
    await writeFile(file, TOKEN, { mode: 0o600 });
    return (await mcpToken(await change(file), {}, user)).token;
  }

  /** Only root can give a file away. */
  async function given(file: string, owner: number): Promise<string> {
    if (owner !== OWN) await chown(file, owner, owner);
    return file;
  }

  test("is taken from one's own, root's from root's", async () => {
    expect(await tokenOf(async (file) => file)).toBe(TOKEN);
  });

  const encoding = (encoded: (text: string) => Buffer) => async (file: string) => {
    await writeFile(file, encoded(`${TOKEN}\n`));
    return file;
  };

  test("may have a byte order mark and the line end of Windows", async () => {
    expect(await tokenOf(encoding(markedUtf8))).toBe(TOKEN);
  });

  test.each(UTF_16)("is not taken from a file in %s, which is named", async (_, encoded) => {
    const refused = { code: "usage", message: expect.stringMatching(/token is not UTF-8\.$/) };
    await expect(tokenOf(encoding(encoded))).rejects.toMatchObject(refused);
  });

  test("is not taken from another user's, who knows it, though that is root", async () => {
    const [user, owner] = IS_ROOT ? [OWN, 1000] : [OWN + 1, OWN];
    await expect(tokenOf((file) => given(file, owner), user)).rejects.toMatchObject({ code: "usage" });
    await expect(tokenOf((file) => given(file, OWN), 1000)).rejects.toMatchObject({ code: "usage" });
  });

  test.each([
    ["a link to one's own", /is a link/, (file: string) => symlink(file, `${file}.named`)],
    ["a further name of one's own", /several links/, (file: string) => link(file, `${file}.named`)],
  ])("is not taken from %s, whose maker may know what it has", async (_, message, make) => {
    const named = async (file: string) => {
      await make(file);
      return `${file}.named`;
    };
    await expect(tokenOf(named)).rejects.toMatchObject({ code: "usage", message: expect.stringMatching(message) });
  });

  test("is not taken from what is no file", async () => {
    const refused = { code: "usage", message: expect.stringContaining("no regular file") };
    await expect(tokenOf(async (file) => join(file, ".."))).rejects.toMatchObject(refused);
  });

  test.each([0o640, 0o604, 0o620])(
    "is not taken from one that others can use, which is told how to mend (%s)",
    async (mode) => {
      const shared = async (file: string) => {
        await chmod(file, mode);
        return file;
      };
      await expect(tokenOf(shared)).rejects.toMatchObject({
        code: "usage",
        hint: expect.stringContaining("chmod 600"),
      });
    },
  );
});
