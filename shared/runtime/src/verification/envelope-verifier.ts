import { invalidCredential, type PresentedCredential } from "relay-protocol/intake/credential-step.ts";
import type { Refusal } from "relay-protocol/intake/refusal.ts";
import { type Candidate, checkAfterSignature, type VerifiedEnvelope } from "relay-protocol/intake/steps.ts";
import type { Credential } from "relay-protocol/signing/credentials.ts";
import type { SignatureVerifier } from "./signature-verifier.ts";

/** Says what an envelope comes to whose signatures were verified. */
type Judge = () => Refusal | VerifiedEnvelope;

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
   * Calls `done` once, before this returns or later. Both signatures are verified side by side. The caller judges the
   * rest: a fault there must not keep other callers, whose signatures the same thread verified, from their answers.
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

/**
 * Most characters in each half of the remembered tokens: 10,000 tokens of 750 characters, with a sealing key and an
 * audience. As many agents that reconnect present the same tokens again.
 */
const MOST_CHARACTERS = 7_500_000;

type Token = Pick<Credential, "token" | "signature">;

/**
 * Tokens whose signatures held, the latest ones. They are kept in two halves, so that none is removed by itself: when
 * the newer half is full it becomes the older one, and the tokens of the older one are forgotten.
 */
export class IssuedTokens {
  /** By their signatures, which are shorter. */
  #newer = new Map<string, string>();
  #older = new Map<string, string>();
  #characters = 0;

  /** True for a token that is remembered, whole: another under its signature is not. */
  has({ token, signature }: Token): boolean {
    if (this.#newer.get(signature) === token) return true;
    if (this.#older.get(signature) !== token) return false;
    this.add({ token, signature });
    return true;
  }

  /** Registers with one token that come together are all verified: it counts once. */
  add({ token, signature }: Token): void {
    if (this.#newer.has(signature)) return;
    this.#newer.set(signature, token);
    this.#characters += token.length;
    if (this.#characters <= MOST_CHARACTERS) return;
    this.#older = this.#newer;
    this.#newer = new Map();
    this.#characters = 0;
  }
}
