"""Signs this agent's envelopes with one key."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .base64url import encode_base64url
from .canonical import canonical_text, draft_text, signed_text
from .clock import Clock
from .credentials.read_credential import Credential
from .envelope_rules import invalid_envelope
from .errors import FieldError, RelayError
from .given import AgentKey
from .keys import signing_key
from .limits import MAX_CLOCK_SKEW_MS, MAX_FRAME_BYTES, MAX_PAYLOAD_LEVELS, MAX_PAYLOAD_MEMBERS
from .payload_rules import is_payload
from .strict_json import members_of, parse_json

# Bytes that time, key and signature add to a draft: an Ed25519 signature, a time of 16 digits, and their names.
_REST_BYTES = 86 + 16 + len(',"ts":,"key_id":"","sig":""}')
# Of the id that a key has by its credential: `jkt-` and a thumbprint.
_CREDENTIAL_KEY_ID_BYTES = 47

_NOT_AN_OBJECT = 'is not a JSON object, such as {"message": "hi"}'
_BREAKS_RULES = (
    f"must have at most {MAX_PAYLOAD_LEVELS} levels and {MAX_PAYLOAD_MEMBERS} members and array elements, "
    "none named __proto__"
)


@dataclass(frozen=True)
class SignedEnvelope:
    """An envelope as it goes over the wire."""

    text: str
    # Epoch milliseconds, by the relay's clock.
    ts: int
    # Of the key that signed it.
    key_id: str


class Signer:
    def __init__(self, key: AgentKey, clock: Clock) -> None:
        """Raises RelayError `invalid_key`."""
        self._key = signing_key(key)
        self._key_id = key.get("key_id")
        self._clock = clock

    @property
    def key_id(self) -> str:
        """There is one in the end: the caller's, or of a credential."""
        return self._key_id or ""

    @property
    def is_ed25519(self) -> bool:
        return self._key.public_key is not None

    def take_id_of(self, credential: Credential) -> None:
        """Takes the key's id from its credential. Raises `invalid_credential` for the credential of another key."""
        is_named = self._key_id in (None, credential.key_id)
        if not is_named or credential.public_key != self._key.public_key:
            raise RelayError(
                "invalid_credential",
                "The credential is of another key.",
                "Have one issued for this key, or let the callback give the key with it.",
            )
        self._key_id = credential.key_id

    def draft(self, members: Mapping[str, Any]) -> str:
        """The text of an envelope that is to be signed.

        Raises `invalid_envelope`, and `frame_too_large`: the relay closes the connection for a frame over its limit, and
        for refusals in a row. A payload may be what a stranger wrote, sent back.
        """
        if not isinstance(members["payload"], dict):
            raise invalid_envelope(FieldError("payload", _NOT_AN_OBJECT))
        try:
            text = draft_text(members)
        except ValueError as problem:
            raise invalid_envelope(FieldError("payload", f"holds what JSON has not: {problem}")) from None
        key_id_bytes = _CREDENTIAL_KEY_ID_BYTES if self._key_id is None else len(self._key_id)
        if len(text.encode()) + key_id_bytes + _REST_BYTES > MAX_FRAME_BYTES:
            raise RelayError("frame_too_large")
        if not is_payload(members_of(parse_json(text + "}"))["payload"]):
            raise invalid_envelope(FieldError("payload", _BREAKS_RULES))
        return text

    def sign(self, draft: str, not_before: int = 0) -> SignedEnvelope:
        """Signs with the present time.

        not_before: what it answers was signed at this time, epoch milliseconds: by a clock that may be ahead of this one, as
        far as the relay takes it. Nobody's clock moves it farther.
        """
        now = self._clock.now()
        ts = max(now, not_before) if not_before - now <= MAX_CLOCK_SKEW_MS else now
        canonical = canonical_text(draft, ts, self.key_id)
        sig = encode_base64url(self._key.sign(canonical.encode()))
        return SignedEnvelope(signed_text(canonical, sig), ts, self.key_id)
