import asyncio
import unittest
from unittest.mock import Mock

from agent_relay_connector import Connector, Delivery

from agent import approves, serve
from main import KEY_FILE, URL


class RuleTest(unittest.TestCase):
    def test_approves_sessions_with_all_but_mallory(self) -> None:
        self.assertTrue(approves(Mock(Delivery, sender="agent://alice")))
        self.assertFalse(approves(Mock(Delivery, sender="agent://mallory")))


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
