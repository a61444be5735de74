import { encodeBase64url } from "../base64url.ts";
import { signedPart, signedText } from "../canonical.ts";
import type { Credential } from "../credentials/read-credential.ts";
import { RelayError } from "../errors.ts";
import type { Envelope } from "../types.ts";
import type { Receipt } from "./contract.ts";

export type { Receipt };

/** What a connector holds of a session. */
export interface ReceiptParts {
  readonly request: Envelope | undefined;
  readonly decision: Envelope | undefined;
  /** Of the keys that signed them. */
  readonly credentials: readonly Credential[];
}

/**
 * What a decision says of the request that it decides: base64url SHA-256 of the request's canonical text with `sig`.
 * @param request as it was received and verified.
 */
export async function requestDigest(request: Envelope): Promise<string> {
  const text = signedText(signedPart(request), request.sig);
  return encodeBase64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));
}

/**
 * Throws `receipt_incomplete`, with what is `missing`: `request`, `decision`, `credential of <agent>`. A key without
 * credential has none: a gateway's, an HMAC key, a listed one.
 */
export function buildReceipt({ request, decision, credentials }: ReceiptParts): Receipt {
  const signed = [request, decision].filter((envelope) => envelope !== undefined);
  const found = signed.map((envelope) => credentials.find((credential) => isOf(credential, envelope)));
  const unvouched = signed.filter((_, index) => found[index] === undefined);
  if (request === undefined || decision === undefined || unvouched.length > 0) {
    const missing = [
      ...(request === undefined ? ["request"] : []),
      ...(decision === undefined ? ["decision"] : []),
      ...unvouched.map(({ from }) => `credential of ${from}`),
    ];
    throw new RelayError("receipt_incomplete", { missing });
  }
  return { version: 1, request, decision, credentials: found.flatMap((credential) => credential?.token ?? []) };
}

/** True for a credential of the key that an envelope says it is signed with, of its sender. */
export function isOf({ agent, keyId }: Credential, { from, key_id }: Envelope): boolean {
  return agent === from && keyId === key_id;
}
