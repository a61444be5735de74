/** Numbers of the protocol that hold before `hello` says them, and this package's own. Durations are milliseconds. */

/** Source: docs/protocol.md#limits. */
export const MAX_FRAME_BYTES = 32_768;

/** Of a frame of the relay. It has at least as many bytes as characters. Source: docs/protocol.md#limits. */
export const MAX_RECEIVED_BYTES = 36_864;

/** Whom an agent accepts envelopes from: entries. Source: docs/protocol.md#accept_from. */
export const MAX_ACCEPT_FROM = 50;

/** Used for whatever `hello` leaves out. Source: docs/protocol.md#limits. */
export const ANNOUNCED_DEFAULTS = { heartbeatIntervalMs: 15_000, maxClockSkewMs: 300_000 } as const;

/** The shortest interval that a relay may ask for: each heartbeat costs a signature. */
export const MIN_HEARTBEAT_INTERVAL_MS = 250;
/** The longest: a connection that is dead is found out by its heartbeats. */
export const MAX_HEARTBEAT_INTERVAL_MS = 60_000;

/** Of a text of the relay that is shown to people, such as the hint of an error. */
export const MAX_SAID_CHARACTERS = 1000;

/** Wrong fields that a refusal may name. */
export const MAX_FIELD_ERRORS = 16;

/** From the start of a connection to `hello`: short, since an attempt at a dead address delays the next one. */
export const HELLO_WITHIN_MS = 5000;

/** Of a proxy's answer to CONNECT. */
export const PROXY = {
  /** How long its headers may take after a status that refuses. */
  headersWithinMs: 1000,
  maxBytes: 8192,
};

/** From `hello` to the first register; another connection follows. The relay waits for 10 s, and then closes for good (1008). */
export const REGISTER_WITHIN_MS = 8000;

/**
 * The relay answers within a second, whatever its state: a connection without any frame this long after a request is
 * dead.
 */
export const ANSWER_WITHIN_MS = 10_000;

/** Waits between attempts: a random time up to a bound that doubles. All agents are back within 10 s. */
export const BACKOFF = { firstMs: 250, capMs: 5000 } as const;

/** A proxy's page may ask for hours, and be gone in a minute. */
export const RETRY_AFTER_CAP_MS = 60_000;

/** Until the first register is accepted. */
export const FIRST_START = {
  /** How long a start takes as passing: a key or an issuer that the relay does not know, and an answer that is none of a relay. */
  unknownKeyMs: 10_000,
  /** The same of what refuses the upgrade: an edge may do so until its relay is ready. */
  refusedUpgradeMs: 60_000,
  /** How often, and how far apart, the agent has to be seen online before it counts as held elsewhere. */
  looks: 5,
  lookAgainMs: 300,
} as const;

/** What the relay says of a signature. */
export const SELF_TEST_ANSWER = { timeoutMs: 3000, maxBytes: 65_536 } as const;

/** A replaced connection may still bring deliveries: it is read until the relay closes it, or for this long. */
export const RETIRED_MS = 10_000;

/** Replaced connections that are still read: a relay that drains again and again has no more sockets of this machine. */
export const MAX_RETIRED = 2;

/** After this long, a close handshake without an answer is given up, and the connection cut off. */
export const CLOSE_WITHIN_MS = 1000;

/** The longest wait that a relay which drains may ask for. */
export const DRAINING_CAP_MS = 30_000;

/** The wait where a refusal does not name one. */
export const RETRY_AFTER_MS = 1000;

/** The longest time that a timer holds: with a longer one it fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** The longest wait that a relay may ask for. */
export const MAX_ASKED_WAIT_MS = 3_600_000;

/** Minutes in which the target of a session request can decide. Source: docs/protocol.md#limits. */
export const SESSION_TTL_MINUTES = { min: 5, max: 1440, default: 60 } as const;

/** Characters (Unicode code points) of the texts of an envelope. Source: docs/protocol.md#envelopes. */
export const TEXT_LIMITS = {
  message: 16_000,
  taskId: 128,
  purpose: 500,
  intro: 1000,
  scope: 1000,
  expectedFrequency: 200,
  reason: 500,
} as const;

export const SEND_TIMEOUT_MS = 30_000;
export const MAX_PENDING = 1000;
export const MAX_INBOX = 1000;

/** Envelopes without an answer on one connection, where the relay allows as many. Source: docs/protocol.md#limits. */
export const MAX_IN_FLIGHT = 64;

