import { describe, expect, test } from "@jest/globals";
import { SEALING_KEY_KEPT_MS } from "../../src/limits.ts";
import { buildReceipt, requestDigest } from "../../src/receipts/receipt.ts";
import type { Envelope } from "../../src/types.ts";
import {
  credential,
  envelopeOf,
  ISSUER,
  BOB as KEYS_OF_BOB,
  NOW,
  newKeys,
  RECORD,
  sessionOf,
} from "../credentials/kit.ts";
import { sharedByAll } from "../fixture.ts";
import { jsonLines } from "../kit.ts";
import { Shell } from "./shell.ts";

/** Commands that need no relay: who vouches for whom, and what a receipt shows. */

const shell = sharedByAll(new Shell());
const BOB = "agent://acme.bob";

const run = (args: readonly string[], stdin = "") => shell.run(args, { stdin: stdin });

/** What a command prints, which must succeed. */
async function printed(args: string[], stdin = ""): Promise<string> {
  const { code, stdout, stderr } = await run(args, stdin);
  expect([args[0], code, code === 0 || stderr]).toEqual([args[0], 0, true]);
  return stdout;
}

/** The code of a command that must fail. */
async function refusal(args: string[], stdin = ""): Promise<[number | null, string | undefined]> {
  const { code, stdout, stderr } = await run([...args, "--json"], stdin);
  expect(stdout).toBe("");
  return [code, jsonLines(stderr).at(-1)?.code];
}

/** An issuer, once a file: `<name>.issuer.json`, and its record in `<name>.json`. */
async function issuer(name: string, ...options: string[]): Promise<void> {
  await shell.write(
    `${name}.json`,
    await printed(["issuer", "new", "--issuer", name, "--out", `${name}.issuer.json`, ...options]),
  );
}

/** An agent's key, once a file: `<name>.key.json`, and its record in `<name>.public.json`. */
async function agent(name: string, id: string): Promise<void> {
  await shell.write(`${name}.public.json`, await printed(["keygen", "--agent", id, "--out", `${name}.key.json`]));
}

const issue = (by: string, name: string, id: string, ...options: string[]) =>
  printed(["issue", "--issuer", `${by}.issuer.json`, "--agent", id, "--key", `${name}.public.json`, ...options]);
const inspect = async (...args: string[]) => {
  const { code, stdout } = await run(["inspect", "--json", ...args]);
  return { code, ...jsonLines(stdout)[0] };
};

