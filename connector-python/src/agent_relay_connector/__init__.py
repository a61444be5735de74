"""Connects an agent to an Agent Relay: it stays present, sends signed envelopes, and verifies what it receives."""

from .connector import Connector
from .credentials.contract import CredentialFacts
from .errors import RelayError
from .receipts.contract import Receipt, ReceiptFacts, ReceiptProblem, ReceiptVerdict
from .receipts.verify_receipt import verify_receipt
from .types import (
    Accepted,
    AcceptedSession,
    AgentKey,
    ConnectorState,
    CredentialSource,
    Delivery,
    Envelope,
    JsonObject,
    Notice,
    Presence,
    SessionStatus,
    TargetDelivery,
    Trust,
    TrustedKey,
    Warning,
)

__all__ = [
    "Accepted",
    "AcceptedSession",
    "AgentKey",
    "Connector",
    "ConnectorState",
    "CredentialFacts",
    "CredentialSource",
    "Delivery",
    "Envelope",
    "JsonObject",
    "Notice",
    "Presence",
    "Receipt",
    "ReceiptFacts",
    "ReceiptProblem",
    "ReceiptVerdict",
    "RelayError",
    "SessionStatus",
    "TargetDelivery",
    "Trust",
    "TrustedKey",
    "Warning",
    "verify_receipt",
]
