import { execFile } from "node:child_process";
import { createPrivateKey, createPublicKey } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { calculateJwkThumbprint, importJWK, type JWTPayload, jwtVerify } from "jose";
import { readCredential } from "relay-protocol/signing/credentials.ts";
import { CREDENTIAL_LIMITS } from "relay-protocol/wire/limits.ts";
import { issue, newAgentKeys } from "../../deploy/keys/issue.ts";
import { newOkpKey } from "../../deploy/keys/make.ts";
import { codeBlock } from "../support/documents.ts";
import { keysCommand } from "./commands.ts";
import { useIssuers } from "./issuers-kit.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const DAY_MS = 24 * 3_600_000;

const issuers = useIssuers();
const { keys, inFolder, read, stored, theIssuer, problemOf, withIssuer } = issuers;

describe("npm run keys, of issuers", () => {
  test("makes an issuer whose private half lies in a private issuers.keysFile(), and in no keys file", async () => {
    await withIssuer("agent://acme.*", "agent://acme");
    const issuer = await read("issuer.json");
    const seed = Buffer.from(issuer.private_key, "base64url");
    const pkcs8 = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]);
    const { x } = createPublicKey(createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" })).export({
      format: "jwk",
    });
    expect(issuer).toEqual({ issuer: "acme", alg: "ed25519", private_key: expect.any(String), public_key: x });
    expect((await stat(inFolder("issuer.json"))).mode & 0o777).toBe(0o600);
    expect(await theIssuer()).toEqual({
      issuer: "acme",
      keys: [{ public_key: x }],
      agents: ["agent://acme.*", "agent://acme"],
      revoked: [],
    });
    expect(await readFile(issuers.keysFile(), "utf8")).not.toContain(issuer.private_key);
  });

  test("issues a credential that another implementation verifies, and lists nothing", async () => {
    await withIssuer();
    const before = await readFile(issuers.keysFile(), "utf8");
    const from = Math.floor(Date.now() / 1000);
    expect(await keys("new", "--agent", "agent://alice", "--days", "7")).toMatchObject({ code: 0, stdout: "" });
    expect(await readFile(issuers.keysFile(), "utf8")).toBe(before);

    const alice = await read("alice.json");
    const issuer = await theIssuer();
    expect((await stat(inFolder("alice.json"))).mode & 0o777).toBe(0o600);
    expect(alice).toMatchObject({ agent_id: "agent://alice", alg: "ed25519", trusted_issuers: [issuer] });

    const publicJwk = { kty: "OKP", crv: "Ed25519", x: issuer?.keys[0]?.public_key as string };
    const verified = await jwtVerify(alice.credential, await importJWK(publicJwk, "Ed25519"));
    const { protectedHeader, payload } = verified;
    const kid = await calculateJwkThumbprint(publicJwk);
    expect(protectedHeader).toEqual({ alg: "Ed25519", typ: "relay-credential+jwt", kid });
    expect(payload).toMatchObject({ iss: "acme", sub: "agent://alice", exp: (payload.iat ?? 0) + 7 * 86_400 });
    expect(payload.iat).toBeGreaterThanOrEqual(from);

    const claims = payload as JWTPayload & Record<"cnf" | "enc", { jwk: { kty: string; crv: string; x: string } }>;
    expect(alice.key_id).toBe(`jkt-${await calculateJwkThumbprint(claims.cnf.jwk)}`);
    const own = [
      { ...claims.cnf.jwk, d: alice.private_key },
      { ...claims.enc.jwk, d: alice.sealing_key },
    ].map((jwk) => createPublicKey(createPrivateKey({ key: jwk, format: "jwk" })).export({ format: "jwk" }));
    expect(own).toEqual([claims.cnf.jwk, claims.enc.jwk]);
    expect(await problemOf(alice.credential)).toBeUndefined();
  });

  test("issues for 30 days unless it is told otherwise, and not past the key of the issuer", async () => {
    await withIssuer();
    await keys("new", "--agent", "agent://alice");
    const credential = readCredential((await read("alice.json")).credential);
    expect((credential?.expiresAt ?? 0) - (credential?.issuedAt ?? 0)).toBe(30 * DAY_MS);

    const end = new Date(Date.now() + DAY_MS).toISOString();
    await keys("new-issuer", "--issuer", "acme", "--expires-at", end, "--out", inFolder("second.json"));
    const bob = await keys("new", "--agent", "agent://bob", "--issuer-file", inFolder("second.json"));
    expect(bob.stderr).toContain(`until ${end}`);
  });

  test("never overwrites an issuer or an agent's key, and then changes nothing", async () => {
    await withIssuer();
    await keys("new", "--agent", "agent://alice");
    const before = await Promise.all(["keys.json", "issuer.json", "alice.json"].map(read));
    for (const args of [
      ["new-issuer", "--issuer", "other", "--agents", "agent://other.*"],
      ["new", "--agent", "agent://alice"],
    ]) {
      expect(await keys(...args)).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("--out") });
    }
    expect(await Promise.all(["keys.json", "issuer.json", "alice.json"].map(read))).toEqual(before);
  });

  test("leaves no private key behind when the keys file cannot take the issuer", async () => {
    await withIssuer("agent://acme.*");
    const args = ["--agents", "agent://acme.*", "--out", inFolder("rival.json")];
    expect(await keys("new-issuer", "--issuer", "rival", ...args)).toMatchObject({ code: 1 });
    expect(await issuers.names()).toEqual(["issuer.json", "keys.json"]);
  });

  test("takes a thumbprint that begins with a hyphen for one", async () => {
    await withIssuer();
    expect(await keys("remove-issuer", "acme", "--key", `-${"x".repeat(42)}`)).toMatchObject({ code: 1 });
  });

  test("rotates: a further key of the issuer, both in force, until the older one is removed", async () => {
    await withIssuer();
    await keys("new", "--agent", "agent://alice");
    const older = (await read("alice.json")).credential;
    const made = await keys("new-issuer", "--issuer", "acme", "--out", inFolder("second.json"));
    expect(made.stderr).toContain(`new --agent agent://<name> --issuer-file ${inFolder("second.json")}\n`);
    const newer = ["--issuer-file", inFolder("second.json"), "--out", inFolder("alice-2.json")];
    expect(await keys("new", "--agent", "agent://alice", ...newer)).toMatchObject({ code: 0 });
    const credential = (await read("alice-2.json")).credential;
    expect([await problemOf(older), await problemOf(credential)]).toEqual([undefined, undefined]);

    const [first] = (await theIssuer())?.keys ?? [];
    const kid = await calculateJwkThumbprint({ kty: "OKP", crv: "Ed25519", x: first?.public_key as string });
    expect((await keys("list")).stdout).toContain(kid);
    expect(await keys("remove-issuer", "acme", "--key", kid)).toMatchObject({ code: 0 });
    expect([await problemOf(older), await problemOf(credential)]).toEqual(["unknown_issuer", undefined]);
    expect(await keys("new", "--agent", "agent://bob")).toMatchObject({ code: 1 });

    const last = await calculateJwkThumbprint({
      kty: "OKP",
      crv: "Ed25519",
      x: (await read("second.json")).public_key,
    });
    expect(await keys("remove-issuer", "acme", "--key", last)).toMatchObject({ code: 1 });
  });

  test("is no part of a renewal: by the lines of the documents the agent goes on with its keys, that for what was sealed to it too", async () => {
    await withIssuer();
    await keys("new", "--agent", "agent://bob", "--days", "1");
    const before = await read("bob.json");
    const operations = await readFile(join(REPOSITORY, "docs/operations.md"), "utf8");
    const relay = `${process.execPath} ${join(REPOSITORY, "connector/bin/relay.mjs")}`;
    const lines = codeBlock(operations, "sh renew").replaceAll("npx --no relay", relay);
    await promisify(execFile)("sh", ["-ec", lines], { cwd: dirname(issuers.keysFile()), env: {} });

    const { credential, ...rest } = await read("bob.json");
    expect({ ...rest, credential: before.credential }).toEqual(before);
    const [former, renewed] = [readCredential(before.credential), readCredential(credential)];
    expect(renewed?.expiresAt).toBeGreaterThan(former?.expiresAt ?? Number.POSITIVE_INFINITY);
    expect(renewed?.sealingKey).toEqual(former?.sealingKey);
    expect(await problemOf(credential)).toBeUndefined();
  });

  test("revokes what an agent has by now, and what is issued then holds", async () => {
    await withIssuer();
    await keys("new", "--agent", "agent://alice");
    await keys("new", "--agent", "agent://bob");
    const [alice, bob] = [(await read("alice.json")).credential, (await read("bob.json")).credential];
    expect(await keys("revoke", "--agent", "agent://alice", "--issued-before", "now")).toMatchObject({ code: 0 });
    expect([await problemOf(alice), await problemOf(bob)]).toEqual(["revoked", undefined]);

    // At once: it is dated as the revocation asks.
    await keys("new", "--agent", "agent://alice", "--out", inFolder("again.json"));
    expect(await problemOf((await read("again.json")).credential)).toBeUndefined();
    expect(await keys("revoke", "--agent", "*", "--issued-before", "now")).toMatchObject({ code: 0 });
    expect(await problemOf(bob)).toBe("revoked");
  });

  test("revokes also what an issuer whose clock is ahead has issued, as far as a relay takes it by now", async () => {
    await withIssuer();
    const ahead = Date.now() + CREDENTIAL_LIMITS.maxAheadMs;
    const [issuer, terms] = [await read("issuer.json"), { agent: "agent://alice", days: 1 }];
    const { credential } = issue(issuer, await stored(), terms, newAgentKeys(), ahead).keyFile;
    expect(await problemOf(credential)).toBeUndefined();
    await keys("revoke", "--agent", "agent://alice", "--issued-before", "now");
    expect(await problemOf(credential)).toBe("revoked");
  });

  test("keeps the latest revocation of an agent, and none that is older than every credential", async () => {
    await withIssuer("agent://acme.*");
    const at = (daysAgo: number) => new Date(Date.now() - daysAgo * DAY_MS).toISOString();
    const issuer = await theIssuer();
    const old = { agent: "agent://acme.old", issued_before: at(91) };
    await writeFile(issuers.keysFile(), JSON.stringify({ issuers: [{ ...issuer, revoked: [old] }] }));
    const [earlier, later] = [at(5), at(4)];
    for (const time of [earlier, later, earlier]) {
      await keys("revoke", "--agent", "agent://acme.bob", "--issued-before", time);
    }
    expect((await theIssuer())?.revoked).toEqual([{ agent: "agent://acme.bob", issued_before: later }]);
    expect((await keys("list")).stdout).toContain(later);
  });

  test("revokes under the issuer that speaks for the agent, never under another", async () => {
    await withIssuer();
    const rival = ["--agents", "agent://rival.*", "--out", inFolder("rival.json")];
    await keys("new-issuer", "--issuer", "rival", ...rival);
    const revoke = ["revoke", "--agent", "agent://rival.bob", "--issued-before", "now"];
    expect(await keys(...revoke, "--issuer", "acme")).toMatchObject({ code: 1 });
    expect(await keys(...revoke)).toMatchObject({ code: 0 });
    expect((await stored()).issuers.map(({ revoked }) => revoked.length)).toEqual([0, 1]);
    expect(await keys("revoke", "--agent", "*", "--issued-before", "now")).toMatchObject({ code: 2 });
  });

  test("says which command makes an issuer when there is none", async () => {
    const { code, stderr } = await keys("new", "--agent", "agent://alice");
    expect(code).toBe(1);
    expect(stderr).toContain("npm run keys -- new-issuer");
    expect(await issuers.names()).toEqual([]);
  });

  test.each([
    ["an agent of another issuer", ["new", "--agent", "agent://alice"], 1],
    ["an agent of a listed key", ["new", "--agent", "agent://acme.listed"], 1],
    ["a namespace", ["new", "--agent", "agent://acme.*"], 2],
    ["two agents", ["new", "--agent", "agent://acme.a", "--agent", "agent://acme.b"], 2],
    ["a life over 90 days", ["new", "--agent", "agent://acme.bob", "--days", "91"], 2],
    ["a life that is no number", ["new", "--agent", "agent://acme.bob", "--days", "1e1"], 2],
    ["a key id of one's own", ["new", "--agent", "agent://acme.bob", "--key-id", "bob-1"], 2],
    ["an end of a listed key", ["new", "--agent", "agent://acme.bob", "--expires-at", "2999-01-01T00:00:00Z"], 2],
    ["an issuer without a name", ["new-issuer", "--agents", "agent://x.*"], 2],
    ["other agents for a known issuer", ["new-issuer", "--issuer", "acme", "--agents", "*", "--out", "x.json"], 1],
    ["a revocation in the future", ["revoke", "--agent", "agent://acme.bob", "--issued-before", "2999-01-01Z"], 2],
    ["a revocation without a time", ["revoke", "--agent", "agent://acme.bob"], 2],
    ["a revocation for a listed key", ["revoke", "--agent", "agent://acme.listed", "--issued-before", "now"], 1],
    ["the removal of a key that is none", ["remove-issuer", "acme", "--key", "x".repeat(43)], 1],
  ])("refuses %s, and changes nothing", async (_, args, code) => {
    await withIssuer("agent://acme.*");
    await keys("new", "--listed", "--agent", "agent://acme.listed");
    const before = await readFile(issuers.keysFile(), "utf8");
    expect(await keys(...args)).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(/./) });
    expect(await readFile(issuers.keysFile(), "utf8")).toBe(before);
    expect(await issuers.names()).toEqual(["issuer.json", "keys.json"]);
  });
});

