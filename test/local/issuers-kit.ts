import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "@jest/globals";
import { KeysFile } from "relay-protocol/contract/keys-file.ts";
import { readCredential } from "relay-protocol/signing/credentials.ts";
import { KeyRing } from "relay-protocol/signing/key-ring.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { keysCommand } from "./commands.ts";

/** `npm run keys` on a keys file of its own for each test, which is not there before the command makes it. */
export function useIssuers() {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let file: string;
  const printed: string[] = [];

  beforeEach(async () => {
    folder = await temporaryFolder();
    file = join(folder.path, "keys.json");
    printed.length = 0;
  });

  /** No secret is ever printed, whatever was asked for. */
  afterEach(async () => {
    const files = (await readdir(folder.path)).map((name) => readFile(join(folder.path, name), "utf8"));
    const secrets = (await Promise.all(files)).flatMap((text) => [
      ...text.matchAll(/"(?:private|sealing)_key": "(.+)"/g),
    ]);
    for (const [, secret] of secrets) expect(printed.join("")).not.toContain(secret);
    await folder[Symbol.asyncDispose]();
  });

  /** Runs the command. */
  async function keys(...args: string[]) {
    const result = await keysCommand(file, args);
    printed.push(result.stdout, result.stderr);
    return result;
  }

  const inFolder = (name: string) => join(folder.path, name);
  const read = async (name: string) => JSON.parse(await readFile(inFolder(name), "utf8"));
  const stored = async () => KeysFile.parse(await read("keys.json"));
  const theIssuer = async () => (await stored()).issuers[0];

  /** What a relay with this keys file says of a credential; undefined when it takes it. */
  async function problemOf(token: string): Promise<string | undefined> {
    const credential = readCredential(token);
    if (credential === undefined) return "malformed";
    return KeyRing.from(await stored()).issuers.problemOf(credential, Date.now());
  }

  async function withIssuer(...agents: string[]) {
    const pairs = (agents.length === 0 ? ["*"] : agents).flatMap((agent) => ["--agents", agent]);
    expect(await keys("new-issuer", "--issuer", "acme", ...pairs)).toMatchObject({ code: 0, stdout: "" });
  }

  return {
    keys,
    inFolder,
    read,
    stored,
    theIssuer,
    problemOf,
    withIssuer,
    names: async () => (await readdir(folder.path)).sort(),
    keysFile: () => file,
  };
}
