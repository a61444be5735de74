import { describe, expect, test } from "@jest/globals";
import type { Frame } from "../support/agent.ts";
import { envelope, newAgent, type Receipt, receipt, requestDigest, resigned, sealed } from "./receipts.ts";
import { refusal, refused, Verification } from "./verify-kit.ts";

const HOUR_S = 3600;

const verification = new Verification();
const { acme, globex, alice, bob } = verification;

describe("verify.py open", () => {
  const opened = async (delivered: object, recipient = bob) => {
    const { d } = recipient.sealing.privateKey.export({ format: "jwk" });
    const keys = [
      "--credential",
      await verification.file(alice.token),
      "--key",
      await verification.file({ sealing_key: d }),
    ];
    return await verification.run("open", delivered, ...(await verification.trusting(acme)), ...keys);
  };

  test("opens what another implementation sealed", async () => {
    const payload = { message: "hello", "\u{1f602}": [1e21, -0.5, null] };
    const result = await opened(await sealed(alice, bob, JSON.stringify(payload)));
    expect(result).toMatchObject({ code: 0, ok: true, verified: "agent", sealed: true, payload });
  });

  /** Each changed and signed anew by the sender: so only the seal is left to notice it. */
  test.each<[string, (sent: Frame) => object]>([
    ["id", ({ id }) => ({ id: `${id}x` })],
    ["type", () => ({ type: "message.reply" })],
    ["to", () => ({ to: "agent://globex.other" })],
    ["task_id", () => ({ task_id: "t-2" })],
    ["enc", ({ payload }) => ({ payload: changed(payload, "enc") })],
    ["ct", ({ payload }) => ({ payload: changed(payload, "ct") })],
    ["kid", ({ payload }) => ({ payload: changed(payload, "kid") })],
    ["v", ({ payload }) => ({ payload: { sealed: { ...payload.sealed, v: 2 } } })],
    ["the payload, by a member beside it", ({ payload }) => ({ payload: { ...payload, message: "x" } })],
  ])("refuses a sealed payload when somebody changed %s", async (_, change) => {
    const sent = await sealed(alice, bob, "{}");
    expect(refusal(await opened(resigned(alice, { ...sent, ...change(sent) })))).toEqual(refused("unopenable"));
  });

  test("opens nothing that is sealed to another, whose sender is not verified, or that is no payload", async () => {
    const sent = await sealed(alice, bob, "{}");
    expect(refusal(await opened(sent, alice))).toEqual(refused("unopenable"));
    expect(refusal(await opened({ ...sent, task_id: "t-2" }))).toEqual(refused("bad_signature"));
    for (const text of [
      "[]",
      '{"__proto__":1}',
      `{"a":"${"x".repeat(23_000)}"}`,
      `{"a":${"[".repeat(32)}${"]".repeat(32)}}`,
    ]) {
      expect(refusal(await opened(await sealed(alice, bob, text)))).toEqual(refused("unopenable"));
    }
  });

  function changed({ sealed }: Frame, name: string): object {
    const bytes = Buffer.from(sealed[name], "base64url");
    bytes[0] = (bytes[0] as number) ^ 1;
    return { sealed: { ...sealed, [name]: bytes.toString("base64url") } };
  }
});

