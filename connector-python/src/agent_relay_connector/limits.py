"""Numbers of the protocol that hold before `hello` says them, and this package's own.

Names end in their unit: `_S` seconds, `_MS` milliseconds (times in envelopes and tokens).
"""

# Source: docs/protocol.md#limits.
MAX_FRAME_BYTES = 32_768
# Whom an agent accepts envelopes from: entries. Source: docs/protocol.md#accept_from.
MAX_ACCEPT_FROM = 50
# Used for whatever `hello` leaves out. Source: docs/protocol.md#limits.
HEARTBEAT_INTERVAL_S = 15.0
MAX_CLOCK_SKEW_MS = 300_000
# The shortest interval that a relay may ask for: each heartbeat costs a signature.
MIN_HEARTBEAT_INTERVAL_S = 0.25
# The longest: a connection that is dead is found out by its heartbeats.
MAX_HEARTBEAT_INTERVAL_S = 60.0
# Of one frame of the relay. Source: docs/protocol.md#limits.
MAX_INCOMING_BYTES = 36_864

# Wrong fields that a refusal may name.
MAX_FIELD_ERRORS = 16
# Of a text of the relay that is shown to people, such as the hint of an error.
MAX_SAID_CHARACTERS = 1000

# From the start of a connection to `hello`: short, since an attempt at a dead address delays the next one.
HELLO_WITHIN_S = 5.0
# The addresses of a name are tried side by side, each so long after the one before. Source: RFC 8305, section 5.
NEXT_ADDRESS_S = 0.25
# From `hello` to the first register; another connection follows. The relay waits for 10 s, and then closes for good (1008).
REGISTER_WITHIN_S = 8.0
# The relay answers within a second: a connection without any frame this long after a request is dead.
ANSWER_WITHIN_S = 10.0
# After this long, a close handshake without an answer is given up.
CLOSE_WITHIN_S = 1.0
# Waits between attempts: a random time up to a bound that doubles. All agents are back within 10 s.
BACKOFF_FIRST_S = 0.25
BACKOFF_CAP_S = 5.0
# A replaced connection may still bring deliveries: it is read until the relay closes it, or for this long.
RETIRED_S = 10.0
MAX_RETIRED = 2
# The longest wait that a relay which drains may ask for.
DRAINING_CAP_S = 30.0
# The wait where a refusal does not name one, and the longest that one may ask for.
RETRY_AFTER_S = 1.0
MAX_ASKED_WAIT_S = 3600.0

SEND_TIMEOUT_S = 30.0
MAX_PENDING = 1000
MAX_INBOX = 1000
# Envelopes without an answer on one connection, where the relay allows as many. Source: docs/protocol.md#limits.
MAX_IN_FLIGHT = 64
# An envelope this close to the relay's age limit is not sent again: it would arrive too late.
RESEND_MARGIN_MS = 5000

# Ids of deliveries that are remembered to recognise repeats, of pinned and of other senders each; and senders whose ids
# they may be.
MAX_DELIVERED_IDS = 20_000
MAX_SENDERS = 2000
# The relay takes envelopes up to 5 min from its clock, and delivers at once: what is older was kept by somebody.
MAX_DELIVERY_AGE_S = 600.0
# The last time that a Date of ECMAScript has. A later one of a relay is none, and is not signed with.
MAX_TIME_MS = 8_640_000_000_000_000
# Clocks that may be this close count as the same: the relay takes 5 minutes either way, and what one machine dates by its
# own clock stays in order. With half of the longest way to `hello` it is less than RESEND_MARGIN_MS.
SAME_CLOCK_MS = 2000
# How far the relay's time may move the clock by which deliveries are judged.
MAX_CLOCK_CORRECTION_MS = 300_000

