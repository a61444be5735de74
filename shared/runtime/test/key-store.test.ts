import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { markedUtf8, utf16le } from "../../../test/support/temporary-folder.ts";
import { FILE_TIMES } from "../src/files.ts";
import { KeyStore } from "../src/key-store.ts";
import { SettingsError } from "../src/settings.ts";

const SECRET = Buffer.alloc(32, 9).toString("base64url");
const keysFile = (...keyIds: string[]) =>
  JSON.stringify({
    signing_keys: keyIds.map((key_id) => ({ key_id, alg: "hmac-sha256", secret: SECRET, agents: ["agent://bob"] })),
  });

let folder: string;
let path: string;
let store: KeyStore;
let errors: object[];
let infos: unknown[];
let onError: () => void;
let logger: ConstructorParameters<typeof KeyStore>[0]["logger"];

beforeEach(async () => {
  jest.replaceProperty(FILE_TIMES, "pollMs", 2);
  folder = await mkdtemp(join(tmpdir(), "relay-keys-"));
  path = join(folder, "keys.json");
  const lines: object[] = [];
  errors = lines;
  infos = [];
  onError = () => {};
  logger = {
    info: (line: unknown) => void infos.push(line),
    error: (line: object) => {
      lines.push(line);
      onError();
    },
  };
  store = new KeyStore({ path, logger });
});

afterEach(async () => {
  store.stop();
  jest.restoreAllMocks();
  await rm(folder, { recursive: true });
});

const names = (...candidates: string[]) => candidates.filter((keyId) => store.ring.signingKey(keyId, 0) !== undefined);
const changed = () => new Promise<void>((resolve) => store.onChange(() => resolve()));
const refused = () =>
  new Promise<void>((resolve) => {
    onError = resolve;
  });

/** Time for the store to look a few times: another one, just as quick, sees another file change as often. */
async function aFewLooks(): Promise<void> {
  const other = join(folder, "other.json");
  await writeFile(other, keysFile("0"));
  const witness = new KeyStore({ path: other, logger: { info: () => {}, error: () => {} } });
  await witness.start();
  let seen = () => {};
  witness.onChange(() => seen());
  for (const keyId of ["1", "2", "3", "4", "5"]) {
    const change = new Promise<void>((resolve) => {
      seen = resolve;
    });
    await writeFile(`${other}.new`, keysFile(keyId));
    await rename(`${other}.new`, other);
    await change;
  }
  witness.stop();
}

test("The log says how many keys and issuers are in force after each reload", async () => {
  await writeFile(path, keysFile("a"));
  await store.start();
  const loaded = changed();
  await writeFile(path, keysFile("a", "b"));
  await loaded;
  expect(infos).toEqual([{ in_force: { signing_keys: 2, api_keys: 0, issuers: 0 } }]);
});

