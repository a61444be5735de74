import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { SessionLimit } from "relay-protocol/contract/refusals.ts";
import { SignatureVerifier } from "relay-runtime/verification/signature-verifier.ts";
import type { Acceptance, AcceptanceItem, Prepared } from "relay-window/acceptance/acceptance.ts";
import { KEYS, signed } from "../../../shared/protocol/test/intake/support.ts";
import { until } from "../../../test/support/until.ts";
import { DecisionRepeats, type PreparedItem } from "../src/intake/decision-repeats.ts";
import { IntakeHarness } from "./intake-harness.ts";

/** Sessions on their way: prepared in one partition, in effect in another, and taken to their requester. */

let harness: IntakeHarness;
const verifier = new SignatureVerifier();
beforeAll(() => verifier.start());
afterAll(() => verifier.stop());
beforeEach(() => {
  harness = new IntakeHarness(verifier);
});

const inEffect: Prepared = { kind: "decision", state: "a", decidedAt: String(Date.now()) };
const decision = { id: "decision", type: "session.approve", payload: { session_id: `ses_00${"0".repeat(24)}` } };
const own = () => {
  harness.connection.agents.apply("agent://alice", { kind: "granted", epoch: 1, key: "alice-hmac", heardAt: 0 });
};

test("a session decision is prepared once and goes on before what came in behind it", async () => {
  own();
  harness.receive(signed({ ...decision, ts: Date.now() }));
  for (const id of ["behind", "further"]) harness.receive(signed({ id, ts: Date.now() }));
  expect(harness.preparations).toBe(1);
  harness.prepared.resolve(inEffect);
  await until("all went on", () => harness.accepting.length === 3);
  const gone = harness.accepting.map(({ envelope, prepared }) => [envelope.id, prepared]);
  expect(gone).toEqual([
    ["decision", inEffect],
    ["behind", undefined],
    ["further", undefined],
  ]);
});

describe("what is in flight when the connection closes", () => {
  const close = () => Object.assign(harness.connection, { isClosing: true });
  const isAbandoned = () => harness.accepting.map(({ envelope, abandoned }) => [envelope.id, abandoned?.()]);

  beforeEach(own);

  test("is dropped before it goes to Redis", () => {
    harness.receive(signed({ id: "message", ts: Date.now() }));
    expect(isAbandoned()).toEqual([["message", false]]);
    close();
    expect(isAbandoned()).toEqual([["message", true]]);
  });

  test("is not even sent to acceptance behind a session decision, which itself goes on to its requester", async () => {
    harness.receive(signed({ ...decision, ts: Date.now() }));
    harness.receive(signed({ id: "behind", ts: Date.now() }));
    close();
    harness.prepared.resolve(inEffect);
    await until("the decision goes on", () => harness.accepting.length > 0);
    expect(isAbandoned()).toEqual([["decision", false]]);
  });

  test("is taken to its requester again when it is a decision in effect whose requester's shard is away in the last step", async () => {
    harness.receive(signed({ ...decision, ts: Date.now() }));
    close();
    harness.prepared.resolve(inEffect);
    await until("the decision goes on", () => harness.accepting.length > 0);
    harness.accepting.splice(0)[0]?.done({ outcome: "unavailable" });
    harness.parts.decisionRepeats.flush(performance.now());
    expect(harness.accepting.map(({ envelope, prepared }) => [envelope.id, prepared])).toEqual([
      ["decision", inEffect],
    ]);
    expect(isAbandoned()).toEqual([["decision", undefined]]);
  });

  test("ends there when it is a session decision that the session's partition refused", async () => {
    harness.receive(signed({ ...decision, ts: Date.now() }));
    close();
    harness.prepared.resolve({ outcome: "session_closed" });
    await until("nothing is in flight", () => harness.connection.intake === undefined);
    expect(harness.accepting).toEqual([]);
  });

  test("is dropped, and opens no session, when it is a request that was counted over several partitions", async () => {
    const payload = { purpose: "p" };
    harness.receive(signed({ id: "request", type: "session.request", payload, ts: Date.now() }));
    close();
    harness.prepared.resolve({
      kind: "request",
      pendingElsewhere: 0,
      pendingOfRequesterElsewhere: 0,
      openedElsewhere: 0,
      openedByPrincipalElsewhere: 0,
    });
    await until("the request goes on", () => harness.accepting.length > 0);
    expect(isAbandoned()).toEqual([["request", true]]);
  });
});

