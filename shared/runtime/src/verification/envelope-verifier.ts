import { invalidCredential, type PresentedCredential } from "relay-protocol/intake/credential-step.ts";
import type { Refusal } from "relay-protocol/intake/refusal.ts";
import { type Candidate, checkAfterSignature, type VerifiedEnvelope } from "relay-protocol/intake/steps.ts";
import { IssuedTokens } from "./issued-tokens.ts";
import type { SignatureVerifier } from "./signature-verifier.ts";

/** Says what an envelope comes to whose signatures were verified. */
export type Judge = () => Refusal | VerifiedEnvelope;

/**
 * Verifies the signatures of envelopes, and of the credentials that registers present. It remembers tokens
 * whose signature held; whether their terms hold is judged each time. Source: docs/protocol.md#credentials.
 */
export class EnvelopeVerifier {
  readonly #signatures: SignatureVerifier;
  readonly #issued = new IssuedTokens();

  constructor(signatures: SignatureVerifier) {
    this.#signatures = signatures;
  }

  /**
   * Calls `done` once, before this returns or later. Both signatures are verified side by side. What is left is judged by who is
   * answered: a fault in it would keep their answers from others, whose signatures a thread verified with it.
   */
  verify(candidate: Candidate, done: (judge: Judge) => void): void {
    const { entry, canonical, envelope, credential } = candidate;
    let isIssued: boolean | undefined = credential === undefined ? true : undefined;
    let isSigned: boolean | undefined;
    const settle = () => {
      if (isIssued === undefined || isSigned === undefined) return;
      done(judgeOf(candidate, isIssued, isSigned));
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
    if (this.#issued.has(credential)) {
      done(true);
      return;
    }
    this.#signatures.verify(issuerKey, credential.signed, credential.signature, (isIssued) => {
      if (isIssued) this.#issued.add(credential);
      done(isIssued);
    });
  }
}

function judgeOf(candidate: Candidate, isIssued: boolean, isSigned: boolean): Judge {
  return () =>
    isIssued ? checkAfterSignature(candidate, isSigned) : invalidCredential("signature", candidate.envelope);
}