/** An envelope this close to the relay's age limit is not sent again: it would arrive too late. */
export const RESEND_MARGIN_MS = 5000;

/** Ids of deliveries that are remembered to recognise repeats, of pinned and of other senders each. */
export const MAX_DELIVERED_IDS = 20_000;

/** Senders whose ids they may be. */
export const MAX_SENDERS = 2000;

/** The relay takes envelopes up to 5 min from its clock, and delivers at once: what is older was kept by somebody. */
export const MAX_DELIVERY_AGE_MS = 600_000;

/** The last time that a Date of ECMAScript has. A later one of a relay is none, and is not signed with. */
export const MAX_TIME_MS = 8_640_000_000_000_000;

/**
 * Clocks that may be this close count as the same: the relay takes 5 minutes either way, and what one machine dates by its own
 * clock stays in order. With half of the longest way to `hello` it is less than RESEND_MARGIN_MS.
 */
export const SAME_CLOCK_MS = 2000;

/** How far the relay's time may move the clock by which deliveries are judged. */
export const MAX_CLOCK_CORRECTION_MS = 300_000;

/** The signing manifest. */
export const MANIFEST = {
  path: "/.well-known/signing-manifest.json",
  /** How long a delivery waits for it. */
  waitMs: 1000,
  /** One fetch. It names all issuers of the relay. */
  answer: { timeoutMs: 3000, maxBytes: 1_048_576 },
  /** How often an unknown key asks for it again. */
  againAfterMs: 5000,
  /** How long a gateway's key is known without asking again: the relay may have revoked it. */
  gatewayKeysKeptMs: 60_000,
} as const;

/** Source: docs/protocol.md#credentials. */
export const CREDENTIAL_LIMITS = {
  /** Of the token. */
  maxCharacters: 2048,
  /** From `iat` to `exp`. */
  maxLifeMs: 90 * 24 * 3_600_000,
  /** How far `iat` and `nbf` may lie ahead of the time that the credential is judged at. */
  maxAheadMs: 60_000,
} as const;

/** This agent asks for its next credential at a random part of the life of its present one, then with a growing wait. */
export const RENEWAL = {
  earliest: 0.5,
  latest: 0.8,
  wait: { firstMs: 250, capMs: 60_000 },
  /** How long the callback that gives it may take. */
  answerWithinMs: 30_000,
  /** A machine may sleep, and no timer waits for months. */
  looksAtClockEveryMs: 600_000,
} as const;

/**
 * Sessions whose envelopes are kept for receipts, envelopes of a kind that are kept of one, and bytes of all of them. Sessions in
 * which this agent signed something have as much to themselves as all others.
 */
export const SESSION_RECORDS = { max: 1000, maxOfAKind: 4, maxBytes: 8_388_608 } as const;

/** Look-ups of credentials. */
export const LOOK_UP = {
  /** How long a delivery waits for one. */
  waitMs: 1000,
  /** How long an agent that ends looks up senders of what came in before. */
  lastMs: 2000,
  /** One; its wait for its turn is part of its time. */
  answer: { timeoutMs: 3000, maxBytes: 65_536 },
  againAfterMs: 300_000,
  /** After one that found none, or failed, or when the credential that it found has ended. */
  soonAgainAfterMs: 5000,
  /** The same of a recipient's, which is asked for while somebody waits to seal to it. */
  recipientAgainAfterMs: 1000,
  atOnce: 16,
  /** Results that are kept, at most 2 KB of token each. */
  maxKept: 2000,
  /**
   * Of agents that are not known yet: their share of all this. The relay answers 600 look-ups of an address a minute; what
   * strangers cannot use up is left for agents that are known.
   */
  strangers: { atOnce: 8, maxKept: 1000, perMinute: 300 },
} as const;

/** Of a payload. Source: docs/protocol.md#envelopes. */
export const PAYLOAD_LIMITS = { maxLevels: 32, maxMembers: 2000 } as const;

/** How long a sealing key is kept after the end of its last credential. Source: docs/protocol.md#sealed-payloads. */
export const SEALING_KEY_KEPT_MS = 600_000;

/** Of the JSON of a payload that is to be sealed: sealed, and with the envelope around it, it still fits into a frame. */
export const MAX_SEALED_BYTES = 23_000;

/** How check-online is asked while somebody waits for its answer. */
export const ONLINE_LOOK = {
  /** Between two questions. */
  wait: { firstMs: 250, capMs: 2000 },
  /** One question. */
  answer: { timeoutMs: 3000, maxBytes: 65_536 },
  atOnce: 16,
} as const;
