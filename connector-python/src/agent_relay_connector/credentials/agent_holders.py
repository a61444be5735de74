"""Whose an agent is."""

from collections.abc import Iterable

from .contract import ANY_AGENT


class AgentHolders:
    """Of all patterns of the issuers, the most specific that matches an id says which issuer has the agent."""

    def __init__(self, claims: Iterable[tuple[str, str]]) -> None:
        """claims: (issuer, pattern)."""
        listed = list(claims)
        # Issuer by pattern.
        self._holders = {pattern: issuer for issuer, pattern in listed}
        # False when one pattern stands under two issuers.
        self.is_unambiguous = all(self._holders[pattern] == issuer for issuer, pattern in listed)

    def holder_of(self, agent: str) -> str | None:
        return self.named_holder_of(agent) or self._holders.get(ANY_AGENT)

    def named_holder_of(self, agent: str) -> str | None:
        """The issuer that has the agent by its id or its name space."""
        holder = self._holders.get(agent)
        space = agent
        while holder is None and "." in space:
            space = space.rpartition(".")[0]
            holder = self._holders.get(f"{space}.*")
        return holder