describe("npm run keys, of an organisation's issuer", () => {
  const X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
  const record = (agents: string[], publicKey = X) =>
    JSON.stringify({ issuer: "globex", keys: [{ public_key: publicKey }], agents });

  test("admits it from its public record, and removes it", async () => {
    expect(await keysCommand(issuers.keysFile(), ["add-issuer"], record(["agent://globex.*"]))).toMatchObject({
      code: 0,
      stdout: "",
    });
    expect(await theIssuer()).toMatchObject({ issuer: "globex", agents: ["agent://globex.*"] });
    expect(await keys("remove-issuer", "globex")).toMatchObject({ code: 0 });
    expect((await stored()).issuers).toEqual([]);
    expect(await keys("remove-issuer", "globex")).toMatchObject({ code: 1 });
  });

  test("keeps what it revoked while it is removed, and has it in force once it is admitted again", async () => {
    await keysCommand(issuers.keysFile(), ["add-issuer"], record(["agent://globex.*"]));
    await keys("revoke", "--agent", "agent://globex.bob", "--issued-before", "now");
    const revoked = (await theIssuer())?.revoked;
    const at = revoked?.[0]?.issued_before as string;
    await keys("remove-issuer", "globex");
    expect((await stored()).issuers).toEqual([]);
    expect((await keys("list")).stdout).toContain(at);
    await keysCommand(issuers.keysFile(), ["add-issuer"], record(["agent://globex.*"]));
    expect(await stored()).toMatchObject({ issuers: [{ issuer: "globex", revoked }] });
    expect((await stored()).removed_issuers).toBeUndefined();
  });

  test("is not admitted by a file in which its revocations stand apart", async () => {
    const revoked = [{ agent: "*", issued_before: new Date().toISOString() }];
    const readmitted = { issuers: [JSON.parse(record(["*"]))], removed_issuers: [{ issuer: "globex", revoked }] };
    await writeFile(issuers.keysFile(), JSON.stringify(readmitted));
    expect(await keys("list")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("removed_issuers.0.issuer"),
    });
  });

  test("lets the operator say for whom it speaks: no record takes all agents, none changes them later", async () => {
    await writeFile(inFolder("first.json"), record(["*"]));
    expect(await keys("add-issuer", inFolder("first.json"))).toMatchObject({ code: 1 });
    const narrowed = await keys("add-issuer", inFolder("first.json"), "--agents", "agent://globex.*");
    expect(narrowed).toMatchObject({ code: 0 });
    await writeFile(inFolder("next.json"), record(["*"], newOkpKey("Ed25519").publicJwk.x));
    expect(await keys("add-issuer", inFolder("next.json"))).toMatchObject({ code: 0 });
    expect(await theIssuer()).toMatchObject({ agents: ["agent://globex.*"], keys: [{ public_key: X }, {}] });
    expect(await keys("add-issuer", inFolder("next.json"))).toMatchObject({ code: 1 });
  });

  test("refuses a file that holds the private key, and keeps nothing of it", async () => {
    await keys("new-issuer", "--issuer", "own", "--agents", "*");
    const before = await readFile(issuers.keysFile(), "utf8");
    expect(await keys("add-issuer", inFolder("issuer.json"))).toMatchObject({ code: 1, stdout: "" });
    expect(await readFile(issuers.keysFile(), "utf8")).toBe(before);
  });
});
