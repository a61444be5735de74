import { chmod, readFile, writeFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { developmentAgentsFile, newSecrets, storedSecrets } from "../../deploy/local/dev-agents.ts";
import { freePort } from "../support/free-port.ts";
import { markedUtf8, temporaryFolder, UTF_16 } from "../support/temporary-folder.ts";
import { adminCommand, keysCommand } from "./commands.ts";
import { useIssuers } from "./issuers-kit.ts";

/** Files as PowerShell writes them, for the commands of the operator. */

const issuers = useIssuers();
const { keys, inFolder, stored, withIssuer } = issuers;
const ADVICE = "is not UTF-8; write it as UTF-8, in PowerShell with Set-Content -Encoding utf8.\n";
const RECORD = JSON.stringify({
  key_id: "bob-1",
  alg: "ed25519",
  public_key: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
  agents: ["agent://bob"],
});
const ADMIN_KEY = "a-key.of:32~visible!ASCII_letters\n";

type Encoding = (text: string) => Buffer;

/** Writes a file again, in an encoding. */
async function encode(file: string, encoded: Encoding): Promise<void> {
  await writeFile(file, encoded(await readFile(file, "utf8")));
}

/** `npm run keys -- add`, of a record on standard input. */
const added = (encoded: Encoding) => keysCommand(issuers.keysFile(), ["add"], encoded(RECORD));

/** `npm run admin -- counts`, with a key file, where no pod answers. */
async function counts(encoded: Encoding) {
  const file = inFolder("admin.key");
  await writeFile(file, encoded(ADMIN_KEY));
  await chmod(file, 0o600);
  const url = `http://127.0.0.1:${await freePort()}`;
  return { file, ...(await adminCommand(["counts", "--url", url], { RELAY_ADMIN_KEY_FILE: file })) };
}

describe("A byte order mark is passed over", () => {
  test("in the keys file, which a change writes without it", async () => {
    await withIssuer();
    await encode(issuers.keysFile(), markedUtf8);
    expect(await keys("list")).toMatchObject({ code: 0, stdout: expect.stringContaining("acme") });
    expect(await keys("new-api-key", "--agent", "agent://alice")).toMatchObject({ code: 0 });
    expect((await stored()).api_keys).toHaveLength(1);
  });

  test("in the file of an issuer", async () => {
    await withIssuer();
    await encode(inFolder("issuer.json"), markedUtf8);
    expect(await keys("new", "--agent", "agent://alice")).toMatchObject({ code: 0 });
  });

  test("in a record, from a file or from standard input", async () => {
    await writeFile(inFolder("record.json"), markedUtf8(RECORD));
    expect((await keys("add", inFolder("record.json"))).stderr).toContain("bob-1 may sign for agent://bob");
    expect((await added(markedUtf8)).stderr).toContain("bob-1 may already sign for agent://bob");
  });

  test("in the key file of the admin command", async () => {
    expect((await counts(markedUtf8)).stderr).toMatch(/^No pod answers at /);
  });

  test("in the development keys, which stay the same", async () => {
    await using folder = await temporaryFolder();
    const { signing, sealing } = newSecrets("key").alice;
    const agent = { alg: "ed25519", private_key: signing.privateKey, sealing_key: sealing.privateKey };
    const text = JSON.stringify({ api_key: "key", alice: agent, bob: agent });
    await writeFile(developmentAgentsFile(folder.path), markedUtf8(text));
    expect((await storedSecrets(folder.path))?.alice).toEqual({ signing, sealing });
  });
});

describe.each(UTF_16)("A file in %s is named, with how to write it:", (_, encoded) => {
  test("the keys file, which stays as it was", async () => {
    await withIssuer();
    const file = issuers.keysFile();
    await encode(file, encoded);
    const before = await readFile(file);
    const ended = { code: 1, stdout: "", stderr: `${file} ${ADVICE}` };
    expect(await keys("list")).toEqual(ended);
    expect(await keys("new-api-key", "--agent", "agent://alice")).toEqual(ended);
    expect(await readFile(file)).toEqual(before);
    await writeFile(file, "{}");
  });

  test("that of an issuer", async () => {
    await withIssuer();
    const file = inFolder("issuer.json");
    await encode(file, encoded);
    expect(await keys("new", "--agent", "agent://alice")).toEqual({ code: 1, stdout: "", stderr: `${file} ${ADVICE}` });
  });

  test("a record, from a file or from standard input", async () => {
    const file = inFolder("record.json");
    await writeFile(file, encoded(RECORD));
    expect((await keys("add", file)).stderr).toBe(`${file} ${ADVICE}`);
    expect((await added(encoded)).stderr).toBe(`Standard input ${ADVICE}`);
  });

  test("that of the admin command's key", async () => {
    const { file, stderr } = await counts(encoded);
    expect(stderr).toBe(`The key file ${file} ${ADVICE}`);
  });

  test("that of the development keys", async () => {
    await using folder = await temporaryFolder();
    const file = developmentAgentsFile(folder.path);
    await writeFile(file, encoded("{}"));
    await expect(storedSecrets(folder.path)).rejects.toThrow(`${file} ${ADVICE.trimEnd()}`);
  });
});
