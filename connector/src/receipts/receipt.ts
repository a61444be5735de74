import { encodeBase64url } from "../base64url.ts";
import { signedPart, signedText } from "../canonical.ts";
import type { Credential } from "../credentials/read-credential.ts";
import { RelayError } from "../errors.ts";
import { GATEWAY_KEY_PREFIX } from "../gateway-keys.ts";
import type { Envelope } from "../types.ts";
import type { Receipt } from "./contract.ts";

export type { Receipt };

/** What a receipt needs of the credential of a key. */
export type Voucher = Pick<Credential, "agent" | "keyId" | "token">;

/** What a connector holds of a session. */
export interface ReceiptParts {
  readonly request: Envelope | undefined;
  readonly decision: Envelope | undefined;
  /** Of the keys that signed them. */
  readonly credentials: readonly Voucher[];
}

/**
 * What a decision says of the request that it decides: base64url SHA-256 of the request's canonical text with `sig`.
 * @param request as it was received and verified.
 */
export async function requestDigest(request: Envelope): Promise<string> {
  return await digestOf(signedBytes(request));
}

/** The canonical text of an envelope with `sig`, in UTF-8. */
export function signedBytes(envelope: Envelope): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(signedText(signedPart(envelope), envelope.sig));
}

/** @param bytes the signedBytes of a request. */
export async function digestOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return encodeBase64url(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

/**
 * Throws `receipt_incomplete`, with what is `missing`: `request`, `decision`, `request_sha256 of the decision`,
 * `credential of <agent>`. A key without credential has none: a gateway's, an HMAC key, a listed one.
 */
export function buildReceipt({ request, decision, credentials }: ReceiptParts): Receipt {
  const signed = [request, decision].filter((envelope) => envelope !== undefined);
  const found = signed.map((envelope) => credentials.find((credential) => isOf(credential, envelope)));
  const lacks = [
    ...(request === undefined ? [decision === undefined ? NO_SESSION : NO_REQUEST] : []),
    ...(decision === undefined ? [NO_DECISION] : []),
    ...(decision !== undefined && isUnbound(decision) ? [NO_DIGEST] : []),
    ...signed.filter((_, index) => found[index] === undefined).map(lackOfCredential),
  ];
  if (request === undefined || decision === undefined || lacks.length > 0) {
    throw incomplete(lacks);
  }
  return { version: 1, request, decision, credentials: found.flatMap((credential) => credential?.token ?? []) };
}

/** A part of a receipt that is not there, why there can be no receipt without it, and what to do. */
interface Lack {
  readonly part: string;
  readonly why: string;
  readonly hint: string;
}

/** Of a session without request and decision it says only that: most likely its id is wrong. */
function incomplete(lacks: readonly Lack[]): RelayError {
  // No agent has a receipt of what was signed so: the other agent need not be asked, nor anything else be mended.
  const final = lacks.filter((lack) => lack === NO_DIGEST || lack.part.startsWith(CREDENTIAL_OF));
  const relevant = final.length > 0 ? final : lacks;
  const told = lacks.includes(NO_SESSION) ? [NO_SESSION] : relevant;
  return new RelayError("receipt_incomplete", {
    message: `There is no receipt: ${told.map(({ why }) => why).join("; ")}.`,
    hint: [...new Set(told.map(({ hint }) => hint))].join(" "),
    missing: lacks.map(({ part }) => part),
  });
}

const CREDENTIAL_OF = "credential of ";
const NO_SESSION: Lack = {
  part: "request",
  why: "this agent has neither signed nor received anything of such a session since it was started",
  hint: "Check the session's id. It has the receipts of the newest 1000 sessions whose request and decision it signed or received itself; the other agent of the session may have this one.",
};
const NO_REQUEST: Lack = {
  part: "request",
  why: "this agent neither signed nor verified the request (one over HTTP is signed by the gateway)",
  hint: "Ask the other agent of the session for its receipt. One over HTTP has none: request with the agent's own key.",
};
const NO_DECISION: Lack = {
  part: "decision",
  why: "this agent neither signed nor verified a decision on the request",
  hint: "There is one once the session is decided, and not of a decision that was delivered unverified, of a key without a credential. Where it was decided while this agent was away, the other agent has the receipt.",
};
const NO_DIGEST: Lack = {
  part: "request_sha256 of the decision",
  why: "the decision carries no request_sha256",
  hint: "The target has to be online when it is requested, and to decide with the connector that received the request.",
};

function lackOfCredential({ from, type, key_id }: Envelope): Lack {
  const signer = key_id.startsWith(GATEWAY_KEY_PREFIX) ? "a gateway" : "a key without a credential";
  const hint = "Both agents need a credential, of keys of their own, before the request: request another session then.";
  return { part: `${CREDENTIAL_OF}${from}`, why: `the ${type} of ${from} was signed by ${signer}`, hint };
}

/** True for a decision that does not say on which request it was made. */
export function isUnbound({ payload }: Envelope): boolean {
  return payload.request_sha256 === undefined;
}

/** True for a credential of the key that an envelope says it is signed with, of its sender. */
export function isOf({ agent, keyId }: Voucher, { from, key_id }: Envelope): boolean {
  return agent === from && keyId === key_id;
}
