import type { CredentialReason } from "../credentials/contract.ts";

/** Why a credential vouches for nothing, in words. */
export const CREDENTIAL_REASONS: Readonly<Record<CredentialReason, string>> = {
  unknown_issuer: "no issuer that was named has the key that it is signed with",
  signature: "its signature does not match the key of its issuer",
  expired: "its term, or that of its issuer's key, is over",
  not_yet_valid: "its term, or that of its issuer's key, has not begun",
  revoked: "its issuer revoked what it had issued by then",
  agent_not_allowed: "its issuer does not speak for its agent",
  key_mismatch: "it is of another key",
  wrong_relay: "it is for another relay",
};
