import { hash } from "node:crypto";
import { type ACK_FRAMES, announcedLimits, type NoticeFrame } from "relay-protocol/contract/frames.ts";
import { notKept } from "relay-protocol/contract/not-kept.ts";
import { targetDelivery } from "relay-protocol/contract/presence.ts";
import type { SimpleSendRequest, SimpleSessionRequest } from "relay-protocol/contract/requests.ts";
import { PENDING } from "relay-protocol/contract/session.ts";
import type { SurfaceId } from "relay-protocol/contract/surfaces.ts";
import { privateKeyOfSeed, sign } from "relay-protocol/signing/algorithms.ts";
import { canonicalText, signedText } from "relay-protocol/signing/canonical.ts";
import { credentialTestVector, testVectors } from "relay-protocol/signing/test-vectors.ts";
import type { Envelope, UnsignedEnvelope } from "relay-protocol/wire/envelope.ts";
import { ERRORS, type ErrorCode } from "relay-protocol/wire/errors.ts";
import { parseJson } from "relay-protocol/wire/json.ts";
import { HTTP_LIMITS, PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import type { FirstAnswer } from "relay-window/acceptance/acceptance.ts";
import { presenceOf } from "relay-window/presence/presence.ts";
import type { Session } from "relay-window/sessions/look-ups.ts";
import { FEEDBACK_REACH } from "../api/feedback.ts";
import { presenceOfAgent } from "../api/presence.ts";
import { sessionRecord } from "../api/sessions.ts";
import { acceptedEnvelope, acceptedSession } from "../api/simple-requests.ts";
import { contactOf } from "../settings.ts";
import recorded from "./recorded-answers.json" with { type: "json" };
import { type DiscoverySettings, SERVICE } from "./relay-description.ts";

/** The facts of the example that all documents show: alice asks bob for a session. Times are Unix ms. */
export const EXAMPLE_TIME = 1_790_000_000_000;
const ALICE = "agent://alice";
const BOB = "agent://bob";
export const EXAMPLE_SESSION_ID = "ses_00000000000000000000000000";
export const EXAMPLE_ENVELOPE_ID = "env_00000000000000000000000000";

const COMMON = { from: ALICE, to: BOB };

const UNSIGNED = {
  "agent.register": { from: ALICE, payload: { label: "Alice", capabilities: ["translation"] } },
  "agent.heartbeat": { from: ALICE, payload: {} },
  "message.send": { ...COMMON, payload: { message: "Hello, Bob." } },
  "message.offer": { ...COMMON, payload: { pages: 10, by: "Friday" } },
  "session.request": { ...COMMON, payload: { purpose: "Agree on terms for a translation.", ttl_minutes: 60 } },
  "session.approve": { from: BOB, to: ALICE, payload: { session_id: EXAMPLE_SESSION_ID } },
  "session.reject": { from: BOB, to: ALICE, payload: { session_id: EXAMPLE_SESSION_ID, reason: "No capacity today." } },
} as const;

type ExampleType = keyof typeof UNSIGNED;

const VECTOR = testVectors().find(({ alg }) => alg === "ed25519");
const KEY_ID = String(VECTOR?.envelope.key_id);
const PRIVATE_KEY = privateKeyOfSeed(Buffer.from(VECTOR?.key.private_key ?? "", "base64url"));

/** What a decision says of the request that it decides. Source: docs/protocol.md#session-receipts. */
function requestDigest(): string {
  const request = exampleEnvelope("session.request");
  return hash("sha256", signedText(canonicalText(request), request.sig), "base64url");
}

/** An envelope of each type, signed with the published Ed25519 key of the test vectors. */
export function exampleEnvelope(type: ExampleType): Envelope {
  const { payload: own, ...addresses } = UNSIGNED[type];
  const payload = type === "session.approve" ? { ...own, request_sha256: requestDigest() } : own;
  const id = `example-${type.replace(".", "-")}`;
  const envelope: UnsignedEnvelope = { id, type, ...addresses, payload, ts: EXAMPLE_TIME, key_id: KEY_ID };
  return { ...envelope, sig: sign({ alg: "ed25519", privateKey: PRIVATE_KEY }, canonicalText(envelope)) };
}

/** How recorded answers name the relay. */
export const RECORDED = { baseUrl: "https://relay.example", wsUrl: "wss://relay.example" } as const;

export const SEND_REQUEST: SimpleSendRequest = { from: ALICE, to: BOB, message: "Hello, Bob." };
export const SESSION_REQUEST: SimpleSessionRequest = {
  from: ALICE,
  to: BOB,
  purpose: "Agree on terms for a translation.",
  intro: "I translate from Danish.",
  scope: "Ten pages, this week.",
  expected_frequency: "once",
  ttl_minutes: 60,
};
const FEEDBACK_REQUEST = {
  surface: "checkOnline",
  sentiment: "blocked",
  category: "connector_not_seen",
  message: "Registered, but check-online says not_seen.",
};

/** What a reader must have or replace before an example runs, or before an answer is the one that is shown. */
export const NEEDS = {
  api_key: `The header x-api-key, with an API key that is allowed for ${ALICE}.`,
  target_online: `${BOB} is online.`,
  fresh_signature:
    "ts is old and the key is the published one: replace ts by the current time, key_id and sig by those of a key that the relay knows.",
  known_session: "In place of session_id one that the relay knows, of a 202 of requestSession.",
  known_credential: "In place of name that of an agent that registered with a credential.",
  package: "A relay that hands out packages; in place of file one that /connectors lists.",
} as const;
type Need = keyof typeof NEEDS;

/** Only examples have these ids: no relay knows them, and links with them lead nowhere. */
export const MADE_UP_IDS = [EXAMPLE_SESSION_ID, EXAMPLE_ENVELOPE_ID];

/** The member of an example that needs something before it runs. */
export const needs = (...names: readonly Need[]) => ({ "x-needs": names });

/** Examples of one body, as OpenAPI has them: name → what it needs, and its value. */
export type Examples = Readonly<Record<string, { readonly "x-needs"?: readonly Need[]; readonly value: object }>>;

/** One request body for each operation that takes one. */
export const REQUEST_EXAMPLES: Partial<Record<SurfaceId, Examples>> = {
  sendMessage: { message: { ...needs("api_key"), value: SEND_REQUEST } },
  requestSession: { session: { ...needs("api_key"), value: SESSION_REQUEST } },
  submitFeedback: { blocked: { value: FEEDBACK_REQUEST } },
  selfTest: { register: { ...needs("fresh_signature"), value: exampleEnvelope("agent.register") } },
};

const FIRST: FirstAnswer = {
  envelopeId: EXAMPLE_ENVELOPE_ID,
  sessionId: EXAMPLE_SESSION_ID,
  delivery: "online",
  acceptedAt: EXAMPLE_TIME,
};
const HOUR_MS = 3_600_000;
const OFFLINE_AFTER_MS = PRESENCE_LIMITS.offlineAfterMs;
const PENDING_SESSION: Session = {
  sessionId: EXAMPLE_SESSION_ID,
  status: PENDING,
  requester: ALICE,
  target: BOB,
  createdAt: EXAMPLE_TIME,
  expiresAt: EXAMPLE_TIME + HOUR_MS,
  decidedAt: null,
  delivery: "online",
};

const { claims, credential, key_id } = credentialTestVector();
const CREDENTIAL = {
  ok: true,
  agent_id: claims.sub,
  key_id,
  credential,
  issuer: claims.iss,
  expires_at_iso: new Date(Number(claims.exp) * 1000).toISOString(),
};

const OF_PACKAGES: readonly string[] = ["connectors", "packageFile", "newestConnector"] satisfies SurfaceId[];

/** One answer of each operation that is only read, by its id. Source: test/discovery/record-answers.ts. */
export function recordedAnswers({ baseUrl, wsUrl }: DiscoverySettings): Readonly<Record<string, object>> {
  const text = JSON.stringify(recorded)
    .replaceAll(RECORDED.baseUrl, () => baseUrl)
    .replaceAll(RECORDED.wsUrl, () => wsUrl);
  const examples = Object.entries(parseJson(text) as object).map(([id, value]) => {
    return [id, { recorded: { ...(OF_PACKAGES.includes(id) && needs("package")), value } }];
  });
  return Object.fromEntries(examples);
}

/** Answers that depend on the request, by operation id. */
export function writtenAnswers(baseUrl: string): Partial<Record<SurfaceId, Examples>> {
  const online = presenceOf(EXAMPLE_TIME + 1200, EXAMPLE_TIME, EXAMPLE_TIME, OFFLINE_AFTER_MS);
  return {
    sendMessage: { delivered: { ...needs("target_online"), value: acceptedEnvelope(SEND_REQUEST, FIRST, baseUrl) } },
    requestSession: {
      target_online: { ...needs("target_online"), value: acceptedSession(SESSION_REQUEST, FIRST, baseUrl) },
    },
    checkOnline: {
      online: {
        ...needs("target_online"),
        value: presenceOfAgent(BOB, online, { now: EXAMPLE_TIME, windowStartedAt: EXAMPLE_TIME }),
      },
    },
    readSession: { pending: { value: sessionRecord(PENDING_SESSION) } },
    readCredential: { registered: { value: CREDENTIAL } },
    selfTest: {
      pass: {
        value: {
          ok: true,
          stage: "pass",
          type: "agent.register",
          server_time: EXAMPLE_TIME,
          next_step: "Send this envelope, or a new one, over the websocket.",
        },
      },
    },
    submitFeedback: {
      counted: {
        value: {
          ok: true,
          stored: "aggregate_only",
          raw_message_stored: false,
          note: `${FEEDBACK_REACH} ${contactOf(undefined).note}`,
        },
      },
    },
  };
}

/** Names in `/asyncapi.json` of the frames that the relay sends. */
type FrameName = "hello" | `ack.${keyof typeof ACK_FRAMES}` | "error" | "deliver" | `notice.${NoticeFrame["notice"]}`;

/** By name. A test provokes each on a relay, and finds the same members in it. */
type FrameExamples = Readonly<Record<string, object>>;

const NOW_ISO = new Date(EXAMPLE_TIME).toISOString();
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
