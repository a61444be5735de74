import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@jest/globals";
import {
  AckFrame,
  announcedLimits,
  DeliverFrame,
  ErrorFrame,
  HelloFrame,
  NoticeFrame,
} from "relay-protocol/contract/frames.ts";
import { PENDING } from "relay-protocol/contract/session.ts";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import type { Envelope } from "relay-protocol/wire/envelope.ts";
import { ERRORS, type ErrorCode } from "relay-protocol/wire/errors.ts";
import type { DeliveryAcceptance, PresenceAcceptance } from "relay-window/acceptance/acceptance.ts";
import {
  deliverFrame,
  deliveryAck,
  drainingNotice,
  errorFrame,
  helloFrame,
  pendingSessionsNotice,
  presenceAck,
  slowDownNotice,
  supersededNotice,
} from "../src/connection/frames.ts";

const BASE_URL = "https://relay.example";
const SESSION = `ses_00${"0".repeat(24)}`;
const ENVELOPE: Envelope = {
  id: "env-1",
  type: "message.send",
  from: "agent://alice",
  to: "agent://bob",
  payload: { message: "hi" },
  ts: 1_790_000_000_000,
  key_id: "alice-1",
  sig: "A".repeat(43),
};
const REGISTER: Envelope = { ...ENVELOPE, type: "agent.register" };
const PRESENCE: PresenceAcceptance = {
  outcome: "accepted",
  about: "presence",
  status: "online",
  lastSeen: 1_790_000_000_000,
  heardAt: 1,
  epoch: 1,
  pending: [],
  decided: [],
};
const DELIVERY: DeliveryAcceptance = {
  outcome: "accepted",
  about: "delivery",
  delivery: "stale",
  sessionId: null,
  sessionStatus: null,
  acceptedAt: 1,
};

const RATES = { envelopesPerSecond: 200, bytesPerSecond: 524_288 };
const WEBSOCKET_CODES = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => ERRORS[code].websocket);

test("What hello says of rates is what a connection is held to, and 0 where there is no limit", () => {
  expect(announcedLimits(RATES)).toMatchObject({
    envelopes_per_second: 200,
    envelopes_burst: 1000,
    bytes_per_second: 524_288,
    bytes_burst: 1_048_576,
    max_unacknowledged: 64,
  });
  const unlimited = announcedLimits({ envelopesPerSecond: 0, bytesPerSecond: 0 });
  expect([unlimited.max_unacknowledged, unlimited.envelopes_burst, unlimited.bytes_burst]).toEqual([0, 0, 0]);
});

test.each([
  [2, 0],
  [1, 524_288],
  [0, 65_536],
  [200, 100_000],
])(
  "A heartbeat behind max_unacknowledged envelopes of any size comes in time, at %d envelopes and %d bytes a second",
  (envelopesPerSecond, bytesPerSecond) => {
    const limits = announcedLimits({ envelopesPerSecond, bytesPerSecond });
    const { max_unacknowledged, max_frame_bytes, heartbeat_interval_ms, stale_after_ms } = limits;
    const envelopesMs = envelopesPerSecond === 0 ? 0 : (max_unacknowledged * 1000) / envelopesPerSecond;
    const bytesMs = bytesPerSecond === 0 ? 0 : (max_unacknowledged * max_frame_bytes * 1000) / bytesPerSecond;
    expect(max_unacknowledged).toBeGreaterThan(0);
    expect(Math.max(envelopesMs, bytesMs) + heartbeat_interval_ms).toBeLessThan(stale_after_ms);
  },
);

