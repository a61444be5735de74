import logging

from agent_relay_connector import Connector, Delivery, RelayError


def answer(message: Delivery) -> dict[str, object]:
    """What the agent answers to a message: change it."""
    text = message.payload.get("message")
    if not isinstance(text, str):
        return {"error": 'Send a text, such as {"message":"Hi."}.'}
    return {"message": f"Hello, {message.sender}. You said: {text}"}


def approves(request: Delivery) -> bool:
    """Whether it takes part in a session, here with those whom an issuer or a key that you trust vouches for: change it."""
    return request.verified == "agent"


async def serve(agent: Connector) -> None:
    """Answers what comes in, until the connector ends. Raises what ended it, unless that was `close`."""
    async for delivery in agent:
        try:
            await respond(agent, delivery)
        except RelayError as error:
            logging.error("%s of %s got no answer: %s", delivery.type, delivery.sender, error)
        except Exception:  # Whatever goes wrong with one delivery is told with its cause, and the next is served.
            logging.exception("%s of %s got no answer.", delivery.type, delivery.sender)


async def respond(agent: Connector, delivery: Delivery) -> None:
    if delivery.type == "message.send":
        await delivery.reply(answer(delivery))
    if delivery.type == "session.request" and delivery.session_id is not None:
        if approves(delivery):
            await agent.approve(delivery.session_id, delivery.sender)
        else:
            await agent.reject(delivery.session_id, delivery.sender, "I do not know who vouches for you.")
