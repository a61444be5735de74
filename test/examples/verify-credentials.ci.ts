import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@jest/globals";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import type { Frame } from "../support/agent.ts";
import { markedUtf8, UTF_16 } from "../support/temporary-folder.ts";
import { envelope, type Issuer, newAgent, newIssuer, newKey, resigned } from "./receipts.ts";
import { refusal, refused, VECTORS, Verification } from "./verify-kit.ts";

const PROGRAM = fileURLToPath(new URL("../../examples/python/verify.py", import.meta.url));
/** A public key, of RFC 8037, appendix A. */
const X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
const HOUR_S = 3600;

const verification = new Verification();
const { acme, alice, bob } = verification;

describe("verify.py credential", () => {
  const checked = async (token: string, ...options: string[]) =>
    await verification.run("credential", token, ...(await verification.trusting(acme)), ...options);

  test("takes a credential of an issuer that is trusted, and says whose it is", async () => {
    expect(await checked(alice.token)).toMatchObject({
      code: 0,
      ok: true,
      agent: alice.id,
      key_id: `jkt-${alice.key.thumbprint}`,
      issuer: "acme",
    });
    const older = await newAgent(acme, alice.id, {}, { alg: "EdDSA" });
    expect(await checked(older.token)).toMatchObject({ ok: true });
  });

  const now = Math.floor(Date.now() / 1000);
  test.each<[string, object, string]>([
    ["an agent that is another's", { sub: "agent://globex.bob" }, "agent_not_allowed"],
    ["an end that is past", { iat: now - HOUR_S, exp: now - 1 }, "expired"],
    ["a begin that lies ahead", { nbf: now + 120 }, "not_yet_valid"],
    ["an issue that lies ahead", { iat: now + 120, exp: now + HOUR_S }, "not_yet_valid"],
    ["a life of over 90 days", { iat: now, exp: now + 90 * 86_400 + 1 }, "malformed"],
    ["no end", { exp: undefined }, "malformed"],
    ["a private key in cnf", { cnf: { jwk: { kty: "OKP", crv: "Ed25519", x: X, d: X } } }, "malformed"],
    ["a key of small order", { cnf: { jwk: { kty: "OKP", crv: "Ed25519", x: "A".repeat(43) } } }, "malformed"],
    ["a key of another type", { cnf: { jwk: { kty: "OKP", crv: "X25519", x: X } } }, "malformed"],
    ["an issuer that nobody trusts", { iss: "initech" }, "unknown_issuer"],
    ["another relay's name", { aud: "other.example" }, "wrong_relay"],
  ])("refuses %s", async (_, claims, reason) => {
    const { token } = await newAgent(acme, alice.id, claims);
    expect(refusal(await checked(token, "--relay", "relay.example"))).toEqual(refused(reason));
  });

  test.each<[string, object]>([
    ["jku", { jku: "https://rogue.example/keys" }],
    ["jwk", { jwk: { kty: "OKP" } }],
    ["another typ", { typ: "JWT" }],
  ])("refuses a header with %s", async (_, header) => {
    const { token } = await newAgent(acme, alice.id, {}, header);
    expect(refusal(await checked(token))).toEqual(refused("malformed"));
  });

  test("refuses a signature that is another's, and a token that is spelled in another way", async () => {
    const rogue: Issuer = { record: acme.record, key: { ...(await newKey()), thumbprint: acme.key.thumbprint } };
    expect(refusal(await checked((await newAgent(rogue, alice.id)).token))).toEqual(refused("signature"));
    const [head, body, sig] = alice.token.split(".") as [string, string, string];
    const claims = Buffer.from(body, "base64url").toString();
    const twice = Buffer.from(claims.replace("{", '{"sub":"agent://acme.x",')).toString("base64url");
    for (const token of [
      `${head}.${twice}.${sig}`,
      `${head}.${body}.${sig}=`,
      `${head}.${body}`,
      "",
      "x".repeat(3000),
    ]) {
      expect(refusal(await checked(token))).toEqual(refused("malformed"));
    }
  });

  test("refuses what was revoked, what the term of its issuer's key does not cover, and judges at the time it is told", async () => {
    const { record } = acme;
    const revoked = { ...record, revoked: [{ agent: alice.id, issued_before: new Date().toISOString() }] };
    expect(
      refusal(await verification.run("credential", alice.token, "--issuer", await verification.file(revoked))),
    ).toEqual(refused("revoked"));
    const ended = { ...record, keys: [{ ...record.keys[0], expires_at: "2020-01-01T00:00:00Z" }] };
    expect(
      refusal(await verification.run("credential", alice.token, "--issuer", await verification.file(ended))),
    ).toEqual(refused("expired"));
    expect(refusal(await checked(alice.token, "--at", "2999-01-01T00:00:00Z"))).toEqual(refused("expired"));
  });

  test("lets the most specific pattern say whose an agent is, and refuses records that contradict each other", async () => {
    const all = await newIssuer("all", "*");
    const { token } = await newAgent(all, alice.id);
    expect(await verification.run("credential", token, ...(await verification.trusting(all)))).toMatchObject({
      ok: true,
    });
    expect(refusal(await verification.run("credential", token, ...(await verification.trusting(all, acme))))).toEqual(
      refused("agent_not_allowed"),
    );
    const rival = await newIssuer("rival", "agent://acme.*");
    expect(
      await verification.run("credential", alice.token, ...(await verification.trusting(acme, rival))),
    ).toMatchObject({ ok: false });
  });
});