describe("a session request beyond a bound", () => {
  /** The error frame when acceptance refuses for `limit`. */
  const refusalFrame = (limit: SessionLimit): object => {
    let frame = {};
    const send = (text: string) => {
      frame = JSON.parse(text);
    };
    Object.assign(harness.connection, { send });
    harness.connection.agents.apply("agent://alice", { kind: "granted", epoch: 1, key: "alice-hmac", heardAt: 0 });
    harness.receive(signed({ id: "message", ts: Date.now() }));
    harness.accepting[0]?.done({ outcome: "rate_limited", limit, retryAfterMs: 60_000 });
    return frame;
  };

  test("is told when to come again, and is no refusal of the kind that closes a connection", () => {
    let refusals = 0;
    Object.assign(harness.connection, { noteRefusal: () => (refusals += 1) });
    expect(refusalFrame("pending_sessions")).toMatchObject({
      code: "rate_limited",
      hint: expect.stringContaining("60000 ms"),
      retry_after_ms: 60_000,
    });
    expect(refusals).toBe(0);
  });

  test.each([
    ["pending_sessions", undefined, "max_pending_sessions_per_key", 200],
    ["pending_sessions", "acme", "max_pending_sessions_per_key", 5000],
    ["agent_pending_sessions", "acme", "max_pending_sessions_per_key", 200],
    ["key_opened_sessions", undefined, "sessions_opened_per_minute_per_key", 600],
    ["key_opened_sessions", "acme", "sessions_opened_per_minute_per_key", 15_000],
    ["opened_sessions", "acme", "sessions_opened_per_minute", 60],
  ] as const)("is told the bound that held: %s, issuer %s", (limit, issuer, name, most) => {
    const entry = { ...KEYS.ring.signingKey("alice-hmac", Date.now()), issuer };
    const ring = { signingKey: () => entry, issuers: {} };
    Object.defineProperty(harness.parts.authority, "known", { value: { ...KEYS, ring } });
    expect(refusalFrame(limit)).toMatchObject({ message: expect.stringMatching(`${name} .*: ${most}\\.`) });
  });

  test("is answered for by the key that signed it", () => {
    harness.connection.agents.apply("agent://alice", { kind: "granted", epoch: 1, key: "alice-hmac", heardAt: 0 });
    const envelope = signed({ id: "message", ts: Date.now() });
    harness.receive(envelope);
    expect(harness.accepting[0]?.principal).toBe(`key:${envelope.key_id}`);
  });
});

describe("Decisions that are repeated:", () => {
  const UNAVAILABLE: Acceptance = { outcome: "unavailable" };
  const ACCEPTED: Acceptance = {
    ...{ outcome: "accepted", about: "delivery", delivery: "stale" },
    ...{ sessionId: null, sessionStatus: null, acceptedAt: 0 },
  };

  let accepting: AcceptanceItem[];
  let repeats: DecisionRepeats;

  beforeEach(() => {
    accepting = [];
    repeats = new DecisionRepeats({ accept: (item) => accepting.push(item) });
  });

  const decision = (text: string) => ({ text, kind: "session_decision" }) as PreparedItem;

  /** What is repeated at a time, which is answered so. */
  function repeatedAt(now: number, answer: Acceptance): string[] {
    repeats.flush(now);
    const sent = accepting.splice(0);
    for (const { done } of sent) done(answer);
    return sent.map(({ text }) => text);
  }

  test("a decision whose last step had no answer is taken to its requester again until it has one", () => {
    repeats.keep(decision("a"), 0);
    repeats.keep(decision("b"), 0);
    expect(repeatedAt(1000, UNAVAILABLE)).toEqual(["a", "b"]);
    expect(repeatedAt(2000, ACCEPTED)).toEqual(["a", "b"]);
    expect(repeatedAt(3000, ACCEPTED)).toEqual([]);
  });

  test("it is so for 30 s, and never twice at the same time", () => {
    repeats.keep(decision("a"), 0);
    repeats.flush(29_000);
    repeats.flush(29_999);
    expect(accepting).toHaveLength(1);
    accepting[0]?.done(UNAVAILABLE);
    accepting = [];
    expect(repeatedAt(30_000, UNAVAILABLE)).toEqual([]);
  });

  test("the same decision sent again meanwhile is one, for 30 s more", () => {
    repeats.keep(decision("a"), 0);
    repeats.flush(1000);
    repeats.keep(decision("a"), 1500);
    accepting.splice(0)[0]?.done(ACCEPTED);
    expect([repeatedAt(31_000, UNAVAILABLE), repeatedAt(31_500, UNAVAILABLE)]).toEqual([["a"], []]);
  });

  test("no more than a thousand are repeated at a time", () => {
    const keep = (now: number) => {
      for (let n = 0; n < 1001; n += 1) repeats.keep(decision(String(n)), now);
    };
    keep(0);
    expect(repeatedAt(1000, ACCEPTED)).toHaveLength(1000);
    keep(1000);
    expect(repeatedAt(2000, UNAVAILABLE)).toHaveLength(1000);
    expect(repeatedAt(31_000, UNAVAILABLE)).toEqual([]);
    keep(31_000);
    expect(repeatedAt(32_000, ACCEPTED)).toHaveLength(1000);
  });
});
