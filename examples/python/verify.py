#!/usr/bin/env python3
"""Checks what agents sign with credentials, offline and without the relay's word: no network, none of its code.

    apt-get install -y python3-cryptography          # 38 or later; Python 3.11 or later

    verify.py credential token.txt --issuer acme.json                          may this key speak for this agent?
    verify.py envelope delivered.json --issuer acme.json --credential token.txt              who signed this?
    verify.py open delivered.json --issuer acme.json --credential token.txt --key bob.json   what is sealed in it?
    verify.py receipt receipt.json --issuer acme.json --issuer globex.json                   what was decided?

--issuer names the public record of an issuer that you trust, which you have from the issuer itself: {"issuer",
"keys": [{"public_key"}], "agents", "revoked"}. Nothing in what is checked can name another one. delivered.json is a
deliver frame, or its envelope. The answer is one JSON object with "ok". Exit codes: 0 it holds, 1 it does not, 2 the
command line is invalid. A signature holds for ever: whether an envelope is new, or was delivered before, is not asked.
"""

import argparse
import base64
import codecs
import hashlib
import hmac
import json
import math
import re
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

try:
    from cryptography.exceptions import InvalidSignature, InvalidTag
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
except ImportError as missing:
    sys.exit(
        f"{missing.name} is missing for {sys.executable}. Install it there with pip, or on Debian "
        "apt-get install -y python3-cryptography, which is for /usr/bin/python3 alone."
    )

Json = dict[str, Any]
AGENT = re.compile(r"agent://[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?")
ISSUER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
SIGNING_ORDER = ("id", "type", "from", "to", "task_id", "payload", "ts", "key_id")
MAX_LIFE_S = 90 * 86_400
AHEAD_MS = 60_000  # how far iat and nbf may lie in the future
SKEW_MS = 300_000  # how far the ts of an envelope may lie off the relay's clock
PRIME = 2**255 - 19
# A key of small order: with it a signature holds for any text, and what two sides agree on is known to all.
SMALL_ORDER = {
    "Ed25519": (
        *(0, 1, PRIME - 1),
        0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
        0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7,
    ),
    "X25519": (
        *(0, 1, PRIME - 1),
        0x00B8495F16056286FDB1329CEB8D09DA6AC49FF1FAE35616AEB8413B7C7AEBE0,
        0x57119FD0DD4E22D8868E1C58C45C44045BEF839C55B1D0B1248C50A3BC959C5F,
    ),
}


class Refused(Exception):
    """What was checked does not hold. The text is the reason."""


def demand(holds: object, reason: str) -> None:
    if not holds:
        raise Refused(reason)


def file_bytes(path: str) -> bytes:
    """What a file holds, without a byte order mark of UTF-8. Raises Refused for UTF-16, as PowerShell writes it, OSError."""
    data = Path(path).read_bytes()
    # A byte order mark, or an ASCII character first, as in JSON.
    is_utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or data[:2].count(0) == 1
    demand(not is_utf_16, f"{path} is not UTF-8; write it as UTF-8, in PowerShell with Set-Content -Encoding utf8")
    return data.removeprefix(codecs.BOM_UTF8)


# JSON that has one reading only, and its canonical text (RFC 8785).


def parse(data: bytes) -> Any:
    """Every number is a double, as ECMAScript reads it. Raises Refused."""
    try:
        text = data.decode("utf-8")
        return json.loads(text, object_pairs_hook=members, parse_int=double, parse_float=double, parse_constant=double)
    except (ValueError, RecursionError):
        raise Refused("malformed: not JSON of one reading: UTF-8, no member twice, finite numbers") from None


def members(pairs: list[tuple[str, Any]]) -> Json:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a member stands there twice")
    return dict(pairs)