describe("verify.py receipt", () => {
  const checked = async (given: object) =>
    await verification.run("receipt", given, ...(await verification.trusting(acme, globex)));

  test("says what was decided, by whom, under which issuers", async () => {
    const given = receipt(alice, bob);
    expect(await checked(given)).toMatchObject({
      code: 0,
      ok: true,
      decision: "session.approve",
      from: alice.id,
      by: bob.id,
      ts: given.decision.ts,
      issuers: ["acme", "globex"],
      revoked_by_now: [],
    });
  });

  const MINUTES = 60_000;
  const decided = (given: Receipt, change: object) => ({
    ...given,
    decision: resigned(bob, { ...given.decision, ...change }),
  });
  const withDigest = (request: Frame, given: Receipt) =>
    decided({ ...given, request }, { payload: { ...given.decision.payload, request_sha256: requestDigest(request) } });

  test.each<[string, (given: Receipt) => object, string]>([
    ["a changed request", (given) => ({ ...given, request: { ...given.request, task_id: "t" } }), "bad_signature"],
    ["a changed decision", (given) => ({ ...given, decision: { ...given.decision, task_id: "t" } }), "bad_signature"],
    ["a decision that is no decision", (given) => decided(given, { type: "message.send" }), "malformed"],
    [
      "a request that is none",
      (given) => withDigest(resigned(alice, { ...given.request, type: "message.send" }), given),
      "malformed",
    ],
    ["a decision of another request", (given) => ({ ...given, request: receipt(alice, bob).request }), "other_request"],
    ["a decision without a digest", (given) => decided(given, { payload: { session_id: "s-1" } }), "other_request"],
    [
      "a decision on another session",
      (given) => decided(given, { payload: { ...given.decision.payload, session_id: `ses_${"0".repeat(26)}` } }),
      "other_session",
    ],
    ["a decision to another", (given) => decided(given, { to: "agent://acme.carol" }), "other_parties"],
    [
      "a request to another",
      (given) => withDigest(resigned(alice, { ...given.request, to: "agent://globex.carol" }), given),
      "other_parties",
    ],
    ["a decision after the ttl", (given) => decided(given, { ts: given.request.ts + 5 * MINUTES + 1 }), "not_in_time"],
    ["a decision long before", (given) => decided(given, { ts: given.request.ts - 5 * MINUTES - 1 }), "not_yet_valid"],
    ["no credential of the decider", (given) => ({ ...given, credentials: [alice.token] }), "key_mismatch"],
    ["another version", (given) => ({ ...given, version: 2 }), "malformed"],
    ["a missing request", ({ request: _, ...given }) => given, "malformed"],
  ])("refuses %s", async (_, change, reason) => {
    expect(refusal(await checked(change(receipt(alice, bob))))).toEqual(refused(reason));
  });

  test("takes a decision up to the end of the ttl, and 300 s before the request by its clock", async () => {
    const wide = { iat: Math.floor(Date.now() / 1000) - HOUR_S, exp: Math.floor(Date.now() / 1000) + HOUR_S };
    const [asker, decider] = [await newAgent(acme, alice.id, wide), await newAgent(globex, bob.id, wide)];
    const { ts } = envelope(asker, decider, "message.send", {});
    for (const [offset, ok] of [
      [5 * MINUTES, true],
      [5 * MINUTES + 1, false],
      [-5 * MINUTES, true],
      [-5 * MINUTES - 1, false],
    ] as const) {
      const given = receipt(asker, decider, { request: { ts }, decision: { ts: ts + offset } });
      expect(await checked(given)).toMatchObject(ok ? { ok } : { ok, reason: expect.stringMatching(/^not_in_time/) });
    }
  });

  test("refuses a party whose issuer is not trusted, or does not speak for it", async () => {
    const given = receipt(alice, bob);
    expect(refusal(await verification.run("receipt", given, ...(await verification.trusting(acme))))).toEqual(
      refused("unknown_issuer"),
    );
    const impostor = await newAgent(acme, bob.id);
    expect(refusal(await checked(receipt(alice, impostor)))).toEqual(refused("agent_not_allowed"));
  });

  test("names the credentials that are revoked by now: they held when they were used", async () => {
    const revoked = [{ agent: "*", issued_before: new Date().toISOString() }];
    const issuers = await verification.trusting(acme, { key: globex.key, record: { ...globex.record, revoked } });
    const result = await verification.run("receipt", receipt(alice, bob), ...issuers);
    expect(result).toMatchObject({ ok: true, revoked_by_now: [`jkt-${bob.key.thumbprint}`] });
  });
});
