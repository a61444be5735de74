import asyncio
import unittest
from unittest.mock import Mock

from agent_relay_connector import Connector, Delivery

from agent import answer, approves, serve
from main import KEY_FILE, URL


class RuleTest(unittest.TestCase):
    def test_approves_sessions_with_those_whom_somebody_that_it_trusts_vouches_for(self) -> None:
        self.assertTrue(approves(Mock(Delivery, verified="agent")))
        self.assertFalse(approves(Mock(Delivery, verified="unverified")))

    def test_says_what_it_understands_to_a_message_without_a_text(self) -> None:
        self.assertNotIn("message", answer(Mock(Delivery, payload={"temperature": 21})))


class AgentTest(unittest.IsolatedAsyncioTestCase):
    """Over the relay of main.py, which has to know the key; the agent must not be online elsewhere."""

    async def test_answers_itself(self) -> None:
        agent = Connector(URL, key_file=KEY_FILE)
        self.addAsyncCleanup(agent.close)
        await agent.start(timeout=15)
        serving = asyncio.create_task(serve(agent))
        reply = await agent.ask(agent.agent, {"message": "Hi."}, timeout=10)
        self.assertEqual(reply.payload, {"message": f"Hello, {agent.agent}. You said: Hi."})
        await agent.close()
        await serving
