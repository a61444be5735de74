/**
 * Who answers for what came in: the key that signed it, or the API key that a gateway was given. Tagged by its kind, so that
 * ids of several kinds cannot meet. Source: docs/protocol.md#sessions.
 */
export type Principal = `${"key" | "api"}:${string}`;

export function principalOfKey(keyId: string): Principal {
  return `key:${keyId}`;
}

export function principalOfApiKey(id: string): Principal {
  return `api:${id}`;
}
