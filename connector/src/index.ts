/** The SDK of Agent Relay, for Node 22 or later, Deno, Bun and browsers. */

export { Connector } from "./connector.ts";
export type { CredentialFacts, CredentialReason, IssuerRecord } from "./credentials/contract.ts";
export { type ErrorCode, type ErrorEntry, RelayError, type RelayErrorCode } from "./errors.ts";
export type { FieldError } from "./field-errors.ts";
export type * from "./receipts/contract.ts";
export type * from "./types.ts";
export { verifyReceipt } from "./verify.ts";
