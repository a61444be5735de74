"""Waits with a random part. Seconds."""

import math
import random

from .limits import BACKOFF_CAP_S, BACKOFF_FIRST_S


def backoff_s(attempt: int, cap_s: float = BACKOFF_CAP_S) -> float:
    """Full jitter: a random wait up to a bound that doubles with each attempt.

    Connections that were lost together then do not come back together. attempt: 0 for the first.
    """
    return random.uniform(0, min(cap_s, BACKOFF_FIRST_S * 2.0 ** min(attempt, 32)))


def growing_s(attempt: int, cap_s: float) -> float:
    """A wait that doubles with each attempt up to its bound, plus a random part of at most half as much."""
    return jittered_s(min(cap_s, BACKOFF_FIRST_S * 2.0 ** min(attempt, 32)))


def jittered_s(wait_s: float, cap_s: float = math.inf) -> float:
    """The wait that was asked for, plus a random part of at most half as much, up to a bound."""
    return min(wait_s * random.uniform(1, 1.5), cap_s)
