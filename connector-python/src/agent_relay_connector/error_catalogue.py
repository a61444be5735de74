"""The catalogue of errors: the codes of the relay, and those of the connector itself.

Source: docs/protocol.md#errors.
"""

from dataclasses import dataclass
from typing import Literal, get_args

Retry = Literal["never", "fix", "later"]


@dataclass(frozen=True)
class ErrorEntry:
    """What a code means, and what to do about it.

    retry: `never`: the same call cannot succeed. `fix`: fix what the hint names first. `later`: it may succeed later.
    """

    retry: Retry
    message: str
    hint: str


# Codes of the relay's `error` frames.
RELAY_ERRORS = {
    "malformed_json": ErrorEntry("fix", "The frame is not JSON.", "This package never sends one; report it."),
    "frame_too_large": ErrorEntry("fix", "The signed envelope is over 32768 bytes.", "Shorten the payload."),
    "invalid_envelope": ErrorEntry(
        "fix",
        "The envelope is invalid for its type.",
        "The message names each field that is wrong, and how, and so does errors.",
    ),
    "clock_skew": ErrorEntry(
        "fix",
        "The clock was too far from the relay's.",
        "It is corrected by now: send anew. If that is refused too, set this machine's clock.",
    ),
    "unknown_key": ErrorEntry(
        "fix",
        "The relay does not know the key, or it is not in force.",
        "Give the credential of the key, which its issuer signs for the public record of relay keygen; "
        "or have the relay's operator list the key.",
    ),
    "bad_signature": ErrorEntry(
        "fix", "The signature does not match the key.", "Check that the private key belongs to key_id."
    ),
    "key_not_allowed": ErrorEntry(
        "fix", "The key may not sign for this agent.", "Use a key whose agents list holds the agent."
    ),
    "invalid_credential": ErrorEntry(
        "fix",
        "The credential of the register is not accepted.",
        "The message begins with the reason; have the issuer issue one for this key, this agent and this relay.",
    ),
    "wrong_relay": ErrorEntry(
        "fix",
        "The relay does not go by the name that was dialled.",
        "Dial a name of the relay, or have its operator add the host that you dialled to RELAY_PUBLIC_HOSTS.",
    ),
    "wrong_connection": ErrorEntry(
        "fix",
        "The register was signed for another connection.",
        "Something between agent and relay joined two connections; connect without it.",
    ),
    "not_registered": ErrorEntry(
        "fix", "This connection does not own the agent.", "The connector registers it again: send once it is online."
    ),
    "unknown_session": ErrorEntry("never", "No such session.", "Sessions are kept until one hour after their end."),
    "not_your_session": ErrorEntry(
        "fix",
        "The session is not between this agent and that one.",
        "Only the target decides, and `to` is the requester.",
    ),
    "session_closed": ErrorEntry(
        "never", "The session is already decided or expired.", "Its requester may request a new one."
    ),
    "rate_limited": ErrorEntry("later", "Too many requests.", "Send fewer; retry_after says when to try again."),
    "unavailable": ErrorEntry(
        "later", "The relay cannot reach its Redis.", "The connector sends the same envelope again."
    ),
    "internal_error": ErrorEntry(
        "later",
        "An unexpected error occurred in the relay.",
        "Try again later; if it persists, tell the relay's operator.",
    ),
    "not_accepted_by_target": ErrorEntry(
        "never",
        "The target does not accept envelopes of this agent.",
        "Send to another agent. The target names the senders that it accepts: whoever runs it can add this one.",
    ),
    "over_capacity": ErrorEntry(
        "later",
        "The relay has no room for this now.",
        "Agents that are present go on, and messages. Request the session again later.",
    ),
    "agents_per_key": ErrorEntry(
        "fix",
        "The key has as many agents as one key may have.",
        "Use an agent of the key that is present, or another key; an agent that is offline makes room for a new one.",
    ),
    "register_timeout": ErrorEntry(
        "fix", "The relay got no valid envelope within 10 s.", "Check the key and the clock."
    ),
}

_TELL_THE_OPERATOR = "Tell the relay's operator."
_SEE_OUTCOME = "See outcome: when it is unknown, the target may have got it."

