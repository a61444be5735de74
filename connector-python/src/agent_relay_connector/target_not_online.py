"""The error of what nobody received."""

from .errors import RelayError

_NOT_SEEN = (
    "The relay has not seen the target since its process window began, with its last start or later."
    " If that is long ago, check the id. Nobody received it, and the relay keeps nothing."
)


def target_not_online(status: str | None, envelope_id: str | None = None) -> RelayError:
    """status: the target's, as the relay tells it: an id that it has not seen may be misspelt."""
    message = _NOT_SEEN if status == "not_seen" else None
    return RelayError("target_not_online", message, envelope_id=envelope_id)
