import type { CredentialReason } from "./contract.ts";
import type { Issuers } from "./issuers.ts";
import type { Credential } from "./read-credential.ts";

/** Whom a recipient believes. */
export interface CredentialTrust {
  /** The issuers that this agent pinned. */
  readonly pinned: Issuers;
  /** The issuers of the relay's manifest, which may be read again when it does not know the credential's. */
  readonly ofRelay: (credential: Credential) => Promise<Issuers>;
  /** True for an agent with pinned keys: it is believed under those alone. */
  readonly hasPinnedKeys: (agent: string) => boolean;
  /** The host, with a port that is not the default, that this agent dialled. */
  readonly relay: string;
}

/** Who vouches for a credential. */
export type Vouching =
  | { readonly verified: "agent" | "relay_issuer"; readonly issuer: string }
  | { readonly verified: "unverified"; readonly reason: CredentialReason };

/**
 * Judges a credential as it stood at a time, epoch milliseconds. What was pinned decides alone wherever it says something:
 * no relay adds a key to a pinned issuer, or another issuer for an agent that a pinned one names.
 */
export async function vouchingFor(credential: Credential, time: number, trust: CredentialTrust): Promise<Vouching> {
  const { agent, issuer, audience } = credential;
  const isPinned = trust.pinned.has(issuer);
  if (trust.hasPinnedKeys(agent) || (!isPinned && trust.pinned.names(agent))) return unverified("agent_not_allowed");
  const issuers = isPinned ? trust.pinned : await trust.ofRelay(credential);
  const problem = await issuers.problemAt(credential, time);
  if (problem !== undefined) return unverified(problem);
  if (issuers.isRevoked(credential)) return unverified("revoked");
  if (audience !== undefined && !audience.includes(trust.relay)) return unverified("wrong_relay");
  return { verified: isPinned ? "agent" : "relay_issuer", issuer };
}

function unverified(reason: CredentialReason): Vouching {
  return { verified: "unverified", reason };
}
