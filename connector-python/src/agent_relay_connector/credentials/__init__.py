"""Credentials: an issuer binds a key to an agent. Source: docs/protocol.md#credentials."""
