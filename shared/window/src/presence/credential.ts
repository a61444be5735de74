/** A credential as it is kept, with the id of its key. Source: shared/window/src/lua/lib/credential.lua. */
export interface CredentialRecord {
  readonly keyId: string;
  readonly token: string;
}

export function formatCredential({ keyId, token }: CredentialRecord): string {
  return `${keyId} ${token}`;
}

/** The lines of an agent. @param records the newest first. */
export function formatCredentials(records: readonly CredentialRecord[]): string {
  return records.map(formatCredential).join("\n");
}

/** Of the lines of an agent, in their order. */
export function parseCredentials(lines: string): CredentialRecord[] {
  return lines.split("\n").map((line) => {
    const [keyId, token] = line.split(" ") as [string, string];
    return { keyId, token };
  });
}
