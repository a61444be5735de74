"""Listeners that fail, and what nobody listens to."""

import asyncio
import logging
import unittest

from agent_relay_connector import RelayError
from agent_relay_connector.emitter import Emitter


class AnEmitter(unittest.TestCase):
    def test_logs_what_a_listener_raised_that_nobody_listens_for_with_its_traceback(self) -> None:
        emitter = Emitter()

        def listener(_: object) -> None:
            raise LookupError("mine")

        emitter.on("delivery", listener)
        with self.assertLogs("agent_relay_connector") as logs:
            emitter.emit("delivery", None)
        self.assertIn("LookupError: mine", logs.output[0])

    def test_calls_every_listener_though_one_raises_whatever_it_is(self) -> None:
        for raised in (LookupError(), asyncio.CancelledError()):
            emitter = Emitter()
            heard: list[object] = []

            def listener(_: object, raised: BaseException = raised) -> None:
                raise raised

            emitter.on("delivery", listener)
            emitter.on("delivery", heard.append)
            emitter.on("error", lambda error: heard.append(error.__cause__))
            emitter.emit("delivery", 1)
            self.assertEqual(heard, [raised, 1])

    def test_logs_a_cause_once_until_the_agent_was_registered_and_no_more_than_a_hundred(self) -> None:
        emitter = Emitter()

        def logged(*messages: str) -> int:
            with self.assertLogs("agent_relay_connector") as logs:
                logging.getLogger("agent_relay_connector").warning("the first")
                for message in messages:
                    emitter.emit("error", RelayError("unreachable", message))
            return len(logs.output) - 1

        self.assertEqual(logged("connection refused", "unknown host", "connection refused"), 2)
        emitter.log_anew()
        self.assertEqual(logged("connection refused"), 1)
        self.assertEqual(logged(*map(str, range(200))), 99)

    def test_logs_no_cause_of_anything_else(self) -> None:
        error = RelayError("unreachable")
        error.__cause__ = LookupError("what another one sent")
        with self.assertLogs("agent_relay_connector") as logs:
            Emitter().emit("error", error)
        self.assertNotIn("LookupError", logs.output[0])
