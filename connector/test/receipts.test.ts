import { createHash } from "node:crypto";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { canonical } from "../../test/support/agent.ts";
import { markedUtf8, UTF_16 } from "../../test/support/temporary-folder.ts";
import { Issuers } from "../src/credentials/issuers.ts";
import { SESSION_RECORDS } from "../src/limits.ts";
import { buildReceipt, type Receipt, requestDigest } from "../src/receipts/receipt.ts";
import { SessionRecords } from "../src/receipts/session-records.ts";
import { verifyReceipt } from "../src/receipts/verify-receipt.ts";
import type { Envelope } from "../src/types.ts";
import { BOB, credential, envelopeOf, issued, NOW, newKeys, RECORD, sessionOf } from "./credentials/kit.ts";

const OTHER_ISSUER = await newKeys();
const ALICE = await newKeys();
const OTHER = { issuer: "other", keys: [{ public_key: OTHER_ISSUER.x }], agents: ["agent://alice"] };
const OF_ALICE = { iss: "other", sub: "agent://alice", cnf: { jwk: { kty: "OKP", crv: "Ed25519", x: ALICE.x } } };
const OTHER_HEADER = { kid: OTHER_ISSUER.thumbprint };
const HOUR_MS = 3_600_000;

const bobs = await credential();
const alices = await credential(OF_ALICE, OTHER_HEADER, OTHER_ISSUER);
const issuers = await Issuers.from([RECORD, OTHER]);

/** As an outsider would make it from the protocol. */
function digest(request: Envelope): string {
  const text = canonical({ ...request });
  const whole = `${text.slice(0, -1)},"sig":"${request.sig}"}`;
  return createHash("sha256").update(whole).digest("base64url");
}

function requestOf(fields: Partial<Envelope> = {}): Envelope {
  const payload = { purpose: "talk", ttl_minutes: 30 };
  return envelopeOf(BOB, { type: "session.request", payload, ...fields });
}

function decisionOn(request: Envelope, fields: Partial<Envelope> = {}): Envelope {
  const payload = { session_id: sessionOf(request), request_sha256: digest(request) };
  const parties = { from: "agent://alice", to: "agent://acme.bob" };
  return envelopeOf(ALICE, { type: "session.approve", ...parties, payload, ts: NOW + 60_000, ...fields });
}

let request: Envelope;
let decision: Envelope;
beforeEach(() => {
  request = requestOf();
  decision = decisionOn(request);
});

const receiptWith = (changes: Partial<Receipt> = {}): Receipt => ({
  ...buildReceipt({ request, decision, credentials: [alices, bobs] }),
  ...changes,
});
const verified = (receipt: unknown, by = issuers) => verifyReceipt(JSON.stringify(receipt), by);
const problem = (code: string, more: object = {}) => ({ valid: false, problem: { code, ...more } });

describe("A receipt", () => {
  test("shows the decision to whoever has the issuers' keys, and nothing else", async () => {
    expect(await verified(receiptWith())).toEqual({
      valid: true,
      facts: {
        sessionId: sessionOf(request),
        requester: "agent://acme.bob",
        target: "agent://alice",
        decision: "approved",
        requestedAt: NOW,
        decidedAt: NOW + 60_000,
        revoked: [],
      },
    });
    const rejected = receiptWith({ decision: decisionOn(request, { type: "session.reject" }) });
    expect(await verified(rejected)).toMatchObject({ valid: true, facts: { decision: "rejected" } });
  });

  test.each([
    ["a text with a byte order mark", (text: string) => `\ufeff${text}`],
    ["bytes", (text: string) => Buffer.from(text)],
    ["bytes with a byte order mark, as PowerShell writes", markedUtf8],
  ])("may be %s", async (_, given) => {
    expect(await verifyReceipt(given(JSON.stringify(receiptWith())), issuers)).toMatchObject({ valid: true });
  });

  test("holds four parts and the credentials of the two keys", () => {
    expect(receiptWith()).toEqual({ version: 1, request, decision, credentials: [bobs.token, alices.token] });
  });

  test("names a request by the digest of its canonical text with sig", async () => {
    expect(await requestDigest(request)).toBe(digest(request));
    expect(await requestDigest({ ...request, sig: decision.sig })).not.toBe(digest(request));
  });

  test("lists credentials that are revoked by now", async () => {
    const revoked = [{ agent: "*", issued_before: new Date(NOW + HOUR_MS).toISOString() }];
    const later = await Issuers.from([{ ...RECORD, revoked }, OTHER]);
    expect(await verified(receiptWith(), later)).toMatchObject({
      valid: true,
      facts: { revoked: [{ agent: "agent://acme.bob" }] },
    });
  });

  test("holds by another credential of the key when one did not hold then", async () => {
    const ended = issued({ iat: NOW / 1000 - 90, exp: NOW / 1000 - 30 });
    expect(await verified(receiptWith({ credentials: [ended, bobs.token, alices.token] }))).toMatchObject({
      valid: true,
    });
  });
});

