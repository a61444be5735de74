/** How a command ended, for scripts. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  refused: 3,
  unreachable: 4,
  timeout: 5,
  superseded: 6,
  key: 7,
  receipt: 8,
  interrupted: 130,
} as const;

/** The same for `relay --help`; the README's table is checked against it. */
export const EXIT_CODES = `Exit codes
  0    success; listen: stopped by a signal (npx itself then exits with 143), by the end of its input or by its reader
  1    another error
  2    the command line or the input is invalid
  3    the relay refused it, or the session was rejected or has expired
  4    the relay is not reachable, or not available at the moment
  5    no answer in time: it may have been accepted; ask, --wait, --wait-online: the target is not online (a plain send: 0)
  6    the agent is online elsewhere, or another connection took it over
  7    the key or the credential, with --seal that of the target too, is invalid, unknown, not allowed for the agent, or revoked
  8    the receipt is not valid, or there is none
  130  interrupted
`;

const CODES: Readonly<Record<string, number>> = {
  invalid_key: EXIT.key,
  unknown_key: EXIT.key,
  bad_signature: EXIT.key,
  key_not_allowed: EXIT.key,
  key_revoked: EXIT.key,
  invalid_credential: EXIT.key,
  recipient_unknown: EXIT.key,
  recipient_unverified: EXIT.key,
  recipient_unsealable: EXIT.key,
  invalid_envelope: EXIT.usage,
  invalid_issuer: EXIT.usage,
  frame_too_large: EXIT.usage,
  not_answerable: EXIT.usage,
  invalid_receipt: EXIT.receipt,
  receipt_incomplete: EXIT.receipt,
  missing_api_key: EXIT.key,
  invalid_api_key: EXIT.key,
  api_key_not_allowed_for_sender: EXIT.key,
  unreachable: EXIT.unreachable,
  not_a_relay: EXIT.unreachable,
  unavailable: EXIT.unreachable,
  rate_limited: EXIT.unreachable,
  over_capacity: EXIT.unreachable,
  not_ready: EXIT.unreachable,
  internal_error: EXIT.unreachable,
  closed: EXIT.unreachable,
  timeout: EXIT.timeout,
  target_not_online: EXIT.timeout,
  outcome_unknown: EXIT.timeout,
  superseded: EXIT.superseded,
  superseded_elsewhere: EXIT.superseded,
  clock_untrusted: EXIT.failed,
  queue_full: EXIT.failed,
  usage: EXIT.usage,
  failed: EXIT.failed,
  aborted: EXIT.interrupted,
};

/** @param code an error code of the relay, which may be any word, of the SDK, or of the command line itself. */
export function exitCodeOf(code: string): number {
  return Object.hasOwn(CODES, code) ? (CODES[code] as number) : EXIT.refused;
}
