/**
 * The catalogue of refusals: one code for one thing, the same over HTTP, websocket, OpenAPI and docs.
 * Source: the contract, "Errors"; the protocol, sections 6 and 9.
 */

/** What an error code says, and what a client does about it. */
export interface ErrorEntry {
  /** HTTP status of the problem document; null for codes that only the websocket knows. */
  readonly httpStatus: number | null;
  /** True when the code is sent as a websocket `error` frame. */
  readonly websocket: boolean;
  /** One short sentence; also the problem's `title`. */
  readonly title: string;
  /** What the client should do. */
  readonly hint: string;
  /** `never`: the same request cannot succeed. `fix`: mend it first. `later`: the same request may be sent again. */
  readonly retry: "never" | "fix" | "later";
}

const error = (
  httpStatus: number | null,
  websocket: boolean,
  retry: ErrorEntry["retry"],
  title: string,
  hint: string,
): ErrorEntry => ({ httpStatus, websocket, retry, title, hint });

export const ERRORS = {
  malformed_json: error(400, true, "fix", "The body is not JSON.", "Send one JSON object, UTF-8, no trailing text."),
  frame_too_large: error(
    400,
    true,
    "fix",
    "The canonical text of the envelope is over 32768 bytes.",
    "Shorten the payload.",
  ),
  invalid_envelope: error(
    400,
    true,
    "fix",
    "The envelope does not have the shape that its type asks for.",
    "Check the fields against the envelope schema in /openapi.json; unknown fields are refused.",
  ),
  clock_skew: error(
    400,
    true,
    "fix",
    "ts is more than 300000 ms away from the server's clock.",
    "Set ts to now in epoch milliseconds; correct your clock by server_time.",
  ),
  unknown_key: error(
    400,
    true,
    "fix",
    "key_id names no key that is in force.",
    "Ask the relay's operator to add the key, or use one that is in force.",
  ),
  bad_signature: error(
    400,
    true,
    "fix",
    "The signature does not fit the envelope.",
    "Sign the canonical text of the signing manifest and compare with its test vectors.",
  ),
  key_not_allowed: error(
    400,
    true,
    "fix",
    "The key may not sign for this sender.",
    "Use a key whose agents list holds the from id.",
  ),
  not_registered: error(
    null,
    true,
    "fix",
    "This connection does not own the sending agent.",
    "Send agent.register for the agent on this connection first.",
  ),
  unknown_session: error(
    404,
    true,
    "never",
    "No such session.",
    "Check session_id; sessions are kept until one hour after their end.",
  ),
  not_your_session: error(
    null,
    true,
    "never",
    "The session is not between this sender and this receiver.",
    "Only the target decides, and to is the requester.",
  ),
  session_closed: error(null, true, "never", "The session is already decided or expired.", "Request a new session."),
  rate_limited: error(
    429,
    true,
    "later",
    "Too many requests.",
    "Wait for retry_after_ms; Retry-After says the same in seconds.",
  ),
  unavailable: error(
    503,
    true,
    "later",
    "The relay cannot reach its window; the outcome is unknown.",
    "Send the same envelope, or the same request with its Idempotency-Key, again.",
  ),
  invalid_request: error(
    400,
    false,
    "fix",
    "The request does not have the shape that this endpoint asks for.",
    "Mend the fields listed in errors; unknown fields are refused.",
  ),
  invalid_api_key: error(
    401,
    false,
    "fix",
    "The x-api-key header is missing or holds no valid key.",
    "Send the key in the x-api-key header only; without a key, post feedback with category session_request_auth_needed.",
  ),
  api_key_not_allowed_for_sender: error(
    401,
    false,
    "fix",
    "The API key is not allowed for this sender.",
    "Use a from id that the key's agents list holds.",
  ),
  not_found: error(404, false, "never", "There is nothing at this path.", "See /API/discovery for every path."),
  method_not_allowed: error(405, false, "fix", "This path does not take this method.", "See the Allow header."),
  idempotency_in_progress: error(
    409,
    false,
    "later",
    "The first request with this Idempotency-Key is still in progress.",
    "Send it again after Retry-After.",
  ),
  body_too_large: error(413, false, "fix", "The body is over 32768 bytes.", "Shorten the body."),
  unsupported_media_type: error(
    415,
    false,
    "fix",
    "The body must be application/json without content encoding.",
    "Send content-type: application/json.",
  ),
  idempotency_key_reused: error(
    422,
    false,
    "fix",
    "This Idempotency-Key came before with another body.",
    "Use a new Idempotency-Key for a new request.",
  ),
  internal_error: error(
    500,
    false,
    "later",
    "Something went wrong here.",
    "Try again later; report it through feedback if it stays.",
  ),
  origin_not_allowed: error(
    403,
    false,
    "never",
    "Pages of this origin may not connect.",
    "Ask the relay's operator to add the origin to RELAY_ALLOWED_ORIGINS.",
  ),
  over_capacity: error(503, false, "later", "The relay is at its connection limit.", "Wait for Retry-After."),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

/** A field that did not pass, without its value: no value from a request is ever echoed. */
export interface FieldError {
  readonly field: string;
  readonly message: string;
}

/** A refusal on its way to a client. `message` never holds anything the client sent. */
export class RelayError extends Error {
  readonly code: ErrorCode;
  readonly errors: readonly FieldError[] | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(
    code: ErrorCode,
    details: { detail?: string; errors?: readonly FieldError[]; retryAfterMs?: number } = {},
  ) {
    super(details.detail ?? ERRORS[code].title);
    this.name = "RelayError";
    this.code = code;
    this.errors = details.errors;
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** Websocket close codes, with what a client does after them. Source: protocol, section 6; RFC 6455, section 7.4. */
export const CLOSE_CODES = {
  goingAway: { code: 1001, reason: "going away", reconnect: true },
  binaryFrame: { code: 1003, reason: "text frames only", reconnect: true },
  policy: { code: 1008, reason: "policy", reconnect: false },
  slowConsumer: { code: 1013, reason: "slow consumer", reconnect: true },
  gaveWay: { code: 1013, reason: "too many unregistered connections", reconnect: true },
  keyRevoked: { code: 4403, reason: "key revoked or expired", reconnect: false },
  superseded: { code: 4409, reason: "superseded", reconnect: false },
} as const;