# Codes of the connector itself.
CONNECTOR_ERRORS = {
    "invalid_key": ErrorEntry(
        "fix",
        "The key cannot be used.",
        "private_key is the 32-byte seed, secret at least 32 bytes, both base64url.",
    ),
    "queue_full": ErrorEntry(
        "later", "Too many sends are unsettled.", "Await earlier sends before the next, or raise max_pending."
    ),
    "timeout": ErrorEntry("later", "No answer came in time.", _SEE_OUTCOME),
    "target_not_online": ErrorEntry(
        "later",
        "The target is not online: nobody received it, and the relay keeps nothing.",
        "Send it again when the target is online; wait_online waits for that.",
    ),
    "not_answerable": ErrorEntry(
        "never",
        "Only messages are replied to, and a message.reply is not: two agents that both reply would go on forever.",
        "Ask or send anew, or decide the session with approve or reject.",
    ),
    "unreachable": ErrorEntry("later", "The relay is not reachable.", "The connector tries again by itself."),
    "outcome_unknown": ErrorEntry(
        "never",
        "The envelope was sent, no answer came, and it is too old to be sent again.",
        "Ask the target before sending anew: it may have got it.",
    ),
    "closed": ErrorEntry("never", "The connector is closed.", "Make a new one."),
    "policy": ErrorEntry(
        "never",
        "The relay closed the connection for what it was sent (1003, 1007, 1008, 1009).",
        "The error events before it say what was refused, and why: mend that first.",
    ),
    "key_revoked": ErrorEntry("fix", "The key was revoked or has expired (4403).", "Have the relay's operator list another key, or an issuer issue a new credential. Then start again with that."),
    "superseded": ErrorEntry(
        "never",
        "Another connection registered this agent (4409).",
        "Run one connector an agent; stop the other before you start this one again.",
    ),
    "superseded_elsewhere": ErrorEntry(
        "fix",
        "The agent is online over another connection, which this start would end.",
        "Stop the other, or start with take_over=True, which ends it. Of a machine that is lost the relay lets go 45 s"
        " after its last heartbeat: start again then. A relay listen or relay mcp of the same key shares its connection with"
        " relay send and relay ask of the same user; a connector shares none.",
    ),
    "not_a_relay": ErrorEntry(
        "fix",
        "What answers over HTTP at the relay's address is not a relay.",
        "Give the relay's base address, or that of its HTTP side as http_url; with take_over=True the start goes on.",
    ),
    "refused": ErrorEntry(
        "never", "The relay refused for a reason that this version does not know.", "Update this package."
    ),
    "forged_delivery": ErrorEntry(
        "never", "The signature of a delivery does not match its key; it was dropped.", _TELL_THE_OPERATOR
    ),
    "unverified_delivery": ErrorEntry(
        "fix",
        "Nothing that is pinned here vouches for the sender of a delivery; it was dropped.",
        "Pin the sender's key in trust.keys, its issuer in trust.issuers, or name the gateway's key in trust.gateways.",
    ),
    "stale_delivery": ErrorEntry(
        "never",
        "A delivery was signed too long ago, or too far in the future; it was dropped.",
        "The relay delivers at once: it, or somebody before it, kept the envelope. max_delivery_age is the limit.",
    ),
    "clock_untrusted": ErrorEntry(
        "fix",
        "This machine's clock and the relay's are more than 5 minutes apart: what is old cannot be told, and nothing "
        "is verified.",
        "Set this machine's clock (NTP).",
    ),
    "reused_id": ErrorEntry(
        "never",
        "A delivery has the id of another envelope that its sender signed before; it was dropped, and its sender is not told.",
        "Ask the sender to send it again under a new id: every envelope has its own.",
    ),
    "unopenable_delivery": ErrorEntry(
        "fix",
        "A delivery was sealed, and no key given here opens it, or no pinned key or issuer vouches for its sender; it "
        "was dropped.",
        "Give the key of the credential that the sender found in sealing_keys, and pin the sender's issuer.",
    ),
    "misdirected_delivery": ErrorEntry(
        "never", "A delivery was for another agent; it was dropped.", _TELL_THE_OPERATOR
    ),
    "misnamed_session": ErrorEntry(
        "never",
        "A session request was delivered under an id that is not made of it; it was dropped.",
        _TELL_THE_OPERATOR,
    ),
    "malformed_delivery": ErrorEntry("never", "A delivery was not an envelope; it was dropped.", _TELL_THE_OPERATOR),
    "invalid_issuer": ErrorEntry(
        "fix",
        "A record of an issuer cannot be used.",
        "It has the form of an issuer in the relay's keys file; no pattern and no key stands under two issuers.",
    ),
    "recipient_unknown": ErrorEntry(
        "later",
        "The relay gives no credential of the recipient, so there is no key to seal to.",
        "Check its id. It has to have been online with a credential: wait_online waits for that, then seal again.",
    ),
    "recipient_unverified": ErrorEntry(
        "fix",
        "No pinned issuer vouches for the recipient's credential.",
        "Pin the recipient's issuer in trust.",
    ),
    "recipient_unsealable": ErrorEntry(
        "fix",
        "The recipient's credential names no X25519 key to seal to.",
        "The recipient has to register with a credential that has one in enc.",
    ),
    "receipt_incomplete": ErrorEntry(
        "never",
        "Not all that a receipt consists of is there.",
        "Who signed or received both envelopes has a receipt; requests by a gateway, "
        "decisions without request_sha256 and keys without a credential have none.",
    ),
    "listener_failed": ErrorEntry("fix", "A listener raised; see __cause__.", "Fix the listener."),
}

# Close codes after which a connector does not reconnect. Source: docs/protocol.md#close-codes.
FINAL_CLOSES = {
    1003: "policy",
    1007: "policy",
    1008: "policy",
    1009: "policy",
    4403: "key_revoked",
    4409: "superseded",
}


def known_code(code: str) -> str:
    """The catalogue's code for one that the relay sent."""
    return code if code in RELAY_ERRORS else "refused"


def known_retry(value: object) -> Retry | None:
    """The advice of a relay on when to try again; None for what this version does not know."""
    known: tuple[Retry, ...] = get_args(Retry)
    return next((retry for retry in known if retry == value), None)
