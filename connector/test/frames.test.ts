import { expect, test } from "@jest/globals";
import { SignedEnvelope as RelaysEnvelope } from "relay-protocol/contract/envelope.ts";
import { isRefusal } from "relay-protocol/intake/refusal.ts";
import { decode } from "relay-protocol/intake/steps.ts";
import { ENVELOPE_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import {
  decidedSessionsNotice,
  deliverFrame,
  pendingSessionsNotice,
} from "../../services/ws-connector/src/connection/frames.ts";
import { type DeliverFrame, type ErrorFrame, readFrame, waitOf } from "../src/frames.ts";
import {
  ANNOUNCED_DEFAULTS,
  MAX_ASKED_WAIT_MS,
  MAX_RECEIVED_BYTES,
  MAX_TIME_MS,
  MIN_HEARTBEAT_INTERVAL_MS,
  RETRY_AFTER_MS,
} from "../src/limits.ts";
import { readEnvelope } from "../src/read-envelope.ts";

const [MEGABYTE, LONGEST_AGENT] = ["x".repeat(1_000_000), `agent://${"a".repeat(63)}`] as const;
const TIME = "2026-11-22T00:00:00.000Z";
const TIMES = { created_at_iso: TIME, expires_at_iso: TIME, decided_at_iso: TIME };
const [ONE, TWO] = ["1", "2"].map((digit) => `ses_${digit.repeat(26)}`) as [string, string];

/** The longest time that a timer of the platform holds: it takes a longer one for 1 ms. */
const TIMER_MAX_MS = 2 ** 31 - 1;

test.each([
  [1e12, MAX_ASKED_WAIT_MS],
  [2 ** 31, MAX_ASKED_WAIT_MS],
  [1500, 1500],
  [0.25, 1],
])("A relay that asks to wait %d ms is given %d, which a timer holds with its random part", (asked, given) => {
  expect(waitOf(asked)).toBe(given);
  expect(readFrame(`{"frame":"error","retry_after_ms":${asked}}`)).toMatchObject({ retryAfterMs: given });
  expect(readFrame(`{"frame":"notice","notice":"draining","reconnect_after_ms":${asked}}`)).toMatchObject({
    notice: { reconnectAfterMs: given },
  });
  expect(given * 1.5).toBeLessThanOrEqual(TIMER_MAX_MS);
});

test.each(["-5", "0", "1e400", '"5"', "null", "{}"])("%s is no wait", (asked) => {
  expect(waitOf(JSON.parse(asked))).toBeUndefined();
  expect(readFrame(`{"frame":"error","retry_after_ms":${asked}}`)).toMatchObject({ retryAfterMs: RETRY_AFTER_MS });
});

test.each([
  ["1", MIN_HEARTBEAT_INTERVAL_MS],
  ["1e-300", MIN_HEARTBEAT_INTERVAL_MS],
  ["400", 400],
  ["0", ANNOUNCED_DEFAULTS.heartbeatIntervalMs],
  ["-1", ANNOUNCED_DEFAULTS.heartbeatIntervalMs],
  ["1e300", 60_000],
])("A relay that asks for a heartbeat every %s ms gets one every %d", (asked, given) => {
  const hello = readFrame(`{"frame":"hello","limits":{"heartbeat_interval_ms":${asked}}}`);
  expect(hello).toMatchObject({ heartbeatIntervalMs: given });
  expect(given).toBeGreaterThanOrEqual(250);
});

test.each([
  ['"con_Az09-_"', "con_Az09-_"],
  [`"${"c".repeat(128)}"`, "c".repeat(128)],
  [`"${"c".repeat(129)}"`, undefined],
  ['"\\ud800"', undefined],
  ['"a b"', undefined],
  ['""', undefined],
  ["7", undefined],
])("Of a connection that is %s the id to sign is %s", (said, id) => {
  expect(readFrame(`{"frame":"hello","connection_id":${said}}`)).toMatchObject({ connectionId: id });
});

test.each([
  ["1790000000000", 1_790_000_000_000],
  ["8640000000000000", MAX_TIME_MS],
  ["8640000000000001", undefined],
  ["1e300", undefined],
  ["1.5", undefined],
  ["-1", undefined],
  ['"1790000000000"', undefined],
])("Of a relay that says it is %s the time is %s", (said, time) => {
  expect(readFrame(`{"frame":"hello","server_time":${said}}`)).toMatchObject({ serverTime: time });
  expect(readFrame(`{"frame":"error","server_time":${said}}`)).toMatchObject({ serverTime: time });
});

test.each([
  ["pending_sessions", { session_id: ONE, created_at_iso: "9999-01-01T00:00:00.000Z", expires_at_iso: "soon" }],
  ["pending_sessions", { session_id: ONE, created_at_iso: "soon", expires_at_iso: "9999-01-01T00:00:00.000Z" }],
  ["pending_sessions", { session_id: ONE, created_at_iso: 1, expires_at_iso: "9999-01-01T00:00:00.000Z" }],
  ["pending_sessions", { session_id: `${ONE}1`, created_at_iso: TIME, expires_at_iso: TIME }],
  ["decided_sessions", { session_id: "x".repeat(30_000), status: "approved", decided_at_iso: TIME }],
  ["decided_sessions", { session_id: ONE, status: "approved", decided_at_iso: "275761-01-01T00:00:00.000Z" }],
  ["pending_sessions", { session_id: ONE, ...TIMES, requester: "x".repeat(30_000) }],
  ["pending_sessions", { session_id: ONE, ...TIMES, requester: undefined }],
  ["decided_sessions", { session_id: ONE, ...TIMES, target: "x".repeat(30_000) }],
])("A session of %s whose ids or times are none is no session (%#)", (notice, session) => {
  const [alice, bob] = [{ requester: "agent://alice" }, { target: "agent://bob" }];
  const good = { ...alice, ...bob, session_id: TWO, ...TIMES };
  const sessions = [{ ...alice, ...bob, ...session }, good];
  const frame = readFrame(JSON.stringify({ frame: "notice", notice, total: 2, sessions }));
  expect(frame).toMatchObject({ notice: { kind: notice, sessions: [{ sessionId: TWO }] } });
});

test.each(["-1", "1.5", "1e+308", '"2"', "null"])("A count of %s that a relay says is none", (said) => {
  const sessions = [{ requester: "agent://alice", session_id: ONE, ...TIMES }, { session_id: "bad" }];
  const pending = `{"frame":"notice","notice":"pending_sessions","total":${said},"sessions":${JSON.stringify(sessions)}}`;
  expect(readFrame(pending)).toMatchObject({ notice: { total: 1 } });
  const slow = `{"frame":"notice","notice":"slow_down","envelopes_per_second":${said},"bytes_per_second":${said}}`;
  expect(readFrame(slow)).toEqual({
    frame: "notice",
    notice: { kind: "slow_down", envelopesPerSecond: 0, bytesPerSecond: 0 },
  });
});

test.each([ONE, `${ONE}1`, "x".repeat(30_000), 1])(
  "The session of a delivery is an id of one, or none (%#)",
  (session_id) => {
    const frame = readFrame(JSON.stringify({ frame: "deliver", envelope: {}, session_id }));
    expect(frame).toMatchObject({ sessionId: session_id === ONE ? ONE : undefined });
  },
);

test("The session of an ack is an id of one, or none", () => {
  const ack = (session_id: string) => readFrame(JSON.stringify({ frame: "ack", session_id }));
  expect(ack(ONE)).toMatchObject({ sessionId: ONE });
  expect(ack("x".repeat(30_000))).toMatchObject({ sessionId: "" });
});

/** Escapes of a terminal in both their forms, ends of lines, marks of direction, half a character, no width, a tag. */
const ACTING = [
  ...["\u001b[2J", "\u009b2J", "\r\n", "\u2028", "\u061c", "\u200f", "\u202e", "\u2066", "\ud83d", "\udc4d"],
  ...["\u00ad", "\u200b", "\u200d", "\u2060", "\ufe0f", "\ufeff", "\u{e0041}", "\u{e01ef}"],
];

test.each(ACTING)("What a relay says to people acts on nothing that shows or logs it (%#)", (acting) => {
  const evil = `so ${acting} it is`;
  const error = readFrame(JSON.stringify({ frame: "error", code: evil, message: evil, hint: evil }));
  const released = readFrame(JSON.stringify({ frame: "notice", notice: "released", reason: evil }));
  const ack = readFrame(
    JSON.stringify({
      frame: "ack",
      session_status: evil,
      target_delivery: { status: evil, can_deliver_realtime: true },
    }),
  );
  const escaped = expect.stringMatching(/^so (?:\\u[0-9a-f]{4})+(?:\[?2J)? it is$/);
  expect(error).toMatchObject({ message: escaped, hint: escaped });
  expect(released).toMatchObject({ notice: { reason: escaped } });
  expect(ack).toMatchObject({ sessionStatus: escaped, delivery: { status: escaped } });
});

test.each(["\u26a0\ufe0f", "\u{1f469}\u{1f3fd}\u200d\u{1f4bb}", "\u{1f3f3}\ufe0f\u200d\u{1f308}"])(
  "What a relay says to people keeps its emoji whole (%#)",
  (emoji) => {
    expect(readFrame(JSON.stringify({ frame: "error", message: emoji }))).toMatchObject({ message: emoji });
  },
);

test.each(["x", "\n", "\u{1f44d}"])(
  "What a relay says to people is bounded, and is whole characters (%#)",
  (character) => {
    const text = `${character.repeat(30_000)}`;
    const error = readFrame(JSON.stringify({ frame: "error", message: text, hint: `-${text}` }));
    const { message = "", hint = "" } = error as ErrorFrame;
    for (const said of [message, hint]) {
      expect([...said].length).toBeGreaterThan(400);
      expect([...said].length).toBeLessThanOrEqual(1000);
      expect(said.isWellFormed()).toBe(true);
    }
  },
);

test("Members that JSON.parse would take for those of an earlier delivery are read as they were signed", () => {
  // As texts: an object would tell V8 of its names.
  for (const name of ["\\\\", "\\n", '\\"']) {
    const { envelope } = readFrame(`{"frame":"deliver","envelope":{"payload":{"":1,"${name}":2}}}`) as DeliverFrame;
    const { payload } = envelope as { payload: object };
    expect(JSON.stringify(payload)).toBe(`{"":1,"${name}":2}`);
  }
});

test.each([
  7,
  { frame: "later" },
  { frame: "notice", notice: "later" },
  { frame: "notice", notice: "pending_sessions" },
  { frame: "notice", notice: "decided_sessions" },
  { frame: "ack" },
  { frame: "hello" },
  { frame: "error" },
  { frame: "deliver" },
])("A frame of no known kind, or without its members, breaks nothing (%#)", (frame) => {
  expect(() => readFrame(JSON.stringify(frame))).not.toThrow();
});

test("A notice to slow down says what the relay reads of one connection", () => {
  const notice = { notice: "slow_down", envelopes_per_second: 200, bytes_per_second: 524_288 };
  expect(readFrame(JSON.stringify({ frame: "notice", ...notice }))).toEqual({
    frame: "notice",
    notice: { kind: "slow_down", envelopesPerSecond: 200, bytesPerSecond: 524_288 },
  });
});

const SIGNED = "x".repeat(ENVELOPE_LIMITS.maxFrameBytes + `,"sig":"${"A".repeat(86)}"`.length);
const pending = { sessionId: ONE, requester: LONGEST_AGENT, createdAt: 0, expiresAt: 0 };
const decided = { sessionId: ONE, target: LONGEST_AGENT, status: "approved", decidedAt: 0 } as const;

test.each([
  ["an envelope", deliverFrame(ONE, SIGNED)],
  ["requests", pendingSessionsNotice(LONGEST_AGENT, Array(SESSION_LIMITS.maxPendingPerTarget).fill(pending))],
  ["decisions", decidedSessionsNotice(LONGEST_AGENT, Array(SESSION_LIMITS.maxDecidedKept).fill(decided))],
])("The largest frame of the relay is within the bound: %s", (_, frame) => {
  expect(Buffer.byteLength(frame)).toBeLessThanOrEqual(MAX_RECEIVED_BYTES);
});

const ENVELOPE = {
  id: "env_1",
  type: "message.send",
  from: "agent://alice",
  to: "agent://bob",
  task_id: "t",
  payload: {},
  ts: 1,
  key_id: "alice-1",
  sig: "A".repeat(86),
};

test.each([
  {},
  { task_id: undefined },
  { task_id: "🙂".repeat(128) },
  { id: "i".repeat(128), task_id: "t".repeat(128), key_id: "k".repeat(128), from: LONGEST_AGENT, to: LONGEST_AGENT },
  { type: `message.${"t".repeat(32)}` },
  { type: "session.request", payload: { purpose: "p" } },
  { sig: "A".repeat(43) },
  { id: "i".repeat(129) },
  { id: MEGABYTE },
  { id: "a b" },
  { id: "" },
  { type: MEGABYTE },
  { type: `message.${"t".repeat(33)}` },
  { type: "other.send" },
  { type: `${MEGABYTE}.send` },
  { from: `${LONGEST_AGENT}a` },
  { from: "alice" },
  { to: MEGABYTE },
  { task_id: "t".repeat(129) },
  { task_id: "🙂".repeat(129) },
  { task_id: "" },
  { task_id: null },
  { key_id: "k".repeat(129) },
  { key_id: MEGABYTE },
  { sig: 1 },
  { ts: "1" },
  { payload: [] },
])("What a relay would not have taken is no envelope (%#)", (changes) => {
  const envelope = JSON.parse(JSON.stringify({ ...ENVELOPE, ...changes }));
  const isRelays = RelaysEnvelope.safeParse(envelope).success;
  expect(readEnvelope(envelope)).toEqual(isRelays ? envelope : undefined);
});

test("A task whose id has a lone surrogate is none for the connector, as it is none for the relay", () => {
  const envelope = { ...ENVELOPE, task_id: "\ud800" };
  expect(isRefusal(decode(JSON.stringify(envelope)))).toBe(true);
  expect(readEnvelope(envelope)).toBeUndefined();
});

const nested = (levels: number) => `{"a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
const listed = (items: number) => `{"a":[${Array(items).fill("[]")}]}`;

test.each([
  ["32 levels", nested(32)],
  ["33 levels", nested(33)],
  ["5,000 levels", nested(5000)],
  ["2,000 members", listed(1999)],
  ["2,001 members", listed(2000)],
  ["__proto__ as a member name", '{"a":{"__proto__":1}}'],
  ["a lone surrogate", '{"a":"\\ud800"}'],
  ["a number that is no double", '{"a":1e999}'],
])("A payload is one for the connector if it is one for the relay: %s", (_, payload) => {
  const text = JSON.stringify(ENVELOPE).replace('"payload":{}', `"payload":${payload}`);
  const envelope = JSON.parse(text);
  expect(readEnvelope(envelope) === undefined).toBe(isRefusal(decode(text)));
});
