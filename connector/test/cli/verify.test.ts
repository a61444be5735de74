import { describe, expect, test } from "@jest/globals";
import { buildReceipt, requestDigest } from "../../src/receipts/receipt.ts";
import type { Envelope } from "../../src/types.ts";
import { BOB, credential, envelopeOf, ISSUER, NOW, newKeys, RECORD } from "../credentials/kit.ts";
import { sharedByAll } from "../fixture.ts";
import { jsonLines } from "../kit.ts";
import { sessionOf } from "../receipts/sessions.ts";
import { Shell } from "./shell.ts";

const shell = sharedByAll(new Shell());
const ALICE = await newKeys();
const bobs = await credential();
const alices = await credential({
  sub: "agent://acme.alice",
  cnf: { jwk: { kty: "OKP", crv: "Ed25519", x: ALICE.x } },
});

const request = envelopeOf(BOB, {
  type: "session.request",
  to: "agent://acme.alice",
  payload: { purpose: "talk" },
});

async function decision(fields: Partial<Envelope> = {}): Promise<Envelope> {
  const payload = { session_id: sessionOf(request), request_sha256: await requestDigest(request) };
  const parties = { from: "agent://acme.alice", to: "agent://acme.bob" };
  return envelopeOf(ALICE, { type: "session.approve", ...parties, payload, ts: NOW + 60_000, ...fields });
}

/** `relay verify` of a receipt on standard input. */
async function verify(decided: Envelope, record: object = RECORD, ...options: string[]) {
  await shell.write("acme.json", record);
  const receipt = buildReceipt({ request, decision: decided, credentials: [alices, bobs] });
  const args = ["verify", "-", "--issuer", "acme.json", ...options];
  return await shell.run(args, { stdin: JSON.stringify(receipt) });
}

describe("relay verify", () => {
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
    const said = results.map(({ stderr }) => /: (\w+),/.exec(stderr)?.[1]);
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
    const { d: private_key } = BOB;
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