test("Every frame has `frame` as its first member and the shape of the contract", () => {
  const frames = [
    [HelloFrame, helloFrame("con_1", 1_790_000_000_000, { limits: announcedLimits(RATES) })],
    [AckFrame, presenceAck(REGISTER, PRESENCE)],
    [AckFrame, presenceAck(REGISTER, { ...PRESENCE, outcome: "duplicate", status: "not_seen", lastSeen: null })],
    [AckFrame, deliveryAck(ENVELOPE, DELIVERY, BASE_URL)],
    ...["session.request", "session.approve"].map((type) => {
      const acceptance = { ...DELIVERY, sessionId: SESSION, sessionStatus: "expired" } as const;
      return [AckFrame, deliveryAck({ ...ENVELOPE, type }, acceptance, BASE_URL)] as const;
    }),
    [DeliverFrame, deliverFrame(null, JSON.stringify(ENVELOPE))],
    [DeliverFrame, deliverFrame(SESSION, JSON.stringify(ENVELOPE))],
    [NoticeFrame, supersededNotice("agent://alice", 7)],
    [NoticeFrame, drainingNotice(250)],
    [NoticeFrame, slowDownNotice(200, 524_288)],
    [NoticeFrame, pendingSessionsNotice("agent://alice", [])],
    ...WEBSOCKET_CODES.map((code) => [ErrorFrame, errorFrame(code, {})] as const),
  ] as const;
  for (const [schema, text] of frames) {
    expect(text).toMatch(/^\{"frame":"/);
    expect(schema.safeParse(JSON.parse(text)).error).toBeUndefined();
  }
});

test("A delivery carries the envelope's text as it is, to the byte", () => {
  const text = '{"id":"1","payload":{"b":1e+21,"a":"\u2028"},"sig":"s"}';
  expect(deliverFrame(null, text)).toBe(`{"frame":"deliver","envelope":${text}}`);
  expect(deliverFrame(SESSION, text)).toBe(`{"frame":"deliver","session_id":"${SESSION}","envelope":${text}}`);
});

describe("an ack", () => {
  const parsed = (text: string) => JSON.parse(text);

  test("is marked as a duplicate only when it is one", () => {
    expect(parsed(deliveryAck(ENVELOPE, DELIVERY, BASE_URL))).not.toHaveProperty("duplicate");
    expect(parsed(deliveryAck(ENVELOPE, { ...DELIVERY, outcome: "duplicate" }, BASE_URL))).toHaveProperty(
      "duplicate",
      true,
    );
  });

  test("says that realtime delivery is possible only to an online target", () => {
    for (const status of ["online", "stale", "not_seen"] as const) {
      const { target_delivery } = parsed(deliveryAck(ENVELOPE, { ...DELIVERY, delivery: status }, BASE_URL));
      expect(target_delivery).toEqual({ status, can_deliver_realtime: status === "online" });
    }
  });

  const nextOf = (envelope: Partial<Envelope>, acceptance: Partial<DeliveryAcceptance>) =>
    parsed(deliveryAck({ ...ENVELOPE, ...envelope }, { ...DELIVERY, ...acceptance }, BASE_URL)).next;
  const request = { sessionId: SESSION, sessionStatus: PENDING } as const;

  test.each(["stale", "not_seen"] as const)(
    "of what met a %s target says that it is not kept, what to do, and where to look",
    (delivery) => {
      const check = `${BASE_URL}/api/onboarding/check-online?agent_id=agent://bob`;
      const sent = nextOf({}, { delivery });
      expect(sent).toEqual({ kept: false, do: expect.stringContaining("new id"), check });
      const requested = nextOf({ type: "session.request" }, { ...request, delivery });
      expect(requested).toEqual({ kept: false, do: expect.stringMatching(/new id.*pending/), check });
      expect(requested.do).not.toBe(sent.do);
    },
  );

  test("says nothing of the kind of what an online target gets, of a repeat, nor of a decision, which is kept", () => {
    expect(nextOf({}, { delivery: "online" })).toBeUndefined();
    expect(nextOf({ type: "session.request" }, { ...request, delivery: "online" })).toBeUndefined();
    expect(nextOf({}, { outcome: "duplicate" })).toBeUndefined();
    for (const type of ["session.approve", "session.reject"]) {
      expect(nextOf({ type }, { sessionId: SESSION, sessionStatus: null })).toBeUndefined();
    }
  });

  test("of a session says what became of the session", () => {
    const ack = parsed(deliveryAck(ENVELOPE, { ...DELIVERY, sessionId: SESSION, sessionStatus: "rejected" }, BASE_URL));
    expect(ack).toMatchObject({ session_id: SESSION, session_status: "rejected" });
  });
});

test("An error has the title and hint of its code, and only the details that are known", () => {
  const { title, hint } = ERRORS.clock_skew;
  expect(JSON.parse(errorFrame("clock_skew", { envelopeId: undefined, detail: undefined }))).toEqual({
    frame: "error",
    code: "clock_skew",
    message: title,
    hint,
    retry: "fix",
  });
  expect(
    JSON.parse(errorFrame("clock_skew", { envelopeId: "e", detail: "why", retryAfterMs: 5, serverTime: 7 })),
  ).toEqual({
    frame: "error",
    code: "clock_skew",
    message: "why",
    hint,
    retry: "fix",
    envelope_id: "e",
    retry_after_ms: 5,
    server_time: 7,
  });
});

const CODES: readonly number[] = Object.values(CLOSE_CODES).map(({ code }) => code);

test("Every code that the websocket library closes a connection with is one of the catalogue", async () => {
  const receiver = fileURLToPath(new URL("./receiver.js", import.meta.resolve("ws").replace(/[^/]*$/, "lib/")));
  const calls = (await readFile(receiver, "utf8")).split("this.createError(").slice(1);
  const sent = calls.map((call) => Number(/^[^)]*?\b(1[0-9]{3}),/.exec(call)?.[1]));
  expect(sent).toEqual(expect.arrayContaining([1002, 1007, 1009]));
  expect(sent.filter((code) => !CODES.includes(code))).toEqual([]);
});