def double(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is not finite")
    return value


def jcs(value: Any) -> str:
    """RFC 8785: no white space, members sorted by UTF-16 code units, numbers as ECMAScript writes them."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{jcs(name)}:{jcs(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(jcs, value)) + "]"
    if value is None or isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if value == 0:
        return "0"
    shortest = Decimal(repr(float(value))).normalize()
    return f"{shortest:f}" if 1e-6 <= abs(value) < 1e21 else f"{shortest:e}"


def utf8_jcs(value: Any) -> bytes:
    """Raises Refused: half a surrogate pair has no UTF-8."""
    try:
        return jcs(value).encode()
    except (UnicodeEncodeError, RecursionError):
        raise Refused("malformed: it has no canonical text") from None


def canonical(envelope: Json, *more: str) -> bytes:
    """What an envelope's signature is made for: its members in their order, and then those named besides."""
    names = [name for name in (*SIGNING_ORDER, *more) if name in envelope]
    return b"{" + b",".join(f'"{name}":'.encode() + utf8_jcs(envelope[name]) for name in names) + b"}"


def integer(value: Any) -> int | None:
    """A whole number that a double holds exactly, from 0 on."""
    return int(value) if isinstance(value, float) and value.is_integer() and 0 <= value < 2**53 else None


# Keys: base64url without padding, in its one spelling.


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode(text: Any, length: int | None = None) -> bytes:
    demand(isinstance(text, str) and re.fullmatch(r"[A-Za-z0-9_-]*", text), "malformed: not base64url")
    demand(len(text) % 4 != 1, "malformed: not base64url")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    demand(encode(data) == text and length in (None, len(data)), "malformed: base64url of another length or spelling")
    return data


def public_key(x: Any, curve: str) -> bytes:
    data = decode(x, 32)
    number = int.from_bytes(data, "little")
    number &= 2**255 - 1 if curve == "Ed25519" else -1  # the top bit is the sign of the other coordinate
    demand(number < PRIME and number not in SMALL_ORDER[curve], "malformed: a key of small order, or not canonical")
    return data


def jwk_x(value: Any, curve: str) -> str:
    jwk = value.get("jwk") if isinstance(value, dict) else None
    is_public = isinstance(jwk, dict) and jwk.get("kty") == "OKP" and jwk.get("crv") == curve and "d" not in jwk
    demand(is_public, f"malformed: not a public {curve} key")
    public_key(jwk.get("x"), curve)
    return jwk["x"]


def thumbprint(x: str, curve: str) -> str:
    """RFC 7638."""
    return encode(hashlib.sha256(f'{{"crv":"{curve}","kty":"OKP","x":"{x}"}}'.encode()).digest())


def signed_by(x: str, signature: bytes, text: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public_key(x, "Ed25519")).verify(signature, text)
        return True
    except InvalidSignature:
        return False


# Issuers: who may speak for whom.


def read_issuer(path: str) -> Json:
    """The public record of an issuer. Raises Refused when it is not one."""
    record = parse(file_bytes(path))
    try:
        keys = {thumbprint(key["public_key"], "Ed25519"): (key["public_key"], *term(key)) for key in record["keys"]}
        revoked = [(entry["agent"], instant(entry["issued_before"])) for entry in record.get("revoked", [])]
        for x, *_ in keys.values():
            public_key(x, "Ed25519")
        agents = [str(pattern) for pattern in record["agents"]]
        return {"issuer": str(record["issuer"]), "keys": keys, "agents": agents, "revoked": revoked}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise Refused(f"{path} is not the public record of an issuer") from None


def term(key: Json) -> tuple[float, float]:
    begin, end = key.get("not_before"), key.get("expires_at")
    return (instant(begin) if begin else float("-inf"), instant(end) if end else float("inf"))


def instant(text: str) -> float:
    """Unix ms of a time in ISO 8601 with an offset."""
    time_of = datetime.fromisoformat(text)
    if time_of.tzinfo is None:
        raise ValueError("a time without an offset")
    return time_of.timestamp() * 1000


def read_issuers(paths: list[str]) -> list[Json]:
    """Raises Refused where two records are of one issuer, or two issuers hold one pattern: neither would count."""
    issuers = [read_issuer(path) for path in paths]
    claims = [name for record in issuers for name in (record["issuer"], *set(record["agents"]))]
    demand(len(set(claims)) == len(claims), "the records of the issuers contradict each other")
    return issuers


def holder(agent: str, issuers: list[Json]) -> Json | None:
    """The issuer that speaks for the agent: of all patterns that match, the most specific says so."""
    holders = {pattern: record for record in issuers for pattern in record["agents"]}
    dots = [place for place, character in enumerate(agent) if character == "."]
    patterns = [agent, *(f"{agent[:dot]}.*" for dot in reversed(dots)), "*"]
    return next((holders[pattern] for pattern in patterns if pattern in holders), None)


# Credentials: an issuer's word for an agent's key.


@dataclass(frozen=True)
class Credential:
    """A credential of the right form; times are Unix ms. Nothing else about it was checked."""

    signed: bytes
    signature: bytes
    issuer: str
    issuer_key: str
    agent: str
    key: str
    key_id: str
    issued: int
    begins: int
    ends: int
    audience: list[str] | None

    def revoked(self, record: Json) -> bool:
        return any(agent in (self.agent, "*") and self.issued < before for agent, before in record["revoked"])


def read_credential(token: Any) -> Credential:
    """Raises Refused: malformed."""
    demand(isinstance(token, str) and len(token) <= 2048 and token.count(".") == 2, "malformed: not a token")
    head, body, signature = token.split(".")
    header, claims = parse(decode(head)), parse(decode(body))
    demand(isinstance(header, dict) and set(header) == {"alg", "typ", "kid"}, "malformed: header not alg, typ and kid")
    demand(header["alg"] in ("Ed25519", "EdDSA"), "malformed: alg is not Ed25519")
    demand(header["typ"] == "relay-credential+jwt" and isinstance(header["kid"], str), "malformed: typ or kid")
    demand(isinstance(claims, dict), "malformed: claims are not an object")
    name, agent = claims.get("iss"), claims.get("sub")
    demand(isinstance(name, str) and ISSUER.fullmatch(name), "malformed: iss")
    demand(isinstance(agent, str) and AGENT.fullmatch(agent), "malformed: sub")
    key = jwk_x(claims.get("cnf"), "Ed25519")
    if "enc" in claims:
        jwk_x(claims["enc"], "X25519")
    issued, ends, begins = map(integer, (claims.get("iat"), claims.get("exp"), claims.get("nbf", 0.0)))
    demand(None not in (issued, ends, begins), "malformed: iat, exp and nbf are whole seconds")
    demand(0 < ends - issued <= MAX_LIFE_S, "malformed: it lasts longer than 90 days, or ends before it begins")
    aud = claims.get("aud", [])
    audience = [aud] if isinstance(aud, str) else aud
    demand(isinstance(audience, list) and all(isinstance(host, str) for host in audience), "malformed: aud")
    return Credential(
        signed=f"{head}.{body}".encode(),
        signature=decode(signature, 64),
        issuer=name,
        issuer_key=header["kid"],
        agent=agent,
        key=key,
        key_id="jkt-" + thumbprint(key, "Ed25519"),
        issued=issued * 1000,
        begins=begins * 1000,
        ends=ends * 1000,
        audience=audience if "aud" in claims else None,
    )


def judge(credential: Credential, issuers: list[Json], at: float, relay: str | None = None) -> Json:
    """The record of the issuer under which it holds at that time; revocation is asked apart. Raises Refused."""
    record = next((known for known in issuers if known["issuer"] == credential.issuer), None)
    demand(record is not None and credential.issuer_key in record["keys"], "unknown_issuer")
    x, begin, end = record["keys"][credential.issuer_key]
    demand(signed_by(x, credential.signature, credential.signed), "signature: of the credential")
    demand(max(credential.issued, credential.begins) <= at + AHEAD_MS and begin <= at, "not_yet_valid")
    demand(at < min(credential.ends, end), "expired")
    demand(holder(credential.agent, issuers) is record, "agent_not_allowed: its issuer does not speak for its agent")
    if relay is not None and credential.audience is not None:
        demand(relay in credential.audience, "wrong_relay")
    return record


# Envelopes.


def read_envelope(value: Any) -> Json:
    """A deliver frame or its envelope. Raises Refused when a member is missing, unknown or of another kind."""
    envelope = value["envelope"] if isinstance(value, dict) and value.get("frame") == "deliver" else value
    demand(isinstance(envelope, dict), "malformed: not an envelope")
    needed = {*SIGNING_ORDER, "sig"} - {"task_id"}
    demand(needed <= set(envelope) <= needed | {"task_id"}, "malformed: not the members of a delivered envelope")
    texts = all(isinstance(envelope[name], str) for name in envelope if name not in ("payload", "ts"))
    demand(texts and isinstance(envelope["payload"], dict), "malformed: a member of another kind")
    demand(integer(envelope["ts"]) is not None, "malformed: ts")
    demand(AGENT.fullmatch(envelope["from"]) and AGENT.fullmatch(envelope["to"]), "malformed: from or to")
    return envelope


def signer(envelope: Json, tokens: list[str], issuers: list[Json]) -> tuple[Credential, bool]:
    """The credential under which the envelope was signed, as it held at ts, and whether it is revoked by now."""
    read = [read_credential(token) for token in tokens]
    of_key = [credential for credential in read if credential.key_id == envelope["key_id"]]
    demand(of_key, "key_mismatch: no credential is for the key that key_id names")
    own = [credential for credential in of_key if credential.agent == envelope["from"]]
    demand(own, "agent_not_allowed: from is not the sub of the credential")
    text, signature = canonical(envelope), decode(envelope["sig"], 64)
    demand(signed_by(own[0].key, signature, text), "bad_signature: of the envelope")
    held, reasons = [], []
    for credential in own:
        try:
            held.append((credential, credential.revoked(judge(credential, issuers, envelope["ts"]))))
        except Refused as refused:
            reasons.append(str(refused))
    demand(held, ", ".join(reasons))
    return min(held, key=lambda pair: pair[1])


# Sealed payloads: HPKE base mode (RFC 9180) with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-128-GCM.

KEM, SUITE = b"KEM\x00\x20", b"HPKE\x00\x20\x00\x01\x00\x01"
INFO = b"agent-relay sealed payload v1"


def extract(suite: bytes, salt: bytes, label: bytes, data: bytes) -> bytes:
    return hmac.digest(salt, b"HPKE-v1" + suite + label + data, "sha256")


def expand(suite: bytes, secret: bytes, label: bytes, data: bytes, length: int) -> bytes:
    labelled = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + data
    return HKDFExpand(hashes.SHA256(), length, labelled).derive(secret)


def hpke_open(private: X25519PrivateKey, enc: bytes, info: bytes, aad: bytes, ct: bytes) -> bytes:
    """RFC 9180, sections 4.1, 5.1 and 5.2, for one message. Raises Refused."""
    try:
        agreed = private.exchange(X25519PublicKey.from_public_bytes(enc))
        mine = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        shared = expand(KEM, extract(KEM, b"", b"eae_prk", agreed), b"shared_secret", enc + mine, 32)
        context = b"\0" + extract(SUITE, b"", b"psk_id_hash", b"") + extract(SUITE, b"", b"info_hash", info)
        secret = extract(SUITE, shared, b"secret", b"")
        key, nonce = (expand(SUITE, secret, label, context, n) for label, n in ((b"key", 16), (b"base_nonce", 12)))
        return AESGCM(key).decrypt(nonce, ct, aad)
    except (InvalidTag, ValueError):
        raise Refused("unopenable: it was sealed to another key, or changed") from None


def open_sealed(envelope: Json, sealing_key: str) -> Json:
    """The payload that is sealed in an envelope, whose signature the caller has checked. Raises Refused."""
    sealed = envelope["payload"].get("sealed")
    demand(isinstance(sealed, dict) and len(envelope["payload"]) == 1, "unopenable: nothing is sealed in it")
    demand(set(sealed) == {"v", "kid", "enc", "ct"} and integer(sealed["v"]) == 1, "unopenable: not of version 1")
    demand(envelope["type"].startswith("message."), "unopenable: only messages are sealed")
    private = X25519PrivateKey.from_private_bytes(decode(sealing_key, 32))
    mine = encode(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
    demand(sealed["kid"] == thumbprint(mine, "X25519"), "unopenable: it is sealed to another key")
    bound = {name: envelope[name] for name in ("from", "id", "task_id", "to", "type") if name in envelope}
    aad = utf8_jcs({**bound, "kid": sealed["kid"], "v": 1})
    text = hpke_open(private, decode(sealed["enc"], 32), INFO, aad, decode(sealed["ct"]))
    demand(len(text) <= 23_000, "unopenable: the payload is too long")
    payload = parse(text)
    demand(isinstance(payload, dict) and members_in(payload) <= 2_000, "unopenable: not a payload")
    utf8_jcs(payload)
    return payload


def members_in(value: Any, levels: int = 32) -> int:
    """Members and elements at all depths. Raises Refused for what no payload has."""
    if not isinstance(value, dict | list):
        return 0
    demand(levels > 0, "unopenable: the payload is nested too deep")
    demand(isinstance(value, list) or "__proto__" not in value, "unopenable: the payload has a member __proto__")
    parts = value.values() if isinstance(value, dict) else value
    return len(value) + sum(members_in(part, levels - 1) for part in parts)


# Receipts: a session that was requested and decided.


def session_of(text: bytes) -> str:
    """The last 24 digits of the id that a relay gives to the session of a request: Crockford base32 of its digest."""
    bits = int.from_bytes(hashlib.sha256(text).digest()[:15], "big")
    return "".join("0123456789abcdefghjkmnpqrstvwxyz"[bits >> shift & 31] for shift in range(115, -1, -5))


def verify_receipt(receipt: Any, issuers: list[Json]) -> Json:
    """The decision. Raises Refused."""
    is_one = isinstance(receipt, dict) and set(receipt) == {"version", "request", "decision", "credentials"}
    demand(is_one and integer(receipt["version"]) == 1, "malformed: not a receipt, version 1")
    demand(isinstance(receipt["credentials"], list), "malformed: credentials")
    request, decision = read_envelope(receipt["request"]), read_envelope(receipt["decision"])
    demand(request["type"] == "session.request", "malformed: request is not a session.request")
    demand(decision["type"] in ("session.approve", "session.reject"), "malformed: decision is no decision")
    signers = [signer(envelope, receipt["credentials"], issuers) for envelope in (request, decision)]
    parties = decision["from"] == request["to"] != request["from"] == decision["to"]
    demand(parties, "other_parties: the decision is not by whom the request is to, to whom it is from")
    digest = encode(hashlib.sha256(canonical(request, "sig")).digest())
    demand(decision["payload"].get("request_sha256") == digest, "other_request: request_sha256 is of another request")
    session = decision["payload"].get("session_id")
    own = isinstance(session, str) and session[:4] == "ses_" and session[6:] == session_of(canonical(request, "sig"))
    demand(own, "other_session: session_id is not that of the request")
    ttl = integer(request["payload"].get("ttl_minutes", 60.0)) or 0
    demand(5 <= ttl <= 1440, "malformed: ttl_minutes")
    begin, end = request["ts"] - SKEW_MS, request["ts"] + ttl * 60_000
    demand(begin <= decision["ts"] <= end, "not_in_time: the decision's ts is not within the ttl of the request")
    return {
        "decision": decision["type"],
        "from": request["from"],
        "by": decision["from"],
        "ts": decision["ts"],
        "issuers": [credential.issuer for credential, _ in signers],
        "revoked_by_now": [credential.key_id for credential, is_revoked in signers if is_revoked],
    }


# The command line.


def check(options: argparse.Namespace) -> Json:
    """What the command found. Raises Refused, OSError."""
    issuers = read_issuers(options.issuer)
    data = file_bytes(options.file)
    if options.command == "credential":
        credential = read_credential(data.decode("ascii", "replace").strip())
        at = time.time() * 1000 if options.at is None else options.at
        demand(not credential.revoked(judge(credential, issuers, at, options.relay)), "revoked")
        found = {"agent": credential.agent, "key_id": credential.key_id, "issuer": credential.issuer}
        return {**found, "expires_at": credential.ends}
    if options.command == "receipt":
        return verify_receipt(parse(data), issuers)
    envelope = read_envelope(parse(data))
    tokens = [file_bytes(path).decode("ascii", "replace").strip() for path in options.credential]
    credential, is_revoked = signer(envelope, tokens, issuers)
    demand(not is_revoked, "revoked")
    found = {"verified": "agent", "issuer": credential.issuer, "from": envelope["from"], "ts": envelope["ts"]}
    if options.command == "envelope":
        return {**found, "payload": envelope["payload"]}
    key = parse(file_bytes(options.key))
    demand(isinstance(key, dict) and "sealing_key" in key, f"{options.key} has no sealing_key")
    return {**found, "sealed": True, "payload": open_sealed(envelope, key["sealing_key"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("credential", "envelope", "open", "receipt"):
        command = commands.add_parser(name)
        command.add_argument("file")
        command.add_argument("--issuer", action="append", required=True, help="its public record; may be repeated")
        if name == "credential":
            command.add_argument("--at", type=instant, help="time in ISO 8601 at which it is judged; by default now")
            command.add_argument("--relay", help="host of the relay, which aud must name where there is one")
        if name in ("envelope", "open"):
            command.add_argument("--credential", action="append", required=True, help="token; may be repeated")
        if name == "open":
            command.add_argument("--key", required=True, help="key file of the recipient")
    try:
        print(jcs({"ok": True, **check(parser.parse_args())}))
    except (Refused, OSError) as error:
        print(jcs({"ok": False, "reason": str(error)}))
        sys.exit(1)


if __name__ == "__main__":
    main()
