import { createPrivateKey, createPublicKey } from "node:crypto";
import { readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { KeysFile } from "protocol/contract/keys-file.ts";
import { KeyRing } from "protocol/signing/key-ring.ts";
import { runKeysCommand } from "../../deploy/keys/commands.ts";
import {
  developmentAgentsFile,
  developmentKeyFile,
  developmentKeys,
  developmentKeysFile,
} from "../../deploy/local/dev-keys.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

describe("development keys", () => {
  test("let alice send and sign, and bob sign, each only for themselves", async () => {
    await using folder = await temporaryFolder();
    const agents = await developmentKeys(folder.path);
    const keys = await storedIn(folder.path);
    const ring = KeyRing.from(keys);
    const now = Date.now();

    const apiKey = ring.apiKey(agents.api_key, now);
    expect(["agent://alice", "agent://alice.research", "agent://bob"].map((id) => apiKey?.mayAct(id))).toEqual([
      true,
      true,
      false,
    ]);
    expect(ring.signingKey(agents.alice.key_id, now)?.mayAct("agent://alice")).toBe(true);
    expect(ring.signingKey(agents.alice.key_id, now)?.mayAct("agent://bob")).toBe(false);
    expect(ring.signingKey(agents.bob.key_id, now)?.mayAct("agent://bob")).toBe(true);
  });

  test("are kept with the secrets that belong to them", async () => {
    await using folder = await temporaryFolder();
    const { alice, bob } = await developmentKeys(folder.path);
    const keys = await storedIn(folder.path);
    const pkcs8 = Buffer.concat([
      Buffer.from("302e020100300506032b657004220420", "hex"),
      Buffer.from(alice.private_key, "base64url"),
    ]);
    const publicKey = createPublicKey(createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" }));
    expect(keys.signing_keys).toMatchObject([
      { key_id: alice.key_id, public_key: publicKey.export({ format: "jwk" }).x },
      { key_id: bob.key_id, secret: bob.secret },
    ]);
  });

  test("are made once, even by two starts at the same time", async () => {
    await using folder = await temporaryFolder();
    const [first, second] = await Promise.all([developmentKeys(folder.path), developmentKeys(folder.path)]);
    expect(second).toEqual(first);
    expect(await developmentKeys(folder.path)).toEqual(first);
  });

  test("lie in a private folder, in private files", async () => {
    await using folder = await temporaryFolder();
    const own = join(folder.path, ".local");
    await developmentKeys(own);
    const files = [developmentKeysFile(own), developmentAgentsFile(own), developmentKeyFile(own, "alice")];
    const modes = [own, ...files].map(async (path) => (await stat(path)).mode);
    expect((await Promise.all(modes)).map((mode) => mode & 0o777)).toEqual([0o700, 0o600, 0o600, 0o600]);
  });

  test("stand in a key file for each agent too, also where they were made before there were such files", async () => {
    await using folder = await temporaryFolder();
    const agents = await developmentKeys(folder.path);
    await rm(developmentKeyFile(folder.path, "alice"));
    await developmentKeys(folder.path);
    for (const name of ["alice", "bob"] as const) {
      expect(JSON.parse(await readFile(developmentKeyFile(folder.path, name), "utf8"))).toEqual(agents[name]);
    }
  });

  test("leave other keys of the same file alone when they are made anew", async () => {
    await using folder = await temporaryFolder();
    const file = developmentKeysFile(folder.path);
    await developmentKeys(folder.path);
    await runKeysCommand(["new", "--listed", "--agent", "agent://carol", "--key-id", "carol-1"], file);
    await rm(developmentAgentsFile(folder.path));
    const { alice, bob } = await developmentKeys(folder.path);
    expect((await storedIn(folder.path)).signing_keys.map((key) => key.key_id)).toEqual([
      "carol-1",
      alice.key_id,
      bob.key_id,
    ]);
  });
});

async function storedIn(folder: string): Promise<KeysFile> {
  return KeysFile.parse(JSON.parse(await readFile(developmentKeysFile(folder), "utf8")));
}
