/** A credential as it is kept, by the id of its key. Times are Unix ms. Source: shared/window/src/lua/lib/credential.lua. */
export interface CredentialRecord {
  readonly keyId: string;
  /** When its agent registered with it. */
  readonly registeredAt: number;
  readonly token: string;
}

export function parseCredential(keyId: string, record: string): CredentialRecord {
  const [registeredAt, token] = record.split(" ") as [string, string];
  return { keyId, registeredAt: Number(registeredAt), token };
}
