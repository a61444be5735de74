"""What shows anybody that a session was requested and decided. Source: docs/protocol.md#session-receipts."""
