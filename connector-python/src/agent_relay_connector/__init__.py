"""Connects an agent to an Agent Relay: it stays present, sends signed envelopes, and verifies what it receives."""

from .connector import Connector
from .credentials.contract import CredentialFacts
from .errors import FieldError, RelayError
from .given import AgentKey, CredentialSource, CredentialWithKeys, SealingKey, Trust, TrustedKey
from .receipts.contract import Receipt, ReceiptFacts, ReceiptProblem, ReceiptVerdict
from .receipts.verify_receipt import verify_receipt
from .types import (
    Accepted,
    AcceptedSession,
    ConnectorState,
    Delivery,
    Envelope,
    JsonObject,
    Notice,
    Presence,
    SessionStatus,
    TargetDelivery,
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
    "CredentialWithKeys",
    "Delivery",
    "Envelope",
    "FieldError",
    "JsonObject",
    "Notice",
    "Presence",
    "Receipt",
    "ReceiptFacts",
    "ReceiptProblem",
    "ReceiptVerdict",
    "RelayError",
    "SealingKey",
    "SessionStatus",
    "TargetDelivery",
    "Trust",
    "TrustedKey",
    "Warning",
    "verify_receipt",
]
