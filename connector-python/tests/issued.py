"""An issuer, and what it signs."""

import json
from typing import Any

from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.credentials.public_jwk import thumbprint_of
from agent_relay_connector.credentials.read_credential import Credential, read_credential
from agent_relay_connector.keys import SigningKey, signing_key

# RFC 8037, appendix A.
X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
D = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"
THUMBPRINT = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
NOW = 1_790_000_000
ISSUER_KEY: SigningKey = signing_key({"alg": "ed25519", "private_key": encode_base64url(bytes(range(32)))})
ACME: dict[str, Any] = {
    "issuer": "acme",
    "keys": [{"public_key": ISSUER_KEY.public_key}],
    "agents": ["agent://acme.*"],
}


def part(value: object) -> str:
    return encode_base64url((value if isinstance(value, str) else json.dumps(value)).encode())


def token(claims: object = None, header: object = None) -> str:
    assert ISSUER_KEY.public_key is not None
    kid = thumbprint_of(ISSUER_KEY.public_key, "Ed25519")
    head = header or {"alg": "Ed25519", "typ": "relay-credential+jwt", "kid": kid}
    text = f"{part(head)}.{part(claims or valid())}"
    return f"{text}.{encode_base64url(ISSUER_KEY.sign(text.encode()))}"


def valid(**changes: Any) -> dict[str, Any]:
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": X}
    claims = {"iss": "acme", "sub": "agent://acme.bob", "cnf": {"jwk": jwk}, "iat": NOW, "exp": NOW + 3600}
    return {name: value for name, value in {**claims, **changes}.items() if value is not None}


def credential(**changes: Any) -> Credential:
    read = read_credential(token(valid(**changes)))
    assert read is not None
    return read