describe("A receipt is not made without", () => {
  test.each([
    ["the request", () => ({ request: undefined }), ["request"]],
    ["the decision", () => ({ decision: undefined }), ["decision"]],
    ["both", () => ({ request: undefined, decision: undefined }), ["request", "decision"]],
    ["a credential of the requester", () => ({ credentials: [alices] }), ["credential of agent://acme.bob"]],
    [
      "the request and a credential",
      () => ({ request: undefined, credentials: [bobs] }),
      ["request", "credential of agent://alice"],
    ],
    [
      "a key with a credential",
      () => ({ request: { ...request, key_id: "gateway-1" } }),
      ["credential of agent://acme.bob"],
    ],
  ])("%s, and it says what is missing", (_, changes, missing) => {
    const parts = { request, decision, credentials: [alices, bobs], ...changes() };
    expect(() => buildReceipt(parts)).toThrow(expect.objectContaining({ code: "receipt_incomplete", missing }));
  });
});

describe("A receipt shows nothing", () => {
  test.each([
    ["of another request", () => requestOf({ id: "another" })],
    ["of the same request, signed again with another time", () => requestOf({ id: request.id, ts: NOW + 1 })],
  ])("whose decision is that %s", async (_, other) => {
    expect(await verified(receiptWith({ request: other() }))).toEqual(problem("digest"));
  });

  test("whose decision names another session", async () => {
    const session_id = sessionOf(requestOf({ id: "another" }));
    const decided = decisionOn(request, { payload: { ...decision.payload, session_id } });
    expect(await verified(receiptWith({ decision: decided }))).toEqual(problem("session"));
  });

  test("whose decision does not say on which request", async () => {
    const without = decisionOn(request, { payload: { session_id: "ses_1" } });
    expect(await verified(receiptWith({ decision: without }))).toEqual(problem("malformed"));
  });

  test.each([
    ["another than the target", { from: "agent://carol" }],
    ["the target, to another than the requester", { to: "agent://carol" }],
  ])("whose decision is by %s", async (_, changes) => {
    expect(await verified(receiptWith({ decision: decisionOn(request, changes) }))).toEqual(problem("parties"));
  });

  test.each([
    ["more than 300 s before the request", -300_001, -300_000],
    ["after its end", 30 * 60_000 + 1, 30 * 60_000],
  ])("whose decision is %s", async (_, bad, good) => {
    const at = (after: number) => verified(receiptWith({ decision: decisionOn(request, { ts: NOW + after }) }));
    const early = good < 0;
    const older = { iat: NOW / 1000 - 600, exp: NOW / 1000 + 3600 };
    const old = await credential({ ...OF_ALICE, ...older }, OTHER_HEADER, OTHER_ISSUER);
    expect(await at(bad)).toEqual(problem("time", { reason: early ? "before_request" : "after_end" }));
    const receipt = receiptWith({
      decision: decisionOn(request, { ts: NOW + good }),
      credentials: [bobs.token, early ? old.token : alices.token],
    });
    expect(await verified(receipt)).toMatchObject({ valid: true });
  });

  test("of a request that says no end: it has 60 minutes", async () => {
    request = requestOf({ payload: { purpose: "talk" } });
    const at = (after: number) => verified(receiptWith({ decision: decisionOn(request, { ts: NOW + after }) }));
    expect(await at(HOUR_MS - 1)).toMatchObject({ valid: true });
    expect(await at(HOUR_MS + 1)).toEqual(problem("time", { reason: "after_end" }));
  });

  test.each([
    ["request", () => ({ request: { ...request, sig: decision.sig } })],
    ["decision", () => ({ decision: { ...decision, payload: { ...decision.payload, reason: "x" } } })],
  ])("whose %s its key did not sign", async (part, changes) => {
    const changed = receiptWith(changes());
    const payload = { session_id: sessionOf(changed.request), request_sha256: digest(changed.request) };
    const fitting = part === "request" ? { ...changed, decision: decisionOn(changed.request, { payload }) } : changed;
    expect(await verified(fitting)).toEqual(problem("signature", { part }));
  });

  test.each([
    ["no credential", () => [alices.token], "request", "key_mismatch"],
    [
      "a credential of the key for another agent",
      () => [alices.token, issued({ sub: "agent://acme.eve" })],
      "request",
      "key_mismatch",
    ],
    ["a credential that another signed", () => [alices.token, issued({}, {}, OTHER_ISSUER)], "request", "signature"],
    [
      "a credential that had ended",
      () => [alices.token, issued({ iat: NOW / 1000 - 60, exp: NOW / 1000 })],
      "request",
      "expired",
    ],
    ["a credential from after it", () => [alices.token, issued({ iat: NOW / 1000 + 61 })], "request", "not_yet_valid"],
  ])("whose request has %s", async (_, credentials, part, reason) => {
    expect(await verified(receiptWith({ credentials: credentials() }))).toEqual(
      problem("credential", { part, reason }),
    );
  });

  test("whose issuer nobody named, or may not speak for the agent", async () => {
    const unknown = await Issuers.from([RECORD]);
    expect(await verified(receiptWith(), unknown)).toEqual(
      problem("credential", { part: "decision", reason: "unknown_issuer" }),
    );
    const elsewhere = await Issuers.from([RECORD, { ...OTHER, agents: ["agent://carol"] }]);
    expect(await verified(receiptWith(), elsewhere)).toEqual(
      problem("credential", { part: "decision", reason: "agent_not_allowed" }),
    );
  });

  test.each([
    ["of another version", () => ({ version: 2 })],
    ["with another member", () => ({ note: "x" })],
    ["without a decision", () => ({ decision: undefined })],
    ["whose decision is a message", () => ({ decision: { ...decision, type: "message.send" } })],
    ["whose request is a message", () => ({ request: { ...request, type: "message.send" } })],
    ["whose request has another member", () => ({ request: { ...request, note: "x" } })],
    ["whose request has no time", () => ({ request: { ...request, ts: "now" } })],
    ["whose request ends after more than a day", () => ({ request: requestOf({ payload: { ttl_minutes: 1441 } }) })],
    ["whose request is a gateway's", () => ({ request: { ...request, key_id: "gateway-1" } })],
    ["whose request is signed with a secret", () => ({ request: { ...request, sig: "A".repeat(43) } })],
    ["with a credential that is none", () => ({ credentials: [bobs.token, alices.token, "a.b.c"] })],
    [
      "with more credentials than two agents have",
      () => ({ credentials: Array.from({ length: 5 }, () => bobs.token) }),
    ],
    ["with no list of credentials", () => ({ credentials: bobs.token })],
  ])("%s: it is malformed", async (_, changes) => {
    expect(await verified({ ...receiptWith(), ...changes() })).toEqual(problem("malformed"));
  });

  test.each([
    ["no JSON", () => "{"],
    ["no object", () => "[]"],
    ["a member twice", () => JSON.stringify(receiptWith()).replace("{", '{"version":1,')],
    ["a member twice below", () => JSON.stringify(receiptWith()).replace('"purpose"', '"purpose":"x","purpose"')],
    ["a text after two byte order marks", () => `\ufeff\ufeff${JSON.stringify(receiptWith())}`],
    ["not in UTF-8", () => Buffer.from(JSON.stringify(receiptWith()).replace("talk", "\xe4"), "latin1")],
    ["neither text nor bytes", receiptWith],
    ["undefined", () => undefined],
  ])("that is %s: it is malformed", async (_, given) => {
    expect(await verifyReceipt(given() as string, issuers)).toEqual(problem("malformed"));
  });

  test.each(UTF_16)("in %s: it is malformed, and the problem names that", async (_, encoded) => {
    const verdict = await verifyReceipt(encoded(JSON.stringify(receiptWith())), issuers);
    expect(verdict).toEqual(problem("malformed", { reason: "utf_16" }));
  });
});

