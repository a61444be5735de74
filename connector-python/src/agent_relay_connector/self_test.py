"""Has the relay judge an envelope, without any effect there. Source: docs/protocol.md#self-test."""

from .errors import RelayError
from .http import HttpClient
from .limits import SELF_TEST_MAX_BYTES, SELF_TEST_TIMEOUT_S
from .refusal import problem_in

_OF_KEY = frozenset({"unknown_key", "bad_signature", "key_not_allowed", "invalid_credential", "wrong_relay"})


class SelfTest:
    def __init__(self, base: str, http: HttpClient) -> None:
        """base: address of the relay, without a slash at its end."""
        self._url = f"{base}/api/self-test"
        self._http = http

    async def key_refusal(self, envelope: str) -> RelayError | None:
        """Why the relay does not take the key that the envelope is signed with.

        None where it does, and where nobody says it. Raises nothing.
        """
        try:
            answer = await self._http.post(self._url, envelope, SELF_TEST_TIMEOUT_S, SELF_TEST_MAX_BYTES)
            said = problem_in(answer.members)
        except Exception:
            # Whatever it failed with, its caller has an error to tell already.
            return None
        return said if said.code in _OF_KEY else None