describe("relay issuer, issue and credential", () => {
  test("vouch for an agent's key, with files alone", async () => {
    await issuer("acme");
    await agent("bob", BOB);
    expect(await shell.json("acme.json")).toEqual({
      issuer: "acme",
      keys: [{ public_key: expect.any(String) }],
      agents: ["agent://acme.*"],
    });
    await shell.write("bob.credential", await issue("acme", "bob", BOB, "--days", "2", "--aud", "relay.example"));
    await printed(["credential", "bob.credential", "--key", "bob.key.json", "--trust", "acme.json"]);

    const held = await inspect("bob.key.json", "--issuer", "acme.json");
    const { public_key, sealing_public_key } = await shell.json("bob.public.json");
    expect(held).toMatchObject({ code: 0, ok: true, holds: true, issuer: "acme", agent_id: BOB, public_key });
    expect(held).toMatchObject({ sealing_public_key, relays: ["relay.example"] });
    expect(Date.parse(held.expires_at_iso) - Date.parse(held.issued_at_iso)).toBe(2 * 86_400_000);
    expect(await shell.json("bob.key.json")).toMatchObject({
      agent_id: BOB,
      key_id: held.key_id,
      credential: expect.stringMatching(/^eyJ/),
      trusted_issuers: [{ issuer: "acme" }],
    });
  });

  test("keep what is private in files that only their owner may read, and never overwrite it", async () => {
    await issuer("private");
    await agent("private", "agent://private.bob");
    await shell.write("private.credential", await issue("private", "private", "agent://private.bob"));
    await printed(["credential", "private.credential", "--key", "private.key.json"]);
    for (const name of ["private.issuer.json", "private.key.json"]) expect(await shell.mode(name)).toBe(0o600);
    const { private_key } = await shell.json("private.issuer.json");
    expect(JSON.stringify(await shell.json("private.json"))).not.toContain(private_key);
    expect(await refusal(["issuer", "new", "--issuer", "private", "--out", "private.issuer.json"])).toEqual([
      1,
      "failed",
    ]);
    expect(await shell.json("private.issuer.json")).toMatchObject({ private_key });
  });

  test("write to files that have the names of the issuer and the agent, unless told otherwise", async () => {
    const [made] = await Promise.all([
      shell.run(["issuer", "new", "--issuer", "globex"]),
      shell.run(["keygen", "--agent", "agent://globex.bob"]),
    ]);
    expect(made.code).toBe(0);
    expect(await shell.json("globex.issuer.json")).toMatchObject({ issuer: "globex" });
    expect(await shell.json("globex.bob.json")).toMatchObject({ agent_id: "agent://globex.bob" });
  });

  test("go through a pipe", async () => {
    await issuer("pipe");
    await agent("pipe", "agent://pipe.bob");
    const token = await issue("pipe", "pipe", "agent://pipe.bob");
    await printed(["credential", "-", "--key", "pipe.key.json"], token);
    expect((await shell.json("pipe.key.json")).credential).toBe(token.trim());
  });

  test("rotate the sealing key: the former one is kept until ten minutes after its credential, then dropped", async () => {
    await issuer("turn");
    await agent("turn", "agent://turn.bob");
    const put = async (...options: string[]) => {
      await shell.write("turn.credential", await issue("turn", "turn", "agent://turn.bob", ...options));
      return JSON.parse(await printed(["credential", "turn.credential", "--key", "turn.key.json", "--json"]));
    };
    const { expires_at_iso } = await put("--days", "1");
    const { sealing_key: first } = await shell.json("turn.key.json");
    const rotate = ["keygen", "--agent", "agent://turn.bob", "--out", "turn.key.json", "--new-sealing-key"];
    await shell.write("turn.public.json", await printed(rotate));
    const [second] = (await shell.json("turn.key.json")).sealing_key;

    const until = new Date(Date.parse(expires_at_iso) + SEALING_KEY_KEPT_MS).toISOString();
    expect(await put()).toMatchObject({ former_sealing_keys_until_iso: [until], dropped_sealing_keys: 0 });
    const turned = await shell.json("turn.key.json");
    expect(turned.sealing_key).toEqual([second, { private_key: first, until }]);

    const over = { private_key: first, until: new Date(Date.now() - 1).toISOString() };
    await shell.write("turn.key.json", { ...turned, sealing_key: [second, over] });
    expect(await put()).toMatchObject({ former_sealing_keys_until_iso: [], dropped_sealing_keys: 1 });
    expect((await shell.json("turn.key.json")).sealing_key).toBe(second);
    await shell.write("turn.key.json", { ...turned, sealing_key: [second, { private_key: first }] });
    expect(await refusal(["credential", "turn.credential", "--key", "turn.key.json"])).toEqual([7, "invalid_key"]);
  });

  test("refuse what would not hold, or would be of no use", async () => {
    await issuer("strict");
    await agent("eve", "agent://strict.eve");
    await agent("ann", "agent://strict.ann");
    const { stdout } = await run(["keygen", "--agent", "agent://strict.eve", "--out", "eve2.key.json"]);
    await shell.write("eve2.public.json", stdout);
    const issueTo = (id: string, key: string, ...more: string[]) =>
      refusal(["issue", "--issuer", "strict.issuer.json", "--agent", id, "--key", key, ...more]);
    expect(await issueTo("agent://strict.bob", "eve.public.json")).toEqual([2, "usage"]);
    expect(await issueTo("agent://strict.eve", "eve.key.json")).toEqual([2, "usage"]);
    expect(await issueTo("agent://strict.eve", "eve.public.json", "--days", "91")).toEqual([2, "usage"]);
    const byRecord = ["issue", "--issuer", "strict.json", "--agent", "agent://strict.eve", "--key", "eve.public.json"];
    expect(await refusal(byRecord)).toEqual([7, "invalid_key"]);

    const before = await shell.json("eve.key.json");
    await shell.write("ann.credential", await issue("strict", "ann", "agent://strict.ann"));
    await shell.write("eve2.credential", await issue("strict", "eve2", "agent://strict.eve"));
    const { sealing_public_key } = await shell.json("ann.public.json");
    const mixed = { ...(await shell.json("eve.public.json")), sealing_public_key };
    await shell.write("mixed.public.json", mixed);
    await shell.write("mixed.credential", await issue("strict", "mixed", "agent://strict.eve"));
    for (const name of ["ann.credential", "eve2.credential", "mixed.credential", "eve.public.json"])
      expect([name, ...(await refusal(["credential", name, "--key", "eve.key.json"]))]).toEqual([
        name,
        7,
        "invalid_credential",
      ]);
    expect(await shell.json("eve.key.json")).toEqual(before);
  });
});

