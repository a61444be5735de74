"""What a connector is made of."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from .accept_from import is_accept_from
from .agent_id import agent_id_problem
from .errors import RelayError
from .given import AgentKey, CredentialSource, CredentialWithKeys, SealingKey, Trust, TrustedKey
from .key_file import read_key_file
from .strict_json import members_of
from .types import JsonObject


@dataclass(frozen=True)
class ConnectorOptions:
    """See Connector."""

    url: str
    http_url: str | None
    agent: str
    key: AgentKey
    proxy: bool
    take_over: bool
    start_timeout_s: float | None
    credential: CredentialSource | None
    sealing_keys: Sequence[str | SealingKey]
    trust: Trust
    accept_from: Sequence[str] | None
    require_verified: bool
    max_delivery_age_s: float
    seal: Literal["required"] | None
    max_pending: int
    max_inbox: int

    @property
    def environment(self) -> Mapping[str, str]:
        """Names the proxies; read at each attempt."""
        if self.proxy:
            return os.environ
        return {}


@dataclass(frozen=True)
class Identity:
    """Who a connector acts as."""

    agent: str
    key: AgentKey
    credential: CredentialSource | None
    sealing_keys: Sequence[str | SealingKey]
    trusted_issuers: Sequence[JsonObject]
    # That the key file has.
    accept_from: Sequence[str] | None


def identity_of_file(path: str | os.PathLike[str]) -> Identity:
    """Of a key file, which is read again for each renewal: its keys may be others by then.

    Raises `invalid_key` or `invalid_credential`.
    """
    file = read_key_file(path)

    async def present() -> CredentialWithKeys:
        now = await asyncio.to_thread(read_key_file, path)
        if now.credential is None:
            raise RelayError("invalid_credential", "The key file has no credential any more.")
        return CredentialWithKeys(now.credential, now.key, now.sealing_keys)

    source = None if file.credential is None else present
    return Identity(file.agent, file.key, source, file.sealing_keys, file.trusted_issuers, file.accept_from)


def identity_of(
    key_file: str | os.PathLike[str] | None,
    agent: str | None,
    key: AgentKey | None,
    credential: CredentialSource | None,
    sealing_keys: Sequence[str | SealingKey],
) -> Identity:
    """Raises ValueError, `invalid_key` or `invalid_credential`."""
    if key_file is not None:
        return identity_of_file(key_file)
    if agent is not None and key is not None:
        return Identity(agent, key, credential, sealing_keys, (), None)
    raise ValueError("give key_file, or agent and key")


def trust_of(trust: "Trust | Mapping[str, Sequence[TrustedKey]] | None", pinned: Sequence[JsonObject]) -> Trust:
    """In its one form. A record that is given counts in place of one of the same name that the key file pins."""
    given = trust if isinstance(trust, Trust) else Trust(keys=trust or {})
    # What is no record has no name, and is refused where records are read.
    issuers = {str(members_of(record).get("issuer")): record for record in (*pinned, *given.issuers)}
    return Trust(given.keys, tuple(issuers.values()), given.gateways)


def check_options(options: ConnectorOptions) -> None:
    """Raises ValueError for options that can never work."""
    if (problem := agent_id_problem(options.agent)) is not None:
        raise ValueError(f"agent {problem}")
    if options.accept_from is not None and not is_accept_from(options.accept_from):
        raise ValueError("accept_from must be a list of at most 50 agent ids, agent://<prefix>.*, or issuer:<name>")
    if not isinstance(options.proxy, bool):
        raise ValueError("proxy must be True or False: the environment names the proxy, as HTTPS_PROXY")
    if "key_id" not in options.key and options.credential is None:
        raise ValueError("key needs a key_id, or a credential")
    if options.start_timeout_s is not None and not options.start_timeout_s > 0:
        raise ValueError("start_timeout must be more than 0")
    # Of nan neither is true.
    if not options.max_delivery_age_s >= 0:
        raise ValueError("max_delivery_age must be 0 or more")
    if options.seal == "required" and options.key.get("alg") != "ed25519":
        raise ValueError("seal needs an Ed25519 key")
