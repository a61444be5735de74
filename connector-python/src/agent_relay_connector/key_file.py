"""Key files, as `relay keygen` and `npm run keys` write them: one JSON object."""

from dataclasses import dataclass
from typing import Literal, cast

from .agent_id import is_agent_id
from .credentials.issuer_record import read_issuer_record
from .credentials.read_credential import Credential, read_credential
from .errors import RelayError
from .given import AgentKey, SealingKey
from .iso_time import epoch_ms_of
from .keys import signing_key
from .sealing.sealing_keys import SealingKeys
from .strict_json import members_of, parse_json, text_of
from .types import JsonObject

_HINT = "relay keygen makes one: {agent_id, key_id, alg, private_key or secret}, in base64url."


@dataclass(frozen=True)
class KeyFile:
    agent: str
    key: AgentKey
    # A token; None for a key that the relay lists.
    credential: str | None
    sealing_keys: tuple[SealingKey, ...]
    # The issuers that the file pins.
    trusted_issuers: tuple[JsonObject, ...]


def read_key_file(path: str) -> KeyFile:
    """Raises `invalid_key`, or `invalid_credential`, with what is wrong with the file."""
    try:
        with open(path, encoding="utf-8") as file:
            members = members_of(parse_json(file.read()))
    except OSError as problem:
        raise _invalid(f"The key file cannot be read ({problem.strerror}).") from None
    except ValueError:
        raise _invalid("The key file is not JSON.") from None
    agent = members.get("agent_id")
    if not isinstance(agent, str) or not is_agent_id(agent):
        raise _invalid("The key file has no valid agent_id, such as agent://alice.")
    return KeyFile(
        agent=agent,
        key=_key_in(members),
        credential=text_of(members.get("credential")),
        sealing_keys=_sealing_keys_in(members),
        trusted_issuers=_trusted_issuers_in(members),
    )


def _key_in(members: JsonObject) -> AgentKey:
    credential = _credential_in(members)
    key_id = credential.key_id if credential is not None else text_of(members.get("key_id"))
    if key_id is None:
        raise _invalid("The key file has neither a credential nor a key_id.")
    alg = members.get("alg")
    name: Literal["private_key", "secret"] = "secret" if alg == "hmac-sha256" else "private_key"
    key = cast(AgentKey, {"key_id": key_id, "alg": alg, name: members.get(name)})
    try:
        public_key = signing_key(key).public_key
    except RelayError:
        what = 'neither alg "ed25519" with a private_key nor alg "hmac-sha256" with a secret'
        raise _invalid(f"The key file has {what}.") from None
    if credential is not None and (credential.agent, credential.public_key) != (members.get("agent_id"), public_key):
        raise RelayError("invalid_credential", "The credential in the key file is of another agent, or another key.")
    return key


def _credential_in(members: JsonObject) -> Credential | None:
    """The relay judges its term and its issuer. That it is of this agent and this key shows here."""
    if "credential" not in members:
        return None
    credential = read_credential(members["credential"])
    if credential is None:
        raise RelayError("invalid_credential", "The credential in the key file is none.")
    return credential


def _sealing_keys_in(members: JsonObject) -> tuple[SealingKey, ...]:
    """One key, or several, the newest first; former ones with the time until which they are kept."""
    given = members.get("sealing_key", [])
    keys = tuple(map(_sealing_key, given if isinstance(given, list) else [given]))
    SealingKeys(keys)
    return keys


def _sealing_key(entry: object) -> SealingKey:
    if isinstance(entry, str):
        return SealingKey(entry)
    members = members_of(entry)
    private_key, until = text_of(members.get("private_key")), epoch_ms_of(members.get("until"))
    if private_key is None or until is None:
        raise _invalid("The key file has a sealing_key that is none.")
    return SealingKey(private_key, until)


def _trusted_issuers_in(members: JsonObject) -> tuple[JsonObject, ...]:
    given = members.get("trusted_issuers", [])
    try:
        # Of no list nothing is a record.
        for record in given if isinstance(given, list) else [None]:
            read_issuer_record(record)
    except RelayError:
        raise _invalid("The key file has trusted_issuers that are not records of issuers.") from None
    return tuple(given)


def _invalid(message: str) -> RelayError:
    return RelayError("invalid_key", message, _HINT)
