import asyncio
import unittest
from unittest.mock import Mock

from agent_relay_connector import Connector, Delivery

from agent import approves, serve
from main import KEY_FILE, URL


class RuleTest(unittest.TestCase):
    def test_approves_a_session_of_an_hour_and_no_longer_one(self) -> None:
        self.assertTrue(approves(Mock(Delivery, payload={"purpose": "to talk", "ttl_minutes": 60})))
        self.assertFalse(approves(Mock(Delivery, payload={"purpose": "to talk", "ttl_minutes": 61})))


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