describe("The key store", () => {
  test("has the file's keys once it has started, and none before", async () => {
    await writeFile(path, keysFile("one"));
    expect(names("one")).toEqual([]);
    await store.start();
    expect(names("one")).toEqual(["one"]);
  });

  test("takes a file with a byte order mark and the line ends of Windows", async () => {
    await writeFile(path, markedUtf8(JSON.stringify(JSON.parse(keysFile("one")), null, 2)));
    await store.start();
    expect(names("one")).toEqual(["one"]);
  });

  test("does not start with a file in UTF-16, and says how to write it", async () => {
    await writeFile(path, utf16le(keysFile("one")));
    const problem = "RELAY_KEYS_FILE: is not UTF-8; write it as UTF-8, in PowerShell with Set-Content -Encoding utf8";
    await expect(store.start()).rejects.toEqual(new SettingsError([problem]));
  });

  test.each([
    ["is not there", undefined],
    ["is not JSON", `{"secret":"${SECRET}"`],
    ["does not have the shape", JSON.stringify({ signing_keys: [{ key_id: "k", alg: "none", secret: SECRET }] })],
    ["has a member of an unknown name", JSON.stringify({ [SECRET]: [] })],
    ["names a gateway key", keysFile("gateway-1")],
    ["has a key id twice", keysFile("one", "one")],
  ])("does not start when the file %s, and quotes nothing of it", async (_, text) => {
    if (text !== undefined) await writeFile(path, text);
    const error = await store.start().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SettingsError);
    expect(String(error)).not.toContain(SECRET);
  });

  test("takes over a file that is written again", async () => {
    await writeFile(path, keysFile("one"));
    await store.start();
    const change = changed();
    await writeFile(path, keysFile("one", "two"));
    await change;
    expect(names("one", "two")).toEqual(["one", "two"]);
  });

  test("takes over a file that is renamed into place", async () => {
    await writeFile(path, keysFile("one"));
    await store.start();
    const change = changed();
    await writeFile(`${path}.new`, keysFile("two"));
    await rename(`${path}.new`, path);
    await change;
    expect(names("one", "two")).toEqual(["two"]);
  });

  test("takes over a Kubernetes secret, whose folder is a symbolic link that is swapped", async () => {
    for (const version of ["one", "two"]) {
      await mkdir(join(folder, version));
      await writeFile(join(folder, version, "keys.json"), keysFile(version));
    }
    await symlink("one", join(folder, "..data"));
    await symlink(join("..data", "keys.json"), path);
    await store.start();
    expect(names("one", "two")).toEqual(["one"]);

    const change = changed();
    await symlink("two", join(folder, "..data_tmp"));
    await rename(join(folder, "..data_tmp"), join(folder, "..data"));
    await change;
    expect(names("one", "two")).toEqual(["two"]);
  });

  test.each([
    ["is cut short", () => writeFile(path, keysFile("two").slice(0, -1))],
    ["does not validate", () => writeFile(path, keysFile("gateway-1"))],
    ["is gone", () => rm(path)],
  ])(
    "keeps the running keys when the file %s, says so without a secret, and loads the fixed file",
    async (_, spoil) => {
      await writeFile(path, keysFile("one"));
      await store.start();
      const refusal = refused();
      await spoil();
      await refusal;
      expect([names("one", "two"), store.isBehind]).toEqual([["one"], true]);
      expect(errors[0]).toEqual({ problems: [expect.any(String)] });
      expect(JSON.stringify(errors)).not.toContain(SECRET);

      const change = changed();
      await writeFile(`${path}.new`, keysFile("two"));
      await rename(`${path}.new`, path);
      await change;
      expect([names("one", "two"), store.isBehind]).toEqual([["two"], false]);
    },
  );

  test("logs an error once, and the next error again", async () => {
    await writeFile(path, keysFile("one"));
    await store.start();
    for (const spoiled of [keysFile("gateway-1"), keysFile("one", "one")]) {
      const refusal = refused();
      await writeFile(`${path}.new`, spoiled);
      await rename(`${path}.new`, path);
      await refusal;
      await aFewLooks();
    }
    const change = changed();
    await writeFile(`${path}.new`, keysFile("two"));
    await rename(`${path}.new`, path);
    await change;
    expect(errors).toEqual([
      { problems: [expect.stringMatching(/^signing_keys\.0\.key_id: /)] },
      { problems: [expect.stringMatching(/^signing_keys\.1\.key_id: /)] },
    ]);
  });

  test("says when the file can be read again as it was, and then logs the same error again", async () => {
    const mount = join(folder, "mount");
    await mkdir(mount);
    await writeFile(join(mount, "keys.json"), keysFile("one"));
    const mounted = new KeyStore({ path: join(mount, "keys.json"), logger });
    await mounted.start();
    for (let n = 0; n < 2; n += 1) {
      const refusal = refused();
      await rename(mount, `${mount}.away`);
      await refusal;
      await rename(`${mount}.away`, mount);
      await aFewLooks();
    }
    mounted.stop();
    expect(errors).toEqual(Array(2).fill({ problems: ["cannot be read (ENOENT)"] }));
    expect([infos, mounted.isBehind]).toEqual([Array(2).fill("keys file valid again"), false]);
  });

  test("keeps the current keys while a pipe stands in its place, and reads what comes after it", async () => {
    await writeFile(path, keysFile("one"));
    await store.start();
    const refusal = refused();
    await promisify(execFile)("mkfifo", [`${path}.new`]);
    await rename(`${path}.new`, path);
    await refusal;
    expect([errors, names("one")]).toEqual([[{ problems: ["is not a regular file"] }], ["one"]]);
    const change = changed();
    await writeFile(`${path}.new`, keysFile("two"));
    await rename(`${path}.new`, path);
    await change;
    expect(names("one", "two")).toEqual(["two"]);
  });

  test("names twenty faults of a file at most, and says how many more there are", async () => {
    await writeFile(path, JSON.stringify({ signing_keys: Array(1000).fill("none") }));
    const error = await store.start().catch((thrown: Error) => thrown);
    const lines = (error as Error).message.split("\n").filter((line) => line.includes("RELAY_KEYS_FILE"));
    expect([lines.length, lines.at(-1)?.trim()]).toEqual([21, "RELAY_KEYS_FILE: and 980 more"]);
  });

  test("takes nothing over after stop", async () => {
    await writeFile(path, keysFile("one"));
    await store.start();
    store.stop();
    await writeFile(`${path}.new`, keysFile("two"));
    await rename(`${path}.new`, path);
    await aFewLooks();
    expect(names("one", "two")).toEqual(["one"]);
  });

  test("takes nothing over when it is stopped while it reads", async () => {
    await writeFile(path, keysFile("one"));
    const starting = store.start();
    store.stop();
    await starting;
    expect(names("one")).toEqual([]);
  });
});
