"""Key files, as `relay keygen` and `npm run keys` write them: one JSON object."""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from .accept_from import is_accept_from
from .agent_id import is_agent_id
from .credentials.issuer_record import read_issuer_record
from .credentials.read_credential import Credential, read_credential
from .errors import RelayError
from .file_text import decode_text
from .given import AgentKey, SealingKey
from .iso_time import epoch_ms_of
from .keys import signing_key
from .sealing.sealing_keys import SealingKeys
from .strict_json import members_of, parse_json, text_of
from .types import JsonObject

_HINT = "relay keygen makes one: {agent_id, key_id, alg, private_key or secret}, in base64url."
_UTF_8 = "Write it as UTF-8, in PowerShell with Set-Content -Encoding utf8."
# A file that this process was given open, such as the output of `<(command)`.
_GIVEN = re.compile(r"/(?:dev/(?:stdin|fd/[0-9]+)|proc/self/fd/[0-9]+)")


@dataclass(frozen=True)
class KeyFile:
    agent: str
    key: AgentKey
    # A token; None for a key that the relay lists.
    credential: str | None
    sealing_keys: tuple[SealingKey, ...]
    # The issuers that the file pins.
    trusted_issuers: tuple[JsonObject, ...]
    # None where everyone is accepted.
    accept_from: tuple[str, ...] | None


def read_key_file(path: str | os.PathLike[str]) -> KeyFile:
    """Raises `invalid_key`, or `invalid_credential`, with what is wrong with the file."""
    origin = f"The key file {path}"
    try:
        # Nobody may ever write to a named pipe, and nothing ends a read of one.
        if not _GIVEN.fullmatch(os.fspath(path)) and not stat.S_ISREG(Path(path).stat().st_mode):
            raise _invalid(f"{origin} is no regular file.")
        text = decode_text(Path(path).read_bytes())
        if text is None:
            raise RelayError("invalid_key", f"{origin} is not UTF-8.", _UTF_8)
        members = members_of(parse_json(text))
    except OSError as problem:
        raise _invalid(f"{origin} cannot be read ({problem.strerror}).") from None
    except ValueError:
        raise _invalid(f"{origin} is not JSON.") from None
    agent = members.get("agent_id")
    if not isinstance(agent, str) or not is_agent_id(agent):
        raise _invalid(f"{origin} has no valid agent_id, such as agent://alice.")
    return KeyFile(
        agent=agent,
        key=_key_in(members, origin),
        credential=text_of(members.get("credential")),
        sealing_keys=_sealing_keys_in(members, origin),
        trusted_issuers=_trusted_issuers_in(members, origin),
        accept_from=_accept_from_in(members, origin),
    )


def _key_in(members: JsonObject, origin: str) -> AgentKey:
    credential = _credential_in(members, origin)
    key_id = credential.key_id if credential is not None else text_of(members.get("key_id"))
    if key_id is None:
        raise _invalid(f"{origin} has neither a credential nor a key_id.")
    alg = members.get("alg")
    name: Literal["private_key", "secret"] = "secret" if alg == "hmac-sha256" else "private_key"
    key = cast(AgentKey, {"key_id": key_id, "alg": alg, name: members.get(name)})
    try:
        public_key = signing_key(key).public_key
    except RelayError:
        what = 'neither alg "ed25519" with a private_key nor alg "hmac-sha256" with a secret'
        raise _invalid(f"{origin} has {what}.") from None
    if credential is None:
        return key
    if credential.agent != members.get("agent_id"):
        raise RelayError("invalid_credential", f"{origin} has a credential for {credential.agent}.")
    if credential.public_key != public_key:
        raise RelayError("invalid_credential", f"{origin} has a credential for another key.")
    return key


def _credential_in(members: JsonObject, origin: str) -> Credential | None:
    """The relay judges its term and its issuer. That it is of this agent and this key shows here."""
    if "credential" not in members:
        return None
    credential = read_credential(members["credential"])
    if credential is None:
        raise RelayError("invalid_credential", f"{origin} has a credential that is none.")
    return credential


def _sealing_keys_in(members: JsonObject, origin: str) -> tuple[SealingKey, ...]:
    """One key, or several, the newest first; former ones with the time until which they are kept."""
    given = members.get("sealing_key", [])
    entries = given if isinstance(given, list) else [given]
    keys = tuple(_sealing_key(entry, origin) for entry in entries)
    SealingKeys(keys)
    return keys


def _sealing_key(entry: object, origin: str) -> SealingKey:
    if isinstance(entry, str):
        return SealingKey(entry)
    members = members_of(entry)
    private_key, until = text_of(members.get("private_key")), epoch_ms_of(members.get("until"))
    if private_key is None or until is None:
        raise _invalid(f"{origin} has a sealing_key that is none.")
    return SealingKey(private_key, until)


def _trusted_issuers_in(members: JsonObject, origin: str) -> tuple[JsonObject, ...]:
    given = members.get("trusted_issuers", [])
    try:
        # Of no list nothing is a record.
        for record in given if isinstance(given, list) else [None]:
            read_issuer_record(record)
    except RelayError:
        raise _invalid(f"{origin} has trusted_issuers that are not records of issuers.") from None
    return tuple(given)


def _accept_from_in(members: JsonObject, origin: str) -> tuple[str, ...] | None:
    given = members.get("accept_from")
    if given is None and "accept_from" not in members:
        return None
    if not is_accept_from(given):
        what = "no list of at most 50 agent ids, agent://<prefix>.*, or issuer:<name>"
        raise _invalid(f"{origin} has an accept_from that is {what}.")
    return tuple(cast(list[str], given))


def _invalid(message: str) -> RelayError:
    return RelayError("invalid_key", message, _HINT)
