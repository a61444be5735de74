"""Why a question has no reply in time, as far as this end knows."""

from .errors import RelayError

_KEEPS_NONE = "A reply that came meanwhile is lost: the relay keeps none."
_MAY_COME = "The target may be at it: a late reply is a delivery like any other."


def no_reply(envelope_id: str, lost_s: float | None, is_lost: bool) -> RelayError:
    """The target may have got the question.

    lost_s: how long ago the connection was lost last, since the question; None where it never was. is_lost: whether it is now.
    """
    why, hint = ("", _MAY_COME) if lost_s is None else (f": {_loss(lost_s, is_lost)}", _KEEPS_NONE)
    return RelayError(
        "timeout",
        f"No reply came in time{why}.",
        f"{hint} Ask again only what may be done twice.",
        outcome="unknown",
        envelope_id=envelope_id,
    )


def _loss(lost_s: float, is_lost: bool) -> str:
    if not is_lost:
        return "the connection to the relay was lost meanwhile"
    return f"the connection to the relay was lost {lost_s:.1f} s ago, and is not back"
