import logging

from agent_relay_connector import Connector, Delivery


def answer(message: Delivery) -> dict[str, object]:
    """What the agent answers to a message: change it."""
    return {"message": f"Hello, {message.sender}. You said: {message.payload.get('message')}"}


def approves(request: Delivery) -> bool:
    """Whether the agent takes part in a session, here with all but a few: change it."""
    return request.sender not in ["agent://mallory"]


async def serve(agent: Connector) -> None:
    """Answers what comes in, until the connector ends. Raises what ended it, unless that was `close`."""
    async for delivery in agent:
        try:
            await respond(agent, delivery)
        except Exception:  # Whatever goes wrong with one delivery is told with its cause, and the next is served.
            logging.exception("%s of %s got no answer.", delivery.type, delivery.sender)


async def respond(agent: Connector, delivery: Delivery) -> None:
    if delivery.type == "message.send":
        await delivery.reply(answer(delivery))
    if delivery.type == "session.request" and delivery.session_id is not None:
        if approves(delivery):
            await agent.approve(delivery.session_id, delivery.sender)
        else:
            await agent.reject(delivery.session_id, delivery.sender)
