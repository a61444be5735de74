/**
 * Whether a refusal may pass by itself: the relay reads its keys file again within seconds of a change, of a key or of an issuer.
 * Source: docs/protocol.md#keys, docs/protocol.md#credentials.
 * @param message of the refusal; that of a credential begins with the reason.
 */
export function isNotYetKnown(code: unknown, message: string | undefined): boolean {
  return code === "unknown_key" || (code === "invalid_credential" && message?.startsWith("unknown_issuer") === true);
}
