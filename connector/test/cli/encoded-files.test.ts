import { readFile, writeFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { markedUtf8, UTF_16, utf16le } from "../../../test/support/temporary-folder.ts";
import { decodeText } from "../../src/cli/file-text.ts";
import { buildReceipt, requestDigest } from "../../src/receipts/receipt.ts";
import { BOB, credential, envelopeOf, ISSUER, newKeys, RECORD, sessionOf } from "../credentials/kit.ts";
import { shared } from "../fixture.ts";
import { jsonLines, next } from "../kit.ts";
import { CommandLine } from "./kit.ts";

/** Files and standard input as PowerShell writes them. */

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
