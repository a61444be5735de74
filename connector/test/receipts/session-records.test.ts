import { expect, test } from "@jest/globals";
import { SESSION_RECORDS } from "../../src/limits.ts";
import { SessionRecords } from "../../src/receipts/session-records.ts";
import type { Envelope } from "../../src/types.ts";
import { BOB, credential, envelopeOf, newKeys } from "../credentials/kit.ts";

const bobs = await credential();
const BOB_ID = "agent://acme.bob";
const ALICE = await newKeys();
const alices = await credential({ sub: "agent://alice", cnf: { jwk: { kty: "OKP", crv: "Ed25519", x: ALICE.x } } });
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
  const missing = (n: number) => expect.objectContaining({ missing: n === 0 ? ["request", "decision"] : ["decision"] });
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
