/** Numbers of the protocol that hold before `hello` says them, and this package's own. Durations are milliseconds. */

/** Source: docs/protocol.md#limits. */
export const MAX_FRAME_BYTES = 32_768;

/** Used for whatever `hello` leaves out. Source: docs/protocol.md#limits. */
export const ANNOUNCED_DEFAULTS = { heartbeatIntervalMs: 15_000, maxClockSkewMs: 300_000 } as const;

/** From the start of a connection to `hello`: short, since an attempt at a dead address delays the next one. */
export const HELLO_WITHIN_MS = 5000;

/**
 * The relay answers within a second, whatever its state: a connection without any frame this long after a request is
 * dead.
 */
export const ANSWER_WITHIN_MS = 10_000;

/** Waits between attempts: a random time up to a bound that doubles. All agents are back within 10 s. */
export const BACKOFF = { firstMs: 250, capMs: 5000 } as const;

/** A replaced connection may still bring deliveries: it is read until the relay closes it, or for this long. */
export const RETIRED_MS = 10_000;

/** The wait where a refusal does not name one. */
export const RETRY_AFTER_MS = 1000;

/** Minutes in which the target of a session request can decide. Source: docs/protocol.md#limits. */
export const SESSION_TTL_MINUTES = { min: 5, max: 1440, default: 60 } as const;

export const SEND_TIMEOUT_MS = 30_000;
export const MAX_PENDING = 1000;
export const MAX_INBOX = 1000;

/** Envelopes without an answer on one connection, where the relay allows as many. Source: docs/protocol.md#limits. */
export const MAX_IN_FLIGHT = 64;

/** An envelope this close to the relay's age limit is not sent again: it would arrive too late. */
export const RESEND_MARGIN_MS = 5000;

/** Deliveries that are remembered to recognise repeats, of verified and of other senders each. */
export const MAX_SEEN = 20_000;

/** The relay takes envelopes up to 5 min from its clock, and delivers at once: what is older was kept by somebody. */
export const MAX_DELIVERY_AGE_MS = 600_000;

/** How far the relay's time may move the clock by which deliveries are judged. */
export const MAX_CLOCK_CORRECTION_MS = 300_000;

/** The signing manifest: how long one fetch may take, and how often an unknown gateway key asks for it again. */
export const MANIFEST = { timeoutMs: 3000, againAfterMs: 5000 } as const;
