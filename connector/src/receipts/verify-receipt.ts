import type { CredentialReason } from "../credentials/contract.ts";
import type { Issuers } from "../credentials/issuers.ts";
import { type Credential, readCredential } from "../credentials/read-credential.ts";
import { isSignedBy } from "../envelope-signature.ts";
import { ANNOUNCED_DEFAULTS } from "../limits.ts";
import type { Envelope } from "../types.ts";
import { isUtf16 } from "../utf16.ts";
import type { Receipt, ReceiptFacts, ReceiptProblem, ReceiptVerdict } from "./contract.ts";
import { readReceipt, ttlOf } from "./read-receipt.ts";
import { isOf, requestDigest } from "./receipt.ts";
import { isSessionOf } from "./session-of.ts";

export type { ReceiptFacts, ReceiptProblem, ReceiptVerdict };

/**
 * Checks a receipt, a JSON text or its bytes, by the records of issuers alone: no relay is asked. It shows that both keys signed;
 * not when, not that a relay accepted it, and not that there is no other decision. Never rejects.
 */
export async function verifyReceipt(given: string | Uint8Array, issuers: Issuers): Promise<ReceiptVerdict> {
  const receipt = readReceipt(given);
  if (receipt === undefined) {
    const isOtherText = given instanceof Uint8Array && isUtf16(given);
    return invalid({ code: "malformed", ...(isOtherText && { reason: "utf_16" }) });
  }
  const unfitting = await unfittingIn(receipt);
  if (unfitting !== undefined) return invalid(unfitting);

  const tokens = await Promise.all(receipt.credentials.map(readCredential));
  if (tokens.includes(undefined)) return invalid({ code: "malformed" });
  const credentials = tokens.filter((token) => token !== undefined);
  const vouching: Credential[] = [];
  for (const part of ["request", "decision"] as const) {
    const envelope = receipt[part];
    const found = await vouchingIn(credentials, envelope, issuers);
    if (typeof found === "string") return invalid({ code: "credential", part, reason: found });
    if (!(await isSignedBy(found.key, envelope))) return invalid({ code: "signature", part });
    vouching.push(found);
  }
  return { valid: true, facts: { ...factsOf(receipt), revoked: vouching.filter((one) => issuers.isRevoked(one)) } };
}

/** How the two envelopes do not belong together. */
async function unfittingIn({ request, decision }: Receipt): Promise<ReceiptProblem | undefined> {
  const areParties = decision.from === request.to && decision.to === request.from && request.from !== request.to;
  if (!areParties) return { code: "parties" };
  const digest = await requestDigest(request);
  if (decision.payload.request_sha256 !== digest) return { code: "digest" };
  if (!isSessionOf(decision.payload.session_id, digest)) return { code: "session" };
  const { maxClockSkewMs } = ANNOUNCED_DEFAULTS;
  if (decision.ts < request.ts - maxClockSkewMs) return { code: "time", reason: "before_request" };
  return decision.ts <= request.ts + (ttlOf(request) as number) ? undefined : { code: "time", reason: "after_end" };
}

/** The credential that held for the envelope's key when it was signed, or why none did. */
async function vouchingIn(
  credentials: readonly Credential[],
  envelope: Envelope,
  issuers: Issuers,
): Promise<Credential | CredentialReason> {
  let reason: CredentialReason = "key_mismatch";
  for (const credential of credentials.filter((one) => isOf(one, envelope))) {
    const problem = await issuers.problemAt(credential, envelope.ts);
    if (problem === undefined) return credential;
    reason = problem;
  }
  return reason;
}

function factsOf({ request, decision }: Receipt): Omit<ReceiptFacts, "revoked"> {
  return {
    sessionId: decision.payload.session_id as string,
    requester: request.from,
    target: decision.from,
    decision: decision.type === "session.approve" ? "approved" : "rejected",
    requestedAt: request.ts,
    decidedAt: decision.ts,
  };
}

function invalid(problem: ReceiptProblem): ReceiptVerdict {
  return { valid: false, problem };
}