describe("relay issue", () => {
  test("signs for no agent that its issuer does not speak for, where the issuer's file says for whom it does", async () => {
    await issuer("sole", "--agents", "agent://sole.*");
    await agent("soleother", "agent://other.bob");
    const args = [
      "issue",
      "--issuer",
      "sole.issuer.json",
      "--agent",
      "agent://other.bob",
      "--key",
      "soleother.public.json",
    ];
    expect(await refusal(args)).toEqual([2, "usage"]);
    expect((await run(args)).stderr).toMatch(/sole .*agent:\/\/other\.bob.*agent:\/\/sole\.\*/);
    const { agents: _, ...earlier } = (await shell.json("sole.issuer.json")) as { agents: unknown };
    await shell.write("earlier.issuer.json", earlier);
    expect(await issue("earlier", "soleother", "agent://other.bob")).toMatch(/^ey/);
  });
});

describe("relay inspect", () => {
  test("says why a credential does not hold, by its exit code too", async () => {
    await issuer("one", "--agents", "agent://one.bob", "--agents", "agent://one.carl");
    await issuer("two", "--agents", "agent://one.*");
    await agent("onebob", "agent://one.bob");
    await agent("onecarl", "agent://one.carl");
    await shell.write("one.credential", await issue("one", "onebob", "agent://one.bob"));
    await shell.write("carl.credential", await issue("one", "onecarl", "agent://one.carl"));
    const held = await inspect("one.credential", "--issuer", "one.json", "--issuer", "two.json");
    expect(held).toMatchObject({ code: 0, holds: true });
    expect(await inspect("one.credential")).toMatchObject({ code: 0, ok: true, holds: null });
    const refused = { code: 7, ok: false, holds: false };
    expect(await inspect("one.credential", "--issuer", "two.json")).toMatchObject({
      ...refused,
      reason: "unknown_issuer",
    });
    await shell.write("less.json", { ...(await shell.json("one.json")), agents: ["agent://one.bob"] });
    expect(await inspect("carl.credential", "--issuer", "less.json")).toMatchObject({
      ...refused,
      reason: "agent_not_allowed",
    });
    const pinning = ["credential", "carl.credential", "--key", "onecarl.key.json", "--trust", "less.json"];
    expect(await refusal(pinning)).toEqual([2, "usage"]);
    const revoked = [{ agent: "*", issued_before: new Date(Date.now() + 60_000).toISOString() }];
    await shell.write("manifest.json", { other: 1, issuers: [{ ...(await shell.json("one.json")), revoked }] });
    expect(await inspect("one.credential", "--issuer", "manifest.json")).toMatchObject({
      ...refused,
      reason: "revoked",
    });
  });

  test("takes the credential itself, and refuses what is none", async () => {
    await issuer("word");
    await agent("word", "agent://word.bob");
    const token = (await issue("word", "word", "agent://word.bob")).trim();
    expect(await inspect(token)).toMatchObject({ code: 0, agent_id: "agent://word.bob" });
    const shown = await run(["inspect", token, "--issuer", "word.json"]);
    expect([shown.code, shown.stderr]).toEqual([0, ""]);
    for (const part of ["agent://word.bob", "word"]) expect(shown.stdout).toContain(part);
    expect(await refusal(["inspect", `${token}A`])).toEqual([7, "invalid_credential"]);
    expect(await refusal(["inspect", "word.json"])).toEqual([7, "invalid_credential"]);
    expect(await refusal(["inspect", token, "--issuer", "word.issuer.json"])).toEqual([2, "usage"]);
    expect(await refusal(["inspect", "nowhere.json"])).toEqual([2, "usage"]);
  });
});

const KEYS_OF_ALICE = await newKeys();
const bobs = await credential();
const alices = await credential({
  sub: "agent://acme.alice",
  cnf: { jwk: { kty: "OKP", crv: "Ed25519", x: KEYS_OF_ALICE.x } },
});

