import { hash } from "node:crypto";
import { type ACK_FRAMES, announcedLimits, type NoticeFrame } from "relay-protocol/contract/frames.ts";
import { notKept } from "relay-protocol/contract/not-kept.ts";
import { targetDelivery } from "relay-protocol/contract/presence.ts";
import { PENDING } from "relay-protocol/contract/session.ts";
import { canonicalText } from "relay-protocol/signing/canonical.ts";
import { ERRORS, type ErrorCode } from "relay-protocol/wire/errors.ts";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import {
  ALICE,
  BOB,
  EXAMPLE_SESSION_ID,
  EXAMPLE_TIME,
  type ExampleType,
  exampleEnvelope,
} from "./example-envelopes.ts";
import { type DiscoverySettings, SERVICE } from "./relay-description.ts";

/** Names in `/asyncapi.json` of the frames that the relay sends. */
type FrameName = "hello" | `ack.${keyof typeof ACK_FRAMES}` | "error" | "deliver" | `notice.${NoticeFrame["notice"]}`;

/** By name. A test provokes each on a relay, and finds the same members in it. */
type FrameExamples = Readonly<Record<string, object>>;

const NOW_ISO = new Date(EXAMPLE_TIME).toISOString();
const HOUR_MS = 3_600_000;
const ONLINE = { target_delivery: targetDelivery("online") };
const NOT_ONLINE = { target_delivery: targetDelivery("stale") };

/** Examples of every frame that the relay sends. Source: docs/protocol.md#frames. */
export function frameExamples(settings: DiscoverySettings): Readonly<Record<FrameName, FrameExamples>> {
  return {
    hello: {
      hello: {
        frame: "hello",
        service: SERVICE,
        connection_id: "con_1",
        server_time: EXAMPLE_TIME,
        limits: announcedLimits(settings),
      },
    },
    ...ackExamples(settings.baseUrl),
    error: Object.fromEntries(WEBSOCKET_CODES.map((code) => [code, errorExample(code)])),
    deliver: {
      message: { frame: "deliver", envelope: exampleEnvelope("message.send") },
      session_request: sessionDelivery("session.request"),
      session_approve: sessionDelivery("session.approve"),
    },
    "notice.pending_sessions": {
      one: {
        frame: "notice",
        notice: "pending_sessions",
        agent_id: BOB,
        total: 1,
        sessions: [
          {
            session_id: EXAMPLE_SESSION_ID,
            requester: ALICE,
            created_at_iso: NOW_ISO,
            expires_at_iso: new Date(EXAMPLE_TIME + HOUR_MS).toISOString(),
          },
        ],
      },
    },
    "notice.decided_sessions": {
      one: {
        frame: "notice",
        notice: "decided_sessions",
        agent_id: ALICE,
        sessions: [{ session_id: EXAMPLE_SESSION_ID, target: BOB, status: "approved", decided_at_iso: NOW_ISO }],
      },
    },
    "notice.superseded": {
      superseded: { frame: "notice", notice: "superseded", agent_id: ALICE, epoch: EXAMPLE_TIME * 1000 },
    },
    "notice.released": { released: { frame: "notice", notice: "released", agent_id: ALICE, reason: "expired" } },
    "notice.draining": { draining: { frame: "notice", notice: "draining", reconnect_after_ms: 500 } },
    "notice.slow_down": {
      slow_down: {
        frame: "notice",
        notice: "slow_down",
        envelopes_per_second: settings.envelopesPerSecond,
        bytes_per_second: settings.bytesPerSecond,
      },
    },
  };
}

function ackExamples(baseUrl: string) {
  const presence = { presence: { agent_id: ALICE, status: "online", last_seen_iso: NOW_ISO } };
  const session = { session_id: EXAMPLE_SESSION_ID };
  const request = { ...session, session_status: PENDING };
  return {
    "ack.presence": {
      registered: ack("agent.register", presence),
      registered_with_credential: ack("agent.register", {
        ...presence,
        credential_expires_at_iso: new Date(EXAMPLE_TIME + HOUR_MS).toISOString(),
      }),
      heartbeat: ack("agent.heartbeat", presence),
    },
    "ack.message": {
      target_online: ack("message.send", ONLINE),
      target_not_online: ack("message.send", { ...NOT_ONLINE, next: notKept("message", "envelope", BOB, baseUrl) }),
      duplicate: ack("message.send", { duplicate: true, ...ONLINE }),
    },
    "ack.session_request": {
      target_online: ack("session.request", { ...ONLINE, ...request }),
      target_not_online: ack("session.request", {
        ...NOT_ONLINE,
        ...request,
        next: notKept("session_request", "envelope", BOB, baseUrl),
      }),
    },
    "ack.session_decision": {
      approved: ack("session.approve", { ...ONLINE, ...session, session_status: "approved" }),
    },
  };
}

function ack(type: ExampleType, members: object): object {
  return { frame: "ack", envelope_id: exampleEnvelope(type).id, type, accepted: true, ...members };
}

const WEBSOCKET_CODES = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => ERRORS[code].websocket);

/** An envelope that could not be read, or that did not come, has no id. */
const WITHOUT_ENVELOPE: readonly ErrorCode[] = ["malformed_json", "register_timeout"];

function errorExample(code: ErrorCode): object {
  const { title, hint, retry } = ERRORS[code];
  const envelope = exampleEnvelope("message.send");
  return {
    frame: "error",
    code,
    message: title,
    hint,
    retry,
    ...(code === "invalid_envelope" && { errors: [{ field: "payload.text", message: "unknown field" }] }),
    ...(!WITHOUT_ENVELOPE.includes(code) && { envelope_id: envelope.id }),
    ...(retry === "later" && { retry_after_ms: HTTP_LIMITS.unavailableRetryAfterMs }),
    ...(code === "clock_skew" && { server_time: EXAMPLE_TIME }),
    ...(code === "bad_signature" && { canonical_sha256: hash("sha256", canonicalText(envelope)) }),
  };
}

function sessionDelivery(type: ExampleType): object {
  return { frame: "deliver", session_id: EXAMPLE_SESSION_ID, envelope: exampleEnvelope(type) };
}
