"""Payloads that only their recipient can read. Source: docs/protocol.md#sealed-payloads."""
