"""The error of what nobody received."""

from .errors import RelayError

_NEVER_SEEN = (
    "The relay has never seen the target, as far back as it knows: check its id."
    " Nobody received it, and the relay keeps nothing."
)


def target_not_online(status: str | None, envelope_id: str | None = None) -> RelayError:
    """status: the target's, as the relay tells it: an id that it never saw may be misspelt."""
    message = _NEVER_SEEN if status == "not_seen" else None
    return RelayError("target_not_online", message, envelope_id=envelope_id)
