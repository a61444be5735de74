/** Numbers of the protocol that hold before `hello` says them, and this package's own. Durations are milliseconds. */

/** Source: docs/protocol.md, "Frames". */
export const MAX_FRAME_BYTES = 32_768;

/** Used for whatever `hello` leaves out. Source: docs/protocol.md, "Envelopes"; README.md, "The websocket". */
export const ANNOUNCED_DEFAULTS = { heartbeatIntervalMs: 15_000, maxClockSkewMs: 300_000 } as const;

/** From the start of a connection to `hello`: short, for an attempt at a dead address must not use up the time to return. */
export const HELLO_WITHIN_MS = 5000;

/** The relay answers within a second, whatever its state: a connection silent for this long after a question is dead. */
export const ANSWER_WITHIN_MS = 10_000;

/** Waits between attempts: a random time up to a bound that doubles. Everybody is back within 10 s. */
export const BACKOFF = { firstMs: 250, capMs: 5000 } as const;

/** A connection that was replaced may still hold deliveries; the relay closes it, and if not, this does. */
export const RETIRED_MS = 10_000;

/** The wait where a refusal does not name one. */
export const RETRY_AFTER_MS = 1000;

export const SEND_TIMEOUT_MS = 30_000;
export const MAX_PENDING = 1000;
export const MAX_INBOX = 1000;

/** Envelopes on their way at once. */
export const MAX_IN_FLIGHT = 64;

/** An envelope this near to the end of its time is not sent again: it would arrive too late. */
export const RESEND_MARGIN_MS = 5000;

/** Deliveries that are remembered, so that a repeat is noticed: far more than a connection can have under way. */
export const MAX_SEEN = 1000;

/** The signing manifest: how long one fetch may take, and how often an unknown gateway key asks for it again. */
export const MANIFEST = { timeoutMs: 3000, againAfterMs: 5000 } as const;