# Look-ups at the relay: how long a delivery waits for one, and how long one may take in all.
LOOK_UP_WAIT_S = 1.0
LOOK_UP_TIMEOUT_S = 3.0
LOOK_UPS_AT_ONCE = 16
MAX_LOOK_UP_BYTES = 4_194_304
# Of a proxy's answer to CONNECT, and how long its headers may take after a status that refuses.
MAX_PROXY_ANSWER_BYTES = 8_192
PROXY_HEADERS_WITHIN_S = 1.0
# How often an unknown key of a gateway or an issuer asks for the signing manifest again.
MANIFEST_AGAIN_AFTER_S = 5.0
# How long a key of a gateway is known without asking again: the relay may have revoked it.
GATEWAY_KEYS_KEPT_S = 60.0
# When a credential is looked up again; sooner after a look-up that found none, or failed, or when what it found has ended.
CREDENTIAL_AGAIN_AFTER_S = 300.0
CREDENTIAL_SOON_AGAIN_AFTER_S = 5.0
# The same of a recipient's, which is asked for while somebody waits to seal to it.
RECIPIENT_AGAIN_AFTER_S = 1.0
MAX_CREDENTIALS_KEPT = 2000
# Of agents that are not known yet: their share of all this. The relay answers 600 look-ups of an address a minute; what
# strangers cannot use up is left for agents that are known.
STRANGERS_AT_ONCE = 8
MAX_STRANGERS_KEPT = 1000
STRANGERS_PER_MINUTE = 300

# The longest wait between two questions whether an agent is online, and how long one question may take.
PRESENCE_CAP_S = 2.0
PRESENCE_TIMEOUT_S = 3.0
# Of LOOK_UPS_AT_ONCE: however many are waited for, and strangers looked up, known senders are looked up meanwhile.
PRESENCE_LOOKS_AT_ONCE = 4

# Until the first register is accepted: how long a start takes as passing a key or an issuer that the relay does not know,
# and an answer that is none of a relay; and how often, and how far apart, the agent's own presence is looked up before it counts as held elsewhere.
UNKNOWN_KEY_PRESENTED_S = 10.0
# The same of what refuses the upgrade: an edge may do so until its relay is ready.
REFUSED_UPGRADE_S = 60.0
# A proxy's page may ask for hours, and be gone in a minute.
RETRY_AFTER_CAP_S = 60.0
OWN_LOOKS = 5
OWN_LOOK_AGAIN_S = 0.3
# What the relay says of a signature: how long it may take, and bytes of its answer.
SELF_TEST_TIMEOUT_S = 3.0
SELF_TEST_MAX_BYTES = 65_536

# Of a credential: characters of the token, from `iat` to `exp`, and how far `iat` and `nbf` may lie ahead.
# Source: docs/protocol.md#credentials.
MAX_TOKEN_CHARACTERS = 2048
MAX_CREDENTIAL_LIFE_MS = 90 * 24 * 3_600_000
MAX_CREDENTIAL_AHEAD_MS = 60_000

# The next credential is asked for at a random part of the life of the present one, then with a growing wait.
RENEWAL_EARLIEST = 0.5
RENEWAL_LATEST = 0.8
RENEWAL_CAP_S = 60.0
# How long the callback that gives it may take.
RENEWAL_ANSWER_WITHIN_S = 30.0
# A machine may sleep: the clock is looked at this often.
RENEWAL_LOOKS_EVERY_S = 600.0

# How long a sealing key is kept after the end of its last credential. Source: docs/protocol.md#sealed-payloads.
SEALING_KEY_KEPT_MS = 600_000

# Minutes in which the target of a session request can decide. Source: docs/protocol.md#limits.
SESSION_TTL_MINUTES = (5, 1440)
# Of the texts of `session.*`, the fewest and the most characters (Unicode code points). Source: docs/protocol.md#envelopes.
SESSION_TEXT_CHARACTERS = {
    "purpose": (1, 500),
    "intro": (0, 1000),
    "scope": (0, 1000),
    "expected_frequency": (0, 200),
    "reason": (0, 500),
}
MAX_TASK_ID_CHARACTERS = 128
SESSION_TTL_DEFAULT_MINUTES = 60
# Sessions whose envelopes are kept for receipts, envelopes of a kind that are kept of one, and bytes of all of them. Sessions
# in which this agent signed something have as much to themselves as all others.
MAX_SESSION_RECORDS = 1000
MAX_OF_A_KIND = 4
MAX_SESSION_RECORD_BYTES = 8_388_608

# Of a payload. Source: docs/protocol.md#envelopes.
MAX_PAYLOAD_LEVELS = 32
MAX_PAYLOAD_MEMBERS = 2000
# Of the JSON of a payload that is to be sealed: sealed, and with the envelope around it, it still fits into a frame.
MAX_SEALED_BYTES = 23_000
