"""Addresses of a relay. The TypeScript connector is held to the same hosts.json."""

import json
import unittest
from pathlib import Path
from typing import Any

from agent_relay_connector.address import relay_address

HOSTS: dict[str, Any] = json.loads((Path(__file__).parent / "hosts.json").read_text("utf-8"))


class AnAddress(unittest.TestCase):
    def refusal(self, url: str) -> str:
        with self.assertRaises(ValueError, msg=url) as refused:
            relay_address(url)
        return str(refused.exception)

    def test_of_a_relay_or_of_its_websocket_leads_to_both(self) -> None:
        for url, websocket, base, host in (
            ("http://127.0.0.1:8080", "ws://127.0.0.1:8080/ws", "http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("https://Relay.example:443/x/", "wss://relay.example/x/ws", "https://relay.example/x", "relay.example"),
            ("wss://relay.example", "wss://relay.example/ws", "https://relay.example", "relay.example"),
            ("ws://[::1]:81/relay", "ws://[::1]:81/relay", "http://[::1]:81", "[::1]:81"),
            ("ws://relay/agents/live", "ws://relay/agents/live", "http://relay", "relay"),
            ("ws://relay/prefix/ws", "ws://relay/prefix/ws", "http://relay/prefix", "relay"),
        ):
            address = relay_address(url)
            self.assertEqual((address.websocket, address.base, address.host), (websocket, base, host))
        elsewhere = relay_address("ws://relay:8082/ws", "https://relay/x/")
        self.assertEqual((elsewhere.websocket, elsewhere.base), ("ws://relay:8082/ws", "https://relay/x"))

    def test_has_the_host_that_the_relay_reads_in_it_however_it_is_spelled(self) -> None:
        for url, host in HOSTS["same"].items():
            self.assertEqual(relay_address(url).host, host, url)

    def test_of_which_another_host_could_be_read_is_refused(self) -> None:
        for url in (*HOSTS["refusedByPython"], *HOSTS["refusedByBoth"]):
            self.refusal(url)

    def test_that_is_refused_says_what_to_write(self) -> None:
        for url, told in (
            ("https://bücher.example", "xn--bcher-kva.example for bücher.example"),
            ("http://127.1", "127.0.0.1 or [::1]"),
            ("http://[::x]", "127.0.0.1 or [::1]"),
            ("http://%72elay.example", "a name such as relay.example"),
            ("http://relay.example:65536", "a number up to 65535"),
            ("http:/relay.example", "http(s):// or ws(s)://"),
        ):
            self.assertIn(told, self.refusal(url))
