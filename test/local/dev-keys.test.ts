import { readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "@jest/globals";
import { KeysFile } from "relay-protocol/contract/keys-file.ts";
import { readCredential } from "relay-protocol/signing/credentials.ts";
import { KeyRing } from "relay-protocol/signing/key-ring.ts";
import { makeEd25519Key, makeHmacKey } from "../../deploy/keys/make.ts";
import {
  AGENTS,
  type DevelopmentAgent,
  developmentAgentsFile,
  developmentKeyFile,
  NAMES,
} from "../../deploy/local/dev-agents.ts";
import { developmentIssuerFile, developmentKeys, developmentKeysFile } from "../../deploy/local/dev-keys.ts";
import { FolderUse, isInUse } from "../../deploy/local/folder-use.ts";
import { provide } from "../../deploy/local/provisions.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { keysCommand } from "./commands.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeEach(async () => {
  await folder?.[Symbol.asyncDispose]();
  folder = await temporaryFolder();
});
afterAll(async () => await folder[Symbol.asyncDispose]());

const stored = async () => KeysFile.parse(await json(developmentKeysFile(folder.path)));
const json = async (file: string) => JSON.parse(await readFile(file, "utf8"));

/** Why the relay would refuse the agent's credential now; undefined when it accepts it. */
async function problemOf({ credential = "" }: DevelopmentAgent): Promise<string | undefined> {
  const read = readCredential(credential);
  return read === undefined ? "malformed" : KeyRing.from(await stored()).issuers.problemOf(read, Date.now());
}

describe("development keys", () => {
  test("of alice and bob are vouched for by an issuer that both of them trust, and listed nowhere", async () => {
    const agents = await developmentKeys(folder.path, "issued");
    const { signing_keys, issuers } = await stored();
    expect(signing_keys).toEqual([]);
    for (const name of NAMES) {
      const agent = agents[name];
      expect(await problemOf(agent)).toBeUndefined();
      expect(readCredential(agent.credential as string)).toMatchObject({ agent: AGENTS[name], keyId: agent.key_id });
      // Not for whoever nobody else has: they would accept no reply of an agent that the relay lists.
      const trusted = issuers.map((issuer) => ({ ...issuer, agents: issuer.agents.filter((one) => one !== "*") }));
      expect(agent).toMatchObject({ trusted_issuers: trusted, sealing_key: expect.any(String) });
    }
  });

  test("have an issuer that npm run keys -- new issues with, for any agent that nobody else speaks for", async () => {
    const file = developmentKeysFile(folder.path);
    await developmentKeys(folder.path, "issued");
    expect(await keysCommand(file, ["new", "--agent", "agent://translator"])).toMatchObject({ code: 0 });
    const translator = await json(join(folder.path, "translator.json"));
    expect(await problemOf(translator)).toBeUndefined();
    await developmentKeys(folder.path, "issued");
    expect(await problemOf(translator)).toBeUndefined();
    await keysCommand(file, ["new", "--listed", "--agent", "agent://translator"]);
    expect(await problemOf(translator)).toBe("agent_not_allowed");
  });

  test("have no issuer to issue with once they are listed", async () => {
    await developmentKeys(folder.path, "issued");
    await developmentKeys(folder.path, "listed");
    expect(await keysCommand(developmentKeysFile(folder.path), ["new", "--agent", "agent://translator"])).toMatchObject(
      {
        code: 1,
        stderr: expect.stringMatching(/^There is no issuer at .*issuer\.json\./),
      },
    );
  });

  test("let alice send through the gateway, for herself alone", async () => {
    const { api_key } = await developmentKeys(folder.path, "issued");
    const apiKey = KeyRing.from(await stored()).apiKey(api_key, Date.now());
    const ids = ["agent://alice", "agent://alice.research", "agent://bob"];
    expect(ids.map((id) => apiKey?.mayAct(id))).toEqual([true, true, false]);
  });

  test("stay the same from start to start, with a new credential from each", async () => {
    const secrets = ({ private_key, sealing_key, key_id }: DevelopmentAgent) => [private_key, sealing_key, key_id];
    const first = await developmentKeys(folder.path, "issued");
    const issuer = await json(developmentIssuerFile(folder.path));
    let second = first;
    await until("a start gives new credentials", async () => {
      second = await developmentKeys(folder.path, "issued");
      return second.bob.credential !== first.bob.credential;
    });
    expect(second.api_key).toBe(first.api_key);
    expect(await json(developmentIssuerFile(folder.path))).toEqual(issuer);
    for (const name of NAMES) {
      expect(secrets(second[name])).toEqual(secrets(first[name]));
      expect([await problemOf(first[name]), await problemOf(second[name])]).toEqual([undefined, undefined]);
    }
  });

  test("are made once, even by two starts at the same time", async () => {
    const starts = [developmentKeys(folder.path, "issued"), developmentKeys(folder.path, "issued")];
    const [first, second] = await Promise.all(starts);
    expect(second?.alice.private_key).toBe(first?.alice.private_key);
    expect(second?.api_key).toBe(first?.api_key);
  });

  test("lie in a private folder, in private files", async () => {
    const own = join(folder.path, ".local");
    await developmentKeys(own, "issued");
    const files = [developmentKeysFile(own), developmentAgentsFile(own), developmentIssuerFile(own)];
    const keyFiles = NAMES.map((name) => developmentKeyFile(own, name));
    const modes = await Promise.all([own, ...files, ...keyFiles].map(async (path) => (await stat(path)).mode & 0o777));
    expect(modes).toEqual([0o700, 0o600, 0o600, 0o600, 0o600, 0o600]);
  });

  test("stand in a key file for each agent too", async () => {
    const agents = await developmentKeys(folder.path, "issued");
    for (const name of NAMES) expect(await json(developmentKeyFile(folder.path, name))).toEqual(agents[name]);
  });

  test("are listed where other machines may reach the relay, which then knows no issuer whose key lies beside it", async () => {
    const { alice } = await developmentKeys(folder.path, "issued");
    const listed = await developmentKeys(folder.path, "listed");
    expect(listed.alice).toEqual({ ...alice, key_id: "dev-alice", credential: undefined, trusted_issuers: undefined });
    const { issuers, signing_keys } = await stored();
    expect(issuers).toEqual([]);
    expect(signing_keys.map(({ key_id, agents }) => [key_id, agents])).toEqual([
      ["dev-alice", ["agent://alice"]],
      ["dev-bob", ["agent://bob"]],
    ]);
    expect((await developmentKeys(folder.path, "issued")).alice).toMatchObject({ key_id: alice.key_id });
  });

  test.each([
    ["127.0.0.1", true],
    ["::1", true],
    ["localhost", true],
    [undefined, true],
    ["0.0.0.0", false],
    ["::", false],
    ["192.0.2.1", false],
    ["127.0.0.1.example", false],
  ])("have an issuer on HOST %s: %s", async (HOST, isIssued) => {
    const provisions = await provide(
      { ...(HOST && { HOST }), REDIS_URL: "redis://127.0.0.1:1" },
      { keysFolder: folder.path },
    );
    expect(provisions.agents?.alice.credential !== undefined).toBe(isIssued);
    await provisions.stop();
  });
});

describe("A folder that was used before", () => {
  test("keeps keys and revocations of others when keys are made anew", async () => {
    const file = developmentKeysFile(folder.path);
    await developmentKeys(folder.path, "issued");
    await keysCommand(file, ["new", "--listed", "--agent", "agent://carol", "--key-id", "carol-1"]);
    await keysCommand(file, ["revoke", "--agent", "agent://bob", "--issued-before", "2026-01-01T00:00:00Z"]);
    const { revoked } = (await stored()).issuers[0] ?? {};
    await rm(developmentAgentsFile(folder.path));
    const { alice, bob } = await developmentKeys(folder.path, "issued");
    const { signing_keys, issuers } = await stored();
    expect(signing_keys.map((key) => key.key_id)).toEqual(["carol-1"]);
    expect(issuers).toMatchObject([{ issuer: "development", revoked }]);
    expect([await problemOf(alice), await problemOf(bob)]).toEqual([undefined, undefined]);
  });

  test("by an older version, which listed the keys, gets new ones in their place", async () => {
    const alice = makeEd25519Key({ id: "dev-alice", agents: ["agent://alice"] });
    const bob = makeHmacKey({ id: "dev-bob", agents: ["agent://bob"] });
    const old = {
      api_key: "rk_old",
      alice: { agent_id: "agent://alice", key_id: "dev-alice", alg: "ed25519", private_key: alice.privateKey },
      bob: { agent_id: "agent://bob", key_id: "dev-bob", alg: "hmac-sha256", secret: bob.secret },
    };
    await writeFile(developmentKeysFile(folder.path), JSON.stringify({ signing_keys: [alice.record, bob.record] }));
    await writeFile(developmentAgentsFile(folder.path), JSON.stringify(old));
    const agents = await developmentKeys(folder.path, "issued");
    expect((await stored()).signing_keys).toEqual([]);
    expect(await problemOf(agents.bob)).toBeUndefined();
    expect(KeyRing.from(await stored()).apiKey(agents.api_key, Date.now())).toBeDefined();
  });

  test("in which another issuer speaks for all agents keeps it, and vouches for alice and bob", async () => {
    const file = developmentKeysFile(folder.path);
    const admit = ["new-issuer", "--issuer", "acme", "--agents", "*"];
    await keysCommand(file, admit);
    await developmentKeys(folder.path, "issued");
    expect((await stored()).issuers.map(({ issuer, agents }) => [issuer, agents.includes("*")])).toEqual([
      ["acme", true],
      ["development", false],
    ]);
    const { alice, bob } = await developmentKeys(folder.path, "issued");
    expect([await problemOf(alice), await problemOf(bob)]).toEqual([undefined, undefined]);
  });

  test("names the issuer that speaks for all agents where another one is to", async () => {
    await developmentKeys(folder.path, "issued");
    const admit = ["new-issuer", "--issuer", "acme", "--agents", "*"];
    const { code, stderr } = await keysCommand(developmentKeysFile(folder.path), admit);
    expect([code, stderr]).toEqual([1, expect.stringContaining("Issuer development")]);
    expect((await stored()).issuers).toHaveLength(1);
  });

  test("in which somebody listed a key for alice lists hers too, and vouches for bob", async () => {
    const file = developmentKeysFile(folder.path);
    await keysCommand(file, ["new", "--listed", "--agent", "agent://alice", "--key-id", "mine"]);
    const { alice, bob } = await developmentKeys(folder.path, "issued");
    expect(alice).toMatchObject({ key_id: "dev-alice" });
    expect(alice.credential).toBeUndefined();
    expect((await stored()).signing_keys.map(({ key_id }) => key_id)).toEqual(["mine", "dev-alice"]);
    expect(await problemOf(bob)).toBeUndefined();
  });
});

describe("A folder on whose credentials a relay runs", () => {
  const startIn = (path: string) => provide({ REDIS_URL: "redis://127.0.0.1:1" }, { keysFolder: path });
  const marks = async () => (await readdir(folder.path)).filter((name) => name.startsWith("in-use"));
  const files = async () => await Promise.all(FILES.map((name) => readFile(join(folder.path, name), "utf8")));
  const FILES = ["keys.json", "dev-agents.json", "alice.json", "bob.json"];

  test("does not lose them to another relay that would list the keys, as in compose, until the first one ends", async () => {
    const running = await startIn(folder.path);
    const before = await files();
    await expect(developmentKeys(folder.path, "listed")).rejects.toThrow("npm start runs");
    await expect(provide({ HOST: "0.0.0.0" }, { keysFolder: folder.path })).rejects.toThrow("npm start runs");
    expect(await files()).toEqual(before);
    await running.stop();
    const { alice } = await developmentKeys(folder.path, "listed");
    expect(alice.credential).toBeUndefined();
  });

  test("is used for as long as one of several relays runs, and no longer than a moment after one that was killed", async () => {
    const [one, other] = [await startIn(folder.path), await startIn(folder.path)];
    await one.stop();
    expect(await isInUse(folder.path)).toBe(true);
    await other.stop();
    expect(await isInUse(folder.path)).toBe(false);
    const use = new FolderUse(folder.path);
    await use.start();
    const long = new Date(Date.now() - 60_000);
    const mark = join(folder.path, (await marks())[0] as string);
    await utimes(mark, long, long);
    expect(await isInUse(folder.path)).toBe(false);
    await until("what is alive is told again", () => isInUse(folder.path));
    await use.stop();
    const ofKilled = join(folder.path, "in-use-by-one-that-was-killed");
    await writeFile(ofKilled, "");
    await utimes(ofKilled, long, long);
    await use.start();
    expect(await marks()).toHaveLength(1);
    await use.stop();
    expect(await marks()).toEqual([]);
  });
});