describe("verify.py envelope", () => {
  const checked = async (delivered: object, token = alice.token) =>
    await verification.run(
      "envelope",
      delivered,
      ...(await verification.trusting(acme)),
      "--credential",
      await verification.file(token),
    );

  test("says who signed a delivered envelope, whatever its payload", async () => {
    const inputs = existsSync(VECTORS) ? readdirSync(new URL("input/", VECTORS)) : [];
    const values = inputs.map((name) => JSON.parse(readFileSync(new URL(`input/${name}`, VECTORS), "utf8")));
    const payload = { values, numbers: [1e21, 1e-7, 5e-324, 2 ** 53, 0, 1.5], "\u{1f602}": "\u2028", "\ufb33": null };
    const sent = envelope(alice, bob, "message.send", payload);
    const expected = { code: 0, ok: true, verified: "agent", issuer: "acme", from: alice.id, payload };
    expect(await checked(sent)).toMatchObject(expected);
    expect(await checked({ frame: "deliver", envelope: sent })).toMatchObject(expected);
  });

  test.each<[string, (sent: Frame) => Frame, string]>([
    ["a changed payload", (sent) => ({ ...sent, payload: { message: "no" } }), "bad_signature"],
    ["a changed recipient", (sent) => ({ ...sent, to: "agent://acme.mallory" }), "bad_signature"],
    ["an added task", (sent) => ({ ...sent, task_id: "t-1" }), "bad_signature"],
    ["another's signature", (sent) => resigned(bob, sent), "bad_signature"],
    ["another sender", (sent) => resigned(alice, { ...sent, from: "agent://acme.x" }), "agent_not_allowed"],
    ["another key", (sent) => resigned(alice, { ...sent, key_id: "jkt-x" }), "key_mismatch"],
    ["a ts after the end", (sent) => resigned(alice, { ...sent, ts: sent.ts + 2 * 3_600_000 }), "expired"],
    ["a ts before the issue", (sent) => resigned(alice, { ...sent, ts: sent.ts - 600_000 }), "not_yet_valid"],
    ["an unknown member", (sent) => ({ ...sent, extra: 1 }), "malformed"],
    ["another spelling of the signature", (sent) => ({ ...sent, sig: `${sent.sig}=` }), "malformed"],
  ])("refuses %s", async (_, change, reason) => {
    const sent = envelope(alice, bob, "message.send", { message: "yes" });
    expect(refusal(await checked(change(sent)))).toEqual(refused(reason));
  });

  test("refuses a credential of an issuer that is not trusted", async () => {
    const sent = envelope(bob, alice, "message.send", {});
    expect(refusal(await checked(sent, bob.token))).toEqual(refused("unknown_issuer"));
  });
});

describe("verify.py, of files as PowerShell writes them,", () => {
  const plain = (text: string): Buffer => Buffer.from(text);

  /** Checks an envelope, with files in these encodings. */
  const checked = async (delivered = plain, token = plain, issuer = plain) => {
    const credential = await verification.file(token(`${alice.token}\n`));
    const record = await verification.file(issuer(JSON.stringify(acme.record)));
    const text = delivered(JSON.stringify(envelope(alice, bob, "message.send", {}), null, 2));
    return await verification.run("envelope", text, "--issuer", record, "--credential", credential);
  };

  test("passes over a byte order mark", async () => {
    expect(await checked(markedUtf8, markedUtf8, markedUtf8)).toMatchObject({ code: 0, ok: true });
  });

  test.each(UTF_16)("names a file in %s, and says how to write it", async (_, encoded) => {
    for (const place of [0, 1, 2]) {
      const [delivered, token, issuer] = [0, 1, 2].map((at) => (at === place ? encoded : plain));
      const { code, reason } = await checked(delivered, token, issuer);
      expect([code, reason]).toEqual([1, expect.stringMatching(/^\/.* is not UTF-8; .*Set-Content -Encoding utf8$/)]);
    }
  });
});

test("the program ends with 0, with 1 for what does not hold, with 2 for a command line that is none", async () => {
  const [token, issuer] = [await verification.file(alice.token), await verification.file(acme.record)];
  const codes = [
    ["credential", token, "--issuer", issuer],
    ["credential", issuer, "--issuer", issuer],
    ["credential", "/nowhere", "--issuer", issuer],
    ["credential", token],
    ["credential", token, "--issuer", issuer, "--at", "soon"],
  ].map((args) => spawnSync(pythonProgram(), ["-B", PROGRAM, ...args]).status);
  expect(codes).toEqual([0, 1, 1, 2, 2]);
});
