"""Addresses of a relay. The TypeScript connector and `npm run keys` are held to the same addresses.json."""

import json
import traceback
import unittest
from pathlib import Path
from typing import Any

from agent_relay_connector.address import relay_address

ADDRESSES: dict[str, Any] = json.loads((Path(__file__).parent / "addresses.json").read_text("utf-8"))


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
        for url, host in ADDRESSES["hosts"].items():
            self.assertEqual(relay_address(url).host, host, url)

    def test_has_the_path_that_node_reads_in_it(self) -> None:
        for url, websocket in ADDRESSES["paths"].items():
            self.assertEqual(relay_address(url).websocket, websocket, url)

    def test_that_is_refused_says_what_to_write_and_not_what_was_given(self) -> None:
        for told, urls in ADDRESSES["refused"].items():
            for url in urls:
                self.assertEqual(self.refusal(url), f"url: {told}", url)

    def test_with_a_password_is_in_no_part_of_the_error(self) -> None:
        users = ("user:secret", "user:/secret", "user:1/secret", "user:1?secret", "user:1#secret", "user:\\secret")
        urls = [f"http://{user}@relay.example" for user in users]
        for url in (*urls, "http://relay.example?x=secret", "http://secret@℀.example"):
            with self.assertRaises(ValueError) as refused:
                relay_address("http://relay.example", url)
            told = "".join(traceback.format_exception(refused.exception))
            self.assertIn("http_url: ", told)
            self.assertNotIn("secret", told)
