/**
 * Catalogue of error codes, one for each reason, for HTTP, websocket, OpenAPI and docs.
 * Source: docs/protocol.md#errors.
 */

/**
 * `never`: the same request cannot succeed. `fix`: change the request first. `later`: the same request may be sent
 * again.
 */
export const RETRIES = ["never", "fix", "later"] as const;
type Retry = (typeof RETRIES)[number];

/** Meaning of an error code, and advice for the client. */
interface ErrorEntry {
  /** HTTP status of the problem document. Null for codes that only websockets use. */
  readonly httpStatus: number | null;
  /** True if the relay sends the code in a websocket `error` frame. */
  readonly websocket: boolean;
  /** One short sentence. Also the problem's `title`. */
  readonly title: string;
  /** Advice for the client. */
  readonly hint: string;
  readonly retry: Retry;
}

const error = (
  httpStatus: number | null,
  websocket: boolean,
  retry: Retry,
  title: string,
  hint: string,
): ErrorEntry => ({ httpStatus, websocket, retry, title, hint });

export const ERRORS = {
  malformed_json: error(
    400,
    true,
    "fix",
    "The text is not valid JSON.",
    "Send one JSON object in UTF-8, without trailing text.",
  ),
  frame_too_large: error(
    400,
    true,
    "fix",
    "The canonical text of the envelope is larger than 32768 bytes.",
    "Shorten the payload.",
  ),
  invalid_envelope: error(
    400,
    true,
    "fix",
    "The envelope is invalid for its type.",
    "errors names each field and what is wrong with it; if it is absent, read detail (message in an error frame). /asyncapi.json has the schema of each envelope type; unknown fields are refused.",
  ),
  clock_skew: error(
    400,
    true,
    "fix",
    "ts differs from the server's clock by more than 300000 ms.",
    "Set ts to the current time in epoch milliseconds; correct your clock with server_time.",
  ),
  unknown_key: error(
    400,
    true,
    "fix",
    "key_id does not name a valid key.",
    "Use a key that is valid now, or ask the relay's operator to add it. A jkt- key is known on a connection once its agent.register with the credential was accepted there; give the self-test the credential as ?credential=.",
  ),
  bad_signature: error(
    400,
    true,
    "fix",
    "The signature does not match the envelope.",
    "canonical_sha256 is the hex SHA-256 of the text that the relay checked: if yours differs, POST the envelope to /api/self-test?explain=1 and compare; if it is the same, the key is another one.",
  ),
  key_not_allowed: error(
    400,
    true,
    "fix",
    "The key is not allowed to sign for this sender.",
    "Use a key that may sign for `from`: one whose agents list contains it, or whose credential has it as sub.",
  ),
  invalid_credential: error(
    400,
    true,
    "fix",
    "The credential of the register is not accepted.",
    "The first word of detail (message in an error frame) is the reason. Have the issuer issue a credential for this key, this agent and this relay.",
  ),
  wrong_relay: error(
    400,
    true,
    "fix",
    "payload.relay does not name this relay.",
    "Dial a name of this relay, or have its operator add the host that you dialled to RELAY_PUBLIC_HOSTS.",
  ),
  wrong_connection: error(
    null,
    true,
    "fix",
    "payload.connection_id names another connection.",
    "Sign a new envelope with the connection_id of hello.",
  ),
  not_registered: error(
    null,
    true,
    "fix",
    "The sending agent is not registered on this connection.",
    "Send agent.register for it on this connection first.",
  ),
  unknown_agent: error(
    404,
    false,
    "fix",
    "No credential of this agent is known.",
    "Check name and key_id. A credential is known from the agent's register on, while it holds and the agent is not forgotten; an agent with a listed key has none.",
  ),
  unknown_session: error(
    404,
    true,
    "never",
    "There is no session with this id.",
    "Check session_id; a session is kept for one hour after it ends, and not beyond its process window: one from before a restart of Redis is to be requested anew.",
  ),
  not_your_session: error(
    null,
    true,
    "fix",
    "The session is not between this sender and this target.",
    "Only the session's target decides it: its id goes into `from`, that of the requester into `to`.",
  ),
  not_accepted_by_target: error(
    403,
    true,
    "never",
    "The target does not accept envelopes of this sender.",
    "Send to another agent. The target names the senders that it accepts in accept_from of its agent.register: whoever runs it can add you.",
  ),
  session_closed: error(
    null,
    true,
    "never",
    "The session has already been decided or has expired.",
    "Its requester may request a new session; its target can no longer decide this one.",
  ),
  rate_limited: error(
    429,
    true,
    "later",
    "Too many requests.",
    "Wait for retry_after_ms; Retry-After is the same in seconds.",
  ),
  unavailable: error(
    503,
    true,
    "later",
    "The relay is temporarily unavailable; the outcome is unknown.",
    "Send the same envelope, or the same request with its Idempotency-Key, again.",
  ),
  register_timeout: error(
    null,
    true,
    "fix",
    "No valid envelope came within 10 s.",
    "Send a signed agent.register as soon as hello has come; have it checked at /api/self-test before you connect again.",
  ),
  invalid_request: error(
    400,
    false,
    "fix",
    "The request is invalid for this endpoint.",
    "errors names each field and what is wrong with it; if it is absent, read detail. Unknown fields are refused.",
  ),
  missing_api_key: error(
    401,
    false,
    "fix",
    "The request has no x-api-key header.",
    "Send the key in the x-api-key header only. Without a key, sign it yourself and send it on the websocket (/asyncapi.json), or ask the relay's operator; feedback of category session_request_auth_needed is only counted, and no person reads it.",
  ),
  invalid_api_key: error(
    401,
    false,
    "fix",
    "The x-api-key header does not contain a valid key.",
    "Use a key that is valid now; keys expire and are revoked. For another, ask the relay's operator, or sign it yourself and send it on the websocket (/asyncapi.json); feedback of category session_request_auth_needed is only counted, and no person reads it.",
  ),
  api_key_not_allowed_for_sender: error(
    401,
    false,
    "fix",
    "The API key is not allowed for this sender.",
    "Use as `from` an agent id that the key's agents list contains.",
  ),
  not_found: error(404, false, "never", "There is nothing at this path.", "See /API/discovery for every path."),
  method_not_allowed: error(405, false, "fix", "This path does not support this method.", "See the Allow header."),
  idempotency_in_progress: error(
    409,
    false,
    "later",
    "The first request with this Idempotency-Key is still in progress.",
    "Send it again after Retry-After.",
  ),
  body_too_large: error(413, false, "fix", "The body is larger than 32768 bytes.", "Shorten the body."),
  unsupported_media_type: error(
    415,
    false,
    "fix",
    "The body must be application/json in UTF-8, without a content encoding.",
    "Send content-type: application/json, with no charset but utf-8, and no content-encoding.",
  ),
  expectation_failed: error(
    417,
    false,
    "fix",
    "The Expect field is not 100-continue.",
    "Leave the Expect field out, or send 100-continue.",
  ),
  idempotency_key_reused: error(
    422,
    false,
    "fix",
    "This Idempotency-Key was used before with another body.",
    "Use a new Idempotency-Key for a new request.",
  ),
  internal_error: error(
    500,
    true,
    "later",
    "An unexpected error occurred in the relay.",
    "Try again later; if it persists, tell the relay's operator.",
  ),
  origin_not_allowed: error(
    403,
    false,
    "never",
    "Pages from this origin are not allowed to connect.",
    "Ask the relay's operator to add the origin to RELAY_ALLOWED_ORIGINS.",
  ),
  upgrade_required: error(
    426,
    false,
    "fix",
    "This path is a websocket.",
    "Connect with a websocket client, as /asyncapi.json describes it; for plain HTTP use POST /v1/messages/send.",
  ),
  not_ready: error(
    503,
    false,
    "later",
    "This service is not ready.",
    "Ask again after Retry-After; reason and next_action say what its operator can do.",
  ),
  over_capacity: error(
    503,
    true,
    "later",
    "The relay has no room for this now.",
    "Wait for retry_after_ms; Retry-After is the same in seconds. Agents that are present, and messages without an Idempotency-Key, are still accepted.",
  ),
  agents_per_key: error(
    null,
    true,
    "fix",
    "The key has as many agents as one key may have.",
    "Go on with agents of the key that are present, or ask the relay's operator for another key. An agent that is offline makes room for a new one.",
  ),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

/** An invalid field, without its value. Source: docs/security.md#echoes. */
export interface FieldError {
  readonly field: string;
  readonly message: string;
}
