import type { CredentialFacts, CredentialReason } from "../credentials/contract.ts";
import type { Envelope } from "../types.ts";

/** Receipts, and what they show. Source: docs/protocol.md#session-receipts. */

/** What shows that two agents agreed on a session, or did not: their envelopes, and who vouches for their keys. */
export interface Receipt {
  readonly version: 1;
  /** `session.request`. */
  readonly request: Envelope;
  /** `session.approve` or `session.reject`. */
  readonly decision: Envelope;
  /** Tokens. */
  readonly credentials: readonly string[];
}

/** What a receipt shows. Times are epoch milliseconds, by the signers' clocks. */
export interface ReceiptFacts {
  readonly sessionId: string;
  readonly requester: string;
  readonly target: string;
  readonly decision: "approved" | "rejected";
  readonly requestedAt: number;
  readonly decidedAt: number;
  /** Credentials that held then and are revoked by now: their keys may have been in other hands already. */
  readonly revoked: readonly CredentialFacts[];
}

/** Why a receipt shows nothing. */
export type ReceiptProblem =
  /** With a reason for bytes of UTF-16. */
  | { readonly code: "malformed"; readonly reason?: "utf_16" }
  /** The decision is not from the request's target to its requester. */
  | { readonly code: "parties" }
  /** The decision is on another request. */
  | { readonly code: "digest" }
  /** The decision names another session than the one that the request opens. */
  | { readonly code: "session" }
  /** It was decided before the request, by more than clocks may differ (5 minutes), or after its end. */
  | { readonly code: "time"; readonly reason: "before_request" | "after_end" }
  /** No credential in it vouches for the key. */
  | { readonly code: "credential"; readonly part: "request" | "decision"; readonly reason: CredentialReason }
  | { readonly code: "signature"; readonly part: "request" | "decision" };

export type ReceiptVerdict =
  | { readonly valid: true; readonly facts: ReceiptFacts }
  | { readonly valid: false; readonly problem: ReceiptProblem };
