import { hash } from "node:crypto";
import { invalidCredential, type PresentedCredential } from "protocol/intake/credential-step.ts";
import type { Refusal } from "protocol/intake/refusal.ts";
import { type Candidate, checkAfterSignature, type VerifiedEnvelope } from "protocol/intake/steps.ts";
import type { SignatureVerifier } from "./signature-verifier.ts";

/** Tokens that are remembered, by their digests: 10,000 agents that reconnect present the same ones again. */
const MOST_TOKENS = 20_000;

/**
 * Verifies the signatures of envelopes, and of the credentials that registers present. Of tokens whose signature held it
 * remembers the digest; whether their terms hold is judged each time. Source: docs/protocol.md#credentials.
 */
export class EnvelopeVerifier {
  readonly #signatures: SignatureVerifier;
  /** In the order in which they were presented last. */
  readonly #tokens = new Set<string>();

  constructor(signatures: SignatureVerifier) {
    this.#signatures = signatures;
  }

  /** Calls `done` once, before this returns or later. Never throws. Both signatures are verified side by side. */
  verify(candidate: Candidate, done: (result: Refusal | VerifiedEnvelope) => void): void {
    const { entry, canonical, envelope, credential } = candidate;
    let isIssued: boolean | undefined = credential === undefined ? true : undefined;
    let isSigned: boolean | undefined;
    const settle = () => {
      if (isIssued === undefined || isSigned === undefined) return;
      done(isIssued ? checkAfterSignature(candidate, isSigned) : invalidCredential("signature", envelope));
    };
    if (credential !== undefined) {
      this.#verifyToken(credential, (isValid) => {
        isIssued = isValid;
        settle();
      });
    }
    const signed = (isValid: boolean) => {
      isSigned = isValid;
      settle();
    };
    this.#signatures.verify(entry.key, canonical, envelope.sig, signed);
  }

  #verifyToken({ credential, issuerKey }: PresentedCredential, done: (isIssued: boolean) => void): void {
    const digest = hash("sha256", credential.token, "base64url");
    if (this.#tokens.delete(digest)) {
      this.#tokens.add(digest);
      done(true);
      return;
    }
    this.#signatures.verify(issuerKey, credential.signed, credential.signature, (isIssued) => {
      if (isIssued) this.#remember(digest);
      done(isIssued);
    });
  }

  #remember(digest: string): void {
    this.#tokens.add(digest);
    if (this.#tokens.size <= MOST_TOKENS) return;
    const [oldest] = this.#tokens;
    this.#tokens.delete(oldest as string);
  }
}
