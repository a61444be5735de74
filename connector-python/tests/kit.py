"""A key, time that tests move, what work costs, and a relay that says what a test wants it to say."""

import asyncio
import json
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any
from unittest.mock import patch

import websockets
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from websockets.exceptions import ConnectionClosed

from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.given import AgentKey

# Exported in a way that type checkers do not see.
serve: Any = getattr(websockets, "serve")
SEED = encode_base64url(bytes(range(32)))
KEY: AgentKey = {"key_id": "a-1", "alg": "ed25519", "private_key": SEED}
# Nothing listens there.
NOWHERE = "http://127.0.0.1:1"
# Ends a test that hangs. Nothing promises this time.
GENEROUS_S = 50.0


def later(seconds: float) -> AbstractContextManager[Any]:
    """It is so much later for the running event loop: what was to come by then comes now."""
    loop = asyncio.get_running_loop()
    now = loop.time
    return patch.multiple(loop, time=lambda: now() + seconds, slow_callback_duration=seconds + 1)


def address_of(server: Any, scheme: str = "ws") -> str:
    """Of a server of asyncio or of `serve`."""
    return f"{scheme}://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"


def tls_of(*hosts: str, folder: str) -> ssl.SSLContext:
    """Of a server, with a certificate that is its own authority, `certificate.pem` in the folder."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, hosts[0])])
    now = datetime.now(timezone.utc)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
    certificate = builder.add_extension(names, False).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    Path(folder, "certificate.pem").write_bytes(certificate.public_bytes(pem))
    plain = serialization.NoEncryption()
    Path(folder, "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/certificate.pem", f"{folder}/key.pem")
    return context


@contextmanager
def counted_lines(*modules: ModuleType) -> Iterator[list[int]]:
    """Its first item is how many lines of these modules have run since: each item that a loop goes over is at least one."""
    files = {module.__file__ for module in modules}
    count = [0]

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        count[0] += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)


class ScriptedRelay:
    """Greets each connection, and accepts what comes in unless a test has it say something else."""

    def __init__(self) -> None:
        self.hello: dict[str, Any] = {}
        # What it says to an envelope; nothing, where that is None.
        self.answer: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda _: {"frame": "ack"}
        self.connections: list[Any] = []
        self.received: list[dict[str, Any]] = []
        self._news = asyncio.Condition()

    async def start(self) -> None:
        self._server = await serve(self._serve, "127.0.0.1", 0)
        self.url = address_of(self._server, "http")

    async def stop(self) -> None:
        self._server.close()
        await self._server.wait_closed()

    def of(self, kind: str) -> list[dict[str, Any]]:
        """What came in of a type."""
        return [envelope for envelope in self.received if envelope["type"] == kind]

    async def until(self, is_so: Callable[[], bool]) -> None:
        """is_so: of what came in."""
        async with self._news:
            await asyncio.wait_for(self._news.wait_for(is_so), GENEROUS_S)

    async def tell(self, **frame: Any) -> None:
        await self.connections[-1].send(json.dumps(frame))

    def cut(self) -> None:
        """Ends the newest connection without a word."""
        self.connections[-1].transport.abort()

    async def _serve(self, connection: Any, *_: str) -> None:
        self.connections.append(connection)
        await connection.send(json.dumps({"frame": "hello", **self.hello}))
        with suppress(ConnectionClosed):
            async for text in connection:
                envelope = json.loads(text)
                self.received.append(envelope)
                frame = self.answer(envelope)
                if frame is not None:
                    members = {"envelope_id": envelope["id"], "type": envelope["type"], "accepted": True}
                    await connection.send(json.dumps({**members, **frame}))
                async with self._news:
                    self._news.notify_all()