describe("The records of sessions", () => {
  const BOB_ID = "agent://acme.bob";
  const requestOf = (purpose = "talk") => envelopeOf(BOB, { type: "session.request", payload: { purpose } });
  const decisionOn = (digest: string | undefined, fields: Partial<Envelope> = {}) =>
    envelopeOf(ALICE, {
      type: "session.approve",
      from: "agent://alice",
      to: "agent://acme.bob",
      payload: { session_id: "s", request_sha256: digest },
      ...fields,
    });

  async function holding(...requests: Envelope[]): Promise<SessionRecords> {
    const records = new SessionRecords("agent://alice");
    for (const request of requests) await records.keep("s", request, bobs);
    return records;
  }

  test("A decision from or for somebody else, or on another request, takes nobody's place", async () => {
    const request = requestOf();
    const records = await holding(request);
    const digest = records.requestOf("s", "agent://acme.bob")?.digest;
    const decision = decisionOn(digest);
    const [byOther, forOther, onOther] = [
      decisionOn(digest, { from: "agent://eve" }),
      decisionOn(digest, { to: "agent://eve" }),
      decisionOn("A".repeat(43)),
    ];
    for (const one of [byOther, forOther, onOther]) await records.keep("s", one, alices);
    expect(() => records.receipt("s")).toThrow(expect.objectContaining({ missing: ["decision"] }));
    await records.keep("s", decision, alices);
    expect(records.receipt("s")).toMatchObject({ request, decision, credentials: [bobs.token, alices.token] });
  });

  test("What nobody vouched for by a credential is missing", async () => {
    const records = await holding(requestOf());
    await records.keep("s", decisionOn(records.requestOf("s", "agent://acme.bob")?.digest), undefined);
    expect(() => records.receipt("s")).toThrow(
      expect.objectContaining({ code: "receipt_incomplete", missing: ["credential of agent://alice"] }),
    );
  });

  test("A decision that does not name its request, and a request by a gateway, are told as what is missing", async () => {
    const records = await holding(requestOf());
    await records.keep("s", decisionOn(undefined, { payload: { session_id: "s" } }), alices);
    const unbound = ["request_sha256 of the decision"];
    expect(() => records.receipt("s")).toThrow(expect.objectContaining({ missing: unbound }));
    await records.keep("s", decisionOn(records.requestOf("s", "agent://acme.bob")?.digest), alices);
    expect(records.receipt("s").credentials).toHaveLength(2);
    await records.keep("gateway's", { ...requestOf(), key_id: `gateway-${"A".repeat(22)}` }, undefined);
    const missing = ["decision", "credential of agent://acme.bob"];
    expect(() => records.receipt("gateway's")).toThrow(expect.objectContaining({ missing }));
  });

  test("Of a session that the gateway requested for this agent, the request alone is missing", async () => {
    const records = new SessionRecords("agent://alice");
    await records.keep("s", decisionOn("A".repeat(43)), alices);
    expect(() => records.receipt("s")).toThrow(expect.objectContaining({ missing: ["request"] }));
    expect(() => records.receipt("unknown")).toThrow(expect.objectContaining({ missing: ["request", "decision"] }));
  });

  test("Of two requests of one requester it is not clear which is decided; of different ones it is", async () => {
    const records = await holding(requestOf("talk"), requestOf("something else"));
    expect(records.requestOf("s", "agent://acme.bob")?.digest).toBeUndefined();
    await records.keep("s", { ...requestOf(), from: "agent://eve" }, undefined);
    expect(records.requestOf("s", "agent://eve")?.digest).toMatch(/^[\w-]{43}$/);
  });

  /** About as large as a frame may be. */
  const LARGE = "\u{1f44d}".repeat(8000);
  const FLOOD = (2 * SESSION_RECORDS.maxBytes) / Buffer.byteLength(LARGE);

  test("What is kept of the sessions of others is bounded in bytes, and takes no room of sessions in which this agent signed", async () => {
    const records = await holding(requestOf());
    await records.keep("s", decisionOn(records.requestOf("s", "agent://acme.bob")?.digest), alices);
    const requested = { type: "session.request", from: "agent://alice", to: BOB_ID, payload: { purpose: "talk" } };
    await records.keep("requested", envelopeOf(ALICE, requested), alices);
    await records.keep("undecided", requestOf(), bobs);
    const large = requestOf(LARGE);
    for (let n = 0; n < FLOOD; n += 1) await records.keep(`s${n}`, large, bobs);
    expect(records.receipt("s").credentials).toHaveLength(2);
    expect(() => records.receipt("requested")).toThrow(expect.objectContaining({ missing: ["decision"] }));
    expect(records.requestOf("undecided", BOB_ID)?.digest).toBeUndefined();
    const kept = Array.from({ length: FLOOD }, (_, n) => records.requestOf(`s${n}`, BOB_ID)?.digest).filter(
      Boolean,
    ).length;
    expect(kept * Buffer.byteLength(LARGE)).toBeLessThanOrEqual(SESSION_RECORDS.maxBytes);
    expect(records.requestOf(`s${Math.ceil(FLOOD) - 1}`, BOB_ID)?.digest).toBeDefined();
  });

  test("Large sessions in which this agent signed give way to newer ones of it", async () => {
    const records = new SessionRecords("agent://alice");
    const large = envelopeOf(ALICE, { type: "session.request", from: "agent://alice", payload: { purpose: LARGE } });
    for (let n = 0; n < FLOOD; n += 1) await records.keep(`s${n}`, large, alices);
    const missing = (n: number) =>
      expect.objectContaining({ missing: n === 0 ? ["request", "decision"] : ["decision"] });
    expect(() => records.receipt("s0")).toThrow(missing(0));
    expect(() => records.receipt(`s${Math.ceil(FLOOD) - 1}`)).toThrow(missing(1));
  });

  test("The newest sessions are remembered, each with few envelopes", async () => {
    const records = await holding(requestOf());
    for (let n = 1; n < SESSION_RECORDS.max; n += 1) await records.keep(`s${n}`, requestOf(), bobs);
    expect(records.requestOf("s", "agent://acme.bob")?.digest).toBeDefined();
    await records.keep("one more", requestOf(), bobs);
    expect(records.requestOf("s", "agent://acme.bob")?.digest).toBeUndefined();
    expect(records.requestOf("s1", "agent://acme.bob")?.digest).toBeDefined();
    for (let n = 0; n < SESSION_RECORDS.maxOfAKind; n += 1) await records.keep("s1", requestOf(`${n}`), bobs);
    const late = { ...requestOf(), from: "agent://eve" };
    await records.keep("s1", late, bobs);
    expect(records.requestOf("s1", "agent://eve")?.digest).toBeUndefined();
  });
});
