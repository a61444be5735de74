"""How a message goes out."""

from dataclasses import dataclass

from .limits import SEND_TIMEOUT_S


@dataclass(frozen=True)
class MessageOptions:
    """What a message has beside its target and payload. See Connector.send."""

    type: str = "message.send"
    task_id: str | None = None
    seal: bool = False
    timeout_s: float = SEND_TIMEOUT_S
    wait_online_s: float = 0
