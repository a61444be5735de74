import { execFileSync } from "node:child_process";
import { chmod, chown, link, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { keysCommand } from "../../../test/local/commands.ts";
import { runProgram } from "../../../test/support/pod-process.ts";
import {
  markedUtf8,
  temporaryFolder,
  UNMARKED_UTF_16,
  UTF_16,
  utf16le,
} from "../../../test/support/temporary-folder.ts";
import { mcpToken } from "../../src/cli/commands/mcp.ts";
import { decodeText, replacePrivateFile } from "../../src/cli/files.ts";
import { readKeyFile } from "../../src/cli/library.ts";
import { Connector } from "../../src/connector.ts";
import { RelayError } from "../../src/errors.ts";
import { buildReceipt, requestDigest } from "../../src/receipts/receipt.ts";
import { BOB, credential, envelopeOf, ISSUER, newKeys, RECORD, sessionOf } from "../credentials/kit.ts";
import { shared } from "../fixture.ts";
import { jsonLines, next } from "../kit.ts";
import { CommandLine } from "./shell.ts";

/** Files that commands read and write: how they are encoded, and who may read them. */

const LIBRARY = new URL("../../src/cli/library.ts", import.meta.url).href;

type Encoding = (text: string) => Buffer;

const line = shared(new CommandLine("alice", "bob-hmac"));
const LISTENER = "agent://bob-hmac";
const hint = "Write it as UTF-8, in PowerShell with Set-Content -Encoding utf8.";

const AGENT = "agent://acme.bob";
const KEYS = { alg: "ed25519", private_key: BOB.d };
const { token } = await credential();
const TEXTS = {
  "issuer.json": textOf({ issuer: "acme", alg: "ed25519", private_key: ISSUER.d, public_key: ISSUER.x }),
  "public.json": textOf({ key_id: "bob-1", alg: "ed25519", public_key: BOB.x, agents: [AGENT] }),
  "bob.credential": `${token}\n`,
  "bob.json": textOf({ agent_id: AGENT, key_id: "bob-1", ...KEYS }),
  "acme.json": textOf(RECORD),
  "receipt.json": textOf(await receipt()),
};
const ISSUE = ["issue", "--issuer", "issuer.json", "--agent", AGENT, "--key", "public.json"];
const CREDENTIAL = ["credential", "bob.credential", "--key", "bob.json", "--trust", "acme.json"];
const VERIFY = ["verify", "receipt.json", "--issuer", "acme.json"];

/** What is reported of a file, or of standard input. */
function inUtf16(origin: string, code = "usage"): object {
  return { event: "error", code, message: `relay: ${origin} is not UTF-8. ${hint}`, hint };
}

function textOf(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

async function receipt(): Promise<object> {
  const alice = await newKeys();
  const request = envelopeOf(BOB, { type: "session.request", to: "agent://acme.alice", payload: { purpose: "talk" } });
  const payload = { session_id: sessionOf(request), request_sha256: await requestDigest(request) };
  const parties = { from: "agent://acme.alice", to: AGENT };
  const decision = envelopeOf(alice, { type: "session.approve", ...parties, payload });
  const cnf = { jwk: { kty: "OKP", crv: "Ed25519", x: alice.x } };
  const credentials = [await credential({ sub: "agent://acme.alice", cnf }), await credential()];
  return buildReceipt({ request, decision, credentials });
}

/** Writes every file, and some of them in an encoding. */
async function writeFiles(encoded: Encoding, names = Object.keys(TEXTS)): Promise<void> {
  for (const [name, text] of Object.entries(TEXTS))
    await writeFile(line.file(name), names.includes(name) ? encoded(text) : text);
}

const send = (stdin: Buffer, ...options: string[]) =>
  line.run(["send", "--key", line.keyFile("alice"), LISTENER, "-", ...options], { stdin });

test("Every file may have a byte order mark and the line ends of Windows", async () => {
  for (const args of [ISSUE, CREDENTIAL, VERIFY]) {
    await writeFiles(markedUtf8);
    const { code, stderr } = await line.run(args);
    expect([args[0], code, code === 0 || stderr]).toEqual([args[0], 0, true]);
  }
});

test.each(UTF_16)("A file in %s is named, with how to write it", async (_, encoded) => {
  for (const [name, args] of [
    ["issuer.json", ISSUE],
    ["public.json", ISSUE],
    ["bob.credential", CREDENTIAL],
    ["acme.json", CREDENTIAL],
    ["acme.json", VERIFY],
    ["receipt.json", VERIFY],
  ] as const) {
    await writeFiles(encoded, [name]);
    const { code, stdout, stderr } = await line.run([...args, "--json"]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(jsonLines(stderr)).toMatchObject([inUtf16(name)]);
  }
});

test.each(UTF_16)("A key file in %s is an invalid key, is named, and stays as it was", async (_, encoded) => {
  await writeFiles(encoded, ["bob.json"]);
  const { code, stderr } = await line.run([...CREDENTIAL, "--json"]);
  expect(code).toBe(7);
  expect(jsonLines(stderr)).toMatchObject([inUtf16("The key file bob.json", "invalid_key")]);
  expect(await readFile(line.file("bob.json"))).toEqual(encoded(TEXTS["bob.json"]));
});

test("A payload on standard input may have a byte order mark, and is refused in UTF-16", async () => {
  const receiver = await line.stage.online("bob-hmac", line.url);
  expect(await send(markedUtf8('{\n"n": 1\n}\n'))).toMatchObject({ code: 0 });
  expect((await next(receiver)).payload).toEqual({ n: 1 });
  for (const [, encoded] of UTF_16) {
    const { code, stderr } = await send(encoded('{"n":1}'), "--json");
    expect(code).toBe(2);
    expect(jsonLines(stderr)).toMatchObject([inUtf16("Standard input")]);
  }
});

test("Control requests on standard input may begin with a byte order mark, and end the listener in UTF-16", async () => {
  const request = (n: number) => `${JSON.stringify({ to: LISTENER, payload: { text: `ä\u2028${n}` } })}\n`;
  const listen = ["listen", "--json", "--stdin", "--key", line.keyFile("bob-hmac")];
  const answered = await line.run(listen, { stdin: markedUtf8(request(1) + request(2)) });
  const lines = jsonLines(answered.stdout);
  expect(lines.filter(({ event }) => event === "accepted").map(({ ref }) => ref)).toEqual([1, 2]);
  for (const [, encoded] of UTF_16) {
    const { code, stdout, stderr } = await line.run(listen, { stdin: encoded(request(1)) });
    expect([code, stdout]).toEqual([2, ""]);
    expect(jsonLines(stderr).at(-1)).toMatchObject(inUtf16("Standard input"));
  }
});

test("A reply of a program may have a byte order mark, and is not sent in UTF-16", async () => {
  await writeFile(line.file("reply"), markedUtf8('{"n":1}'));
  const listener = await line.listen("bob-hmac", "--exec", `cat ${line.file("reply")}`, "--reply");
  const asker = await line.stage.online("alice", line.url);
  await asker.send(LISTENER, {});
  expect((await next(asker)).payload).toEqual({ n: 1 });
  await writeFile(line.file("reply"), utf16le('{"n":1}'));
  await asker.send(LISTENER, {});
  await listener.reported("exec_failed");
  expect(listener.reports.at(-1)?.message).toMatch(/What it printed is not UTF-8\.$/);
});

test("A text of UTF-8 has no byte order mark, whether the file has one or not", () => {
  expect(decodeText(Buffer.from("ä€😀"))).toBe("ä€😀");
  expect(decodeText(markedUtf8("ä€😀"))).toBe("ä€😀");
});

test("Of two byte order marks one is taken off, and none in the midst of a text", () => {
  expect(decodeText(markedUtf8("\ufeffa\ufeff"))).toBe("\ufeffa\ufeff");
});

test.each(["", "\ufeff", "a"])("A text as short as %j is decoded", (text) => {
  expect(decodeText(Buffer.from(text))).toBe(text.replace("\ufeff", ""));
});

test.each(UTF_16)("A file in %s is not taken for UTF-8, however short it is", (_, encoded) => {
  for (const text of ["", "{}", "ä€😀"]) expect(decodeText(encoded(text))).toBeUndefined();
});

test("A file in UTF-16 without a byte order mark is not taken for UTF-8, unlike one that holds NUL", () => {
  for (const bytes of UNMARKED_UTF_16) expect(decodeText(bytes)).toBeUndefined();
  for (const text of ["\0", "\0\0", "a\n\0"]) expect(decodeText(Buffer.from(text))).toBe(text);
});

test.each(["\xe9", '{"a":"\xff"}'])("A file in Latin-1 is not taken for UTF-8: %j", (text) => {
  expect(decodeText(Buffer.from(text, "latin1"))).toBeUndefined();
});

const NOWHERE = "http://127.0.0.1:1";

/** `npm run keys`, on a keys file that no relay reads. */
const keys = (args: readonly string[], input?: string) =>
  keysCommand(line.file("keys.json"), [...args, "--wait", "0"], input);

describe("relay keygen", () => {
  test("prints the record of the key once more, and leaves the key as it is, run again for the same agent", async () => {
    const keygen = ["keygen", "--agent", "agent://gail"];
    const { code, stdout, stderr } = await line.run(keygen);
    const [key, { private_key }] = [await line.text("gail.json"), await line.json("gail.json")];
    expect([code, await line.mode("gail.json")]).toEqual([0, 0o600]);
    expect(stdout + stderr).not.toContain(private_key);
    expect(JSON.parse(stdout)).toMatchObject({ alg: "ed25519", agents: ["agent://gail"] });
    expect(await line.run(keygen)).toMatchObject({ code: 0, stdout });
    expect(await line.text("gail.json")).toBe(key);
  });

  test("never prints the record of an HMAC key, which holds the secret, but writes it to a private file", async () => {
    const keygen = ["keygen", "--json", "--agent", "agent://dave", "--alg", "hmac-sha256", "--key-id", "dave-1"];
    const made = await line.run(keygen);
    const { secret } = await line.json("dave.json");
    expect(made).toMatchObject({ code: 0, stdout: "" });
    expect(jsonLines(made.stderr)).toMatchObject([
      { event: "key_file", file: "dave.json", record_file: "dave.record.json" },
      { event: "warning" },
    ]);
    expect(made.stderr).not.toContain(secret);
    expect([await line.mode("dave.json"), await line.mode("dave.record.json")]).toEqual([0o600, 0o600]);
    expect((await keys(["add", line.file("dave.record.json")])).code).toBe(0);
    expect((await line.json("keys.json")).signing_keys).toContainEqual({
      key_id: "dave-1",
      alg: "hmac-sha256",
      secret,
      agents: ["agent://dave"],
    });
  });

  test("never overwrites a key", async () => {
    await line.run(["keygen", "--agent", "agent://erin"]);
    const before = await line.text("erin.json");
    const others = [
      ["agent://frank"],
      ["agent://erin", "--key-id", "erin-2"],
      ["agent://erin", "--alg", "hmac-sha256"],
    ];
    for (const other of others) {
      const again = await line.run(["keygen", "--json", "--out", "erin.json", "--agent", ...other]);
      expect(again).toMatchObject({ code: 1, stdout: "" });
      expect(jsonLines(again.stderr)).toMatchObject([{ event: "error", code: "failed" }]);
    }
    expect(await line.text("erin.json")).toBe(before);
  });

  test("tells a key file that the shell emptied, since the record was sent to it, from another key", async () => {
    await line.write("fay.json", "");
    const emptied = await line.run(["keygen", "--json", "--agent", "agent://fay"]);
    expect(emptied).toMatchObject({ code: 1, stdout: "" });
    expect(await line.text("fay.json")).toBe("");
    await line.write("fay.json", "{}");
    const taken = await line.run(["keygen", "--json", "--agent", "agent://fay"]);
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
    await line.run(["keygen", "--agent", "agent://robert", "--out", "robert.json"]);
    const options = await readKeyFile(line.file("robert.json"));
    expect(options).toMatchObject({ agent: "agent://robert", key: { alg: "ed25519" }, trust: { issuers: [] } });
    expect(options.sealingKeys).toHaveLength(1);
    expect(() => new Connector({ url: NOWHERE, ...options })).not.toThrow();
  });

  test("that is none is refused as the library refuses", async () => {
    const error = await readKeyFile(line.file("none.json")).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(RelayError);
    expect(error).toMatchObject({ code: "invalid_key" });
  });

  test.each([
    [{ alg: "ed25519", private_key: "AAAA" }, "has a private_key that is not the 32 bytes"],
    [{ alg: "ed25519", private_key: "no base64url" }, "has a private_key that is not the 32 bytes"],
    [{ alg: "hmac-sha256", secret: "AAAA" }, "has a secret that is not 32 bytes or more"],
  ])("whose key cannot be used is told by the member of the file: %j", async (key, why) => {
    await line.write("short.json", { agent_id: "agent://bob", key_id: "bob-1", ...key });
    const error = await readKeyFile(line.file("short.json")).catch((error: RelayError) => error);
    expect(error).toMatchObject({ code: "invalid_key", message: expect.stringContaining(why) });
    expect((error as RelayError).hint).not.toMatch(/privateKey|browser/);
  });

  test("has a content that is no key, and what is no list is no sealingKeys", async () => {
    await line.run(["keygen", "--agent", "agent://carol", "--out", "carol.json"]);
    const options = await readKeyFile(line.file("carol.json"));
    const content = JSON.parse(await readFile(line.file("carol.json"), "utf8"));
    expect(() => new Connector({ url: NOWHERE, agent: options.agent, key: content })).toThrow(TypeError);
    expect(() => new Connector({ url: NOWHERE, ...options, sealingKeys: "key" as never })).toThrow(/sealingKeys/);
  });
});

test("A key may come from a pipe that the process was given", async () => {
  const program = `const { readKeyFile } = await import(${JSON.stringify(LIBRARY)});
    console.log((await readKeyFile(process.argv[1])).agent);`;
  const run = [process.execPath, "--input-type=module", "--eval", program].map((word) => `'${word}'`).join(" ");
  const { stdout } = await runProgram("bash", ["-c", `${run} <(cat '${line.keyFile("alice")}')`]);
  expect(stdout).toBe("agent://alice\n");
});

test("A named pipe is no key file: nobody may ever write to it", async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, "pipe");
  execFileSync("mkfifo", [file]);
  const refused = { code: "invalid_key", message: expect.stringContaining("not a regular file") };
  await expect(readKeyFile(file)).rejects.toMatchObject(refused);
});

describe("A key file that gets another content", () => {
  const SOURCE = new URL("../../src/cli/files.ts", import.meta.url).href;
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
    expect(stdout).toMatch(/bob\.json belongs to user 0 and group 0/);
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
    const refused = { code: "usage", message: expect.stringContaining("not a regular file") };
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
