import { ENVELOPE_SCHEMAS, type EnvelopeKind } from "protocol/contract/envelope.ts";
import { ERRORS } from "protocol/contract/errors.ts";
import {
  AckFrame,
  ANNOUNCED_LIMITS,
  DeliverFrame,
  ErrorFrame,
  HelloFrame,
  NoticeFrame,
} from "protocol/contract/frames.ts";
import { PENDING } from "protocol/contract/session.ts";
import type { z } from "zod";
import {
  ALICE,
  BOB,
  EXAMPLE_SESSION_ID,
  EXAMPLE_TIME,
  EXAMPLE_TYPES,
  type ExampleType,
  exampleEnvelope,
} from "./example-envelopes.ts";
import { SERVICE } from "./relay-description.ts";

/** One message of the websocket: schema, purpose, and examples by name. */
export interface MessageEntry {
  readonly schema: z.ZodType;
  readonly summary: string;
  readonly examples: Readonly<Record<string, object>>;
}

const ENVELOPES: Record<ExampleType, { readonly kind: EnvelopeKind; readonly summary: string }> = {
  "agent.register": { kind: "register", summary: "Registers the agent on this connection and brings it online." },
  "agent.heartbeat": { kind: "heartbeat", summary: "Keeps the agent online." },
  "message.send": { kind: "message", summary: "A message; message.<word> is handled in the same way." },
  "session.request": { kind: "session_request", summary: "Requests a session with the target." },
  "session.approve": { kind: "session_decision", summary: "The target approves the session." },
  "session.reject": { kind: "session_decision", summary: "The target rejects the session." },
};

/** What agents send: signed envelopes. Source: docs/protocol.md#envelopes. */
export const ENVELOPE_MESSAGES: Readonly<Record<string, MessageEntry>> = Object.fromEntries(
  EXAMPLE_TYPES.map((type) => {
    const { kind, summary } = ENVELOPES[type];
    return [type, { schema: ENVELOPE_SCHEMAS[kind], summary, examples: { signed: exampleEnvelope(type) } }];
  }),
);

const NOW_ISO = new Date(EXAMPLE_TIME).toISOString();
const HOUR_MS = 3_600_000;
const DELIVERED = { status: "online", can_deliver_realtime: true };

/** What the relay sends: frames. Source: docs/protocol.md#frames. */
export const FRAME_MESSAGES: Readonly<Record<string, MessageEntry>> = {
  hello: {
    schema: HelloFrame,
    summary: "First frame of a connection: server time and limits.",
    examples: {
      hello: {
        frame: "hello",
        service: SERVICE,
        connection_id: "con_1",
        server_time: EXAMPLE_TIME,
        limits: ANNOUNCED_LIMITS,
      },
    },
  },
  ack: {
    schema: AckFrame,
    summary: "An envelope was accepted. For a duplicate, duplicate is true and nothing was delivered again.",
    examples: {
      registered: {
        frame: "ack",
        envelope_id: "example-agent-register",
        type: "agent.register",
        accepted: true,
        presence: { agent_id: ALICE, status: "online", last_seen_iso: NOW_ISO },
      },
      message_accepted: {
        frame: "ack",
        envelope_id: "example-message-send",
        type: "message.send",
        accepted: true,
        target_delivery: DELIVERED,
      },
      session_requested: {
        frame: "ack",
        envelope_id: "example-session-request",
        type: "session.request",
        accepted: true,
        target_delivery: DELIVERED,
        session_id: EXAMPLE_SESSION_ID,
        session_status: PENDING,
      },
    },
  },
  error: {
    schema: ErrorFrame,
    summary: "An envelope was refused; the connection stays open.",
    examples: {
      not_registered: {
        frame: "error",
        code: "not_registered",
        message: ERRORS.not_registered.title,
        hint: ERRORS.not_registered.hint,
        retry: ERRORS.not_registered.retry,
        envelope_id: "example-message-send",
      },
    },
  },
  deliver: {
    schema: DeliverFrame,
    summary: "An envelope for an agent of this connection, complete and signed.",
    examples: {
      message: { frame: "deliver", envelope: exampleEnvelope("message.send") },
      session_request: {
        frame: "deliver",
        session_id: EXAMPLE_SESSION_ID,
        envelope: exampleEnvelope("session.request"),
      },
    },
  },
  notice: {
    schema: NoticeFrame,
    summary: "A notice: pending sessions, another connection took over an agent, or the pod is draining.",
    examples: {
      pending_sessions: {
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
      superseded: { frame: "notice", notice: "superseded", agent_id: ALICE, epoch: EXAMPLE_TIME },
      draining: { frame: "notice", notice: "draining", reconnect_after_ms: 1500 },
    },
  },
};