describe("relay verify", () => {
  const request = envelopeOf(KEYS_OF_BOB, {
    type: "session.request",
    to: "agent://acme.alice",
    payload: { purpose: "talk" },
  });

  async function decision(fields: Partial<Envelope> = {}): Promise<Envelope> {
    const payload = { session_id: sessionOf(request), request_sha256: await requestDigest(request) };
    const parties = { from: "agent://acme.alice", to: "agent://acme.bob" };
    return envelopeOf(KEYS_OF_ALICE, { type: "session.approve", ...parties, payload, ts: NOW + 60_000, ...fields });
  }

  /** `relay verify` of a receipt on standard input. */
  async function verify(decided: Envelope, record: object = RECORD, ...options: string[]) {
    await shell.write("acme.json", record);
    const receipt = buildReceipt({ request, decision: decided, credentials: [alices, bobs] });
    const args = ["verify", "-", "--issuer", "acme.json", ...options];
    return await shell.run(args, { stdin: JSON.stringify(receipt) });
  }

  test("prints the decision of a receipt that is valid", async () => {
    const { code, stdout, stderr } = await verify(await decision(), RECORD, "--json");
    expect([code, stderr]).toEqual([0, ""]);
    expect(jsonLines(stdout)).toEqual([
      {
        ok: true,
        session_id: sessionOf(request),
        requester: "agent://acme.bob",
        target: "agent://acme.alice",
        decision: "approved",
        requested_at_iso: new Date(NOW).toISOString(),
        decided_at_iso: new Date(NOW + 60_000).toISOString(),
        revoked: [],
      },
    ]);
    const text = await verify(await decision({ type: "session.reject" }));
    expect(text).toMatchObject({ code: 0, stdout: expect.stringContaining("rejected") });
  });

  test("names credentials that were revoked since", async () => {
    const revoked = [{ agent: "agent://acme.bob", issued_before: new Date(NOW + 1000).toISOString() }];
    const { code, stdout } = await verify(await decision(), { ...RECORD, revoked }, "--json");
    expect([code, jsonLines(stdout)[0].revoked]).toEqual([
      0,
      [{ agent_id: "agent://acme.bob", issuer: "acme", issued_at_iso: new Date(bobs.issuedAt).toISOString() }],
    ]);
    const text = await verify(await decision(), { ...RECORD, revoked });
    expect(text.stdout.trim().split("\n")).toHaveLength(2);
  });

  test("ends with 8 for one that is not valid, and says why", async () => {
    const forged = { ...(await decision()), sig: request.sig };
    const other = { ...RECORD, keys: [{ public_key: (await newKeys()).x }] };
    const late = await decision({ ts: NOW + 2 * 3_600_000 });
    const results = [await verify(forged, RECORD), await verify(await decision(), other), await verify(late, RECORD)];
    expect(results.map(({ code, stdout }) => [code, stdout])).toEqual([
      [8, ""],
      [8, ""],
      [8, ""],
    ]);
    const said = results.map(({ stderr }) => /\((\w+)\)/.exec(stderr)?.[1]);
    expect(said).toEqual(["signature", "credential", "time"]);
    expect(ISSUER.x).not.toBe(other.keys[0]?.public_key);
  });

  test("needs to be told whom to believe, and takes no private file for that", async () => {
    const unnamed = await shell.run(["verify", "-"]);
    expect([unnamed.code, unnamed.stderr]).toEqual([2, expect.stringContaining("--key FILE")]);
    await shell.write("private.json", { issuer: "acme", alg: "ed25519", private_key: ISSUER.d, public_key: ISSUER.x });
    const { code, stderr } = await shell.run(["verify", "-", "--issuer", "private.json"]);
    expect(code).toBe(2);
    expect(stderr).not.toContain(ISSUER.d);
    expect(stderr).toContain("--key");
  });

  test("believes the issuers that a key file pins, and a record of one rather than the pin", async () => {
    const { d: private_key } = KEYS_OF_BOB;
    const pinning = { agent_id: "agent://acme.bob", key_id: "bob-1", alg: "ed25519", private_key };
    await shell.write("bob.json", { ...pinning, trusted_issuers: [RECORD] });
    const receipt = JSON.stringify(buildReceipt({ request, decision: await decision(), credentials: [alices, bobs] }));
    const pinned = await shell.run(["verify", "-", "--key", "bob.json"], { stdin: receipt });
    expect(pinned).toMatchObject({ code: 0, stdout: expect.stringContaining("approved") });
    await shell.write("acme.json", { ...RECORD, keys: [{ public_key: (await newKeys()).x }] });
    const named = await shell.run(["verify", "-", "--key", "bob.json", "--issuer", "acme.json"], { stdin: receipt });
    expect(named.code).toBe(8);
    await shell.write("bob.credential", bobs.token);
    const inspected = await shell.run(["inspect", "bob.credential", "--key", "bob.json", "--json"]);
    expect(jsonLines(inspected.stdout)[0]).toHaveProperty("holds");
    expect(jsonLines(inspected.stdout)[0].holds).not.toBeNull();
  });

  test("says it of a decision that is dated before its request, and takes none by more than clocks may differ", async () => {
    const slightly = await verify(await decision({ ts: NOW - 33 }));
    expect(slightly).toMatchObject({ code: 0, stdout: expect.stringContaining("33 ms before its request") });
    const early = await verify(await decision({ ts: NOW - 300_001 }));
    expect(early).toMatchObject({ code: 8, stderr: expect.stringContaining("before its request") });
  });
});
