"""Key files, as `relay keygen` and `npm run keys` write them: one JSON object."""

from dataclasses import dataclass
from typing import Any, Literal, cast

from .agent_id import is_agent_id
from .credentials.read_credential import Credential, read_credential
from .errors import RelayError
from .keys import signing_key
from .strict_json import members_of, parse_json, text_of
from .types import AgentKey, JsonObject

_HINT = "relay keygen makes one: {agent_id, key_id, alg, private_key or secret}, in base64url."


@dataclass(frozen=True)
class KeyFile:
    agent: str
    key: AgentKey
    # A token; None for a key that the relay lists.
    credential: str | None
    # X25519, private halves, base64url.
    sealing_keys: tuple[str, ...]
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
        trusted_issuers=tuple(members.get("trusted_issuers") or ()),
    )


def renewed_credential(path: str, agent: str, key_id: str | None) -> str:
    """The credential that the file has by now. A connector keeps the key that it began with."""
    file = read_key_file(path)
    if file.credential is None or file.agent != agent or file.key.get("key_id") != key_id:
        raise RelayError(
            "invalid_credential",
            "The key file has another key by now.",
            "Start the agent again: it goes on with the key that it began with.",
        )
    return file.credential


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


def _sealing_keys_in(members: JsonObject) -> tuple[str, ...]:
    """One key, or several, the newest first; former ones with the time until which they are kept."""
    given: Any = members.get("sealing_key", [])
    entries = given if isinstance(given, list) else [given]
    return tuple(entry.get("private_key") if isinstance(entry, dict) else entry for entry in entries)


def _invalid(message: str) -> RelayError:
    return RelayError("invalid_key", message, _HINT)
