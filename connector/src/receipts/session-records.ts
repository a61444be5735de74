import type { Credential } from "../credentials/read-credential.ts";
import { SESSION_RECORDS } from "../limits.ts";
import type { Envelope } from "../types.ts";
import type { Receipt } from "./contract.ts";
import { buildReceipt, isUnbound, requestDigest } from "./receipt.ts";

/** An envelope of a session that this agent signed, or verified. */
interface Kept {
  readonly envelope: Envelope;
  /** Of a request: what a decision on it carries. */
  readonly digest: string;
  /** What vouched for its key. */
  readonly credential: Credential | undefined;
}

interface SessionRecord {
  readonly requests: Kept[];
  readonly decisions: Kept[];
}

/**
 * Requests and decisions of the newest sessions, for receipts. Only the relay says which session a request opened: several
 * may claim to be one, so nothing here takes the place of anything.
 */
export class SessionRecords {
  /** By session id, the oldest first. */
  readonly #records = new Map<string, SessionRecord>();

  /** @param envelope `session.*`, signed here or verified. */
  async keep(sessionId: string, envelope: Envelope, credential: Credential | undefined): Promise<void> {
    const kept = { envelope, digest: await requestDigest(envelope), credential };
    const { requests, decisions } = this.#recordOf(sessionId);
    const isDecision = envelope.type === "session.approve" || envelope.type === "session.reject";
    const ofItsKind = envelope.type === "session.request" ? requests : isDecision ? decisions : undefined;
    if (ofItsKind !== undefined && ofItsKind.length < SESSION_RECORDS.maxOfAKind) ofItsKind.push(kept);
  }

  /** What a decision says of the request that this agent got from the requester; undefined when it is not clear which. */
  digestOf(sessionId: string, requester: string): string | undefined {
    const requests = this.#records.get(sessionId)?.requests.filter(({ envelope }) => envelope.from === requester);
    return requests?.length === 1 ? requests[0]?.digest : undefined;
  }

  /** Throws `receipt_incomplete`. */
  receipt(sessionId: string): Receipt {
    const { requests = [], decisions = [] } = this.#records.get(sessionId) ?? {};
    const decided = requests.find((request) => decisions.some((decision) => isOn(decision, request)));
    const request = decided ?? requests[0];
    const isOnIt = decided === undefined ? isUnboundOn : isOn;
    const decision = request === undefined ? decisions[0] : decisions.find((one) => isOnIt(one, request));
    const credentials = [request, decision].flatMap((kept) => kept?.credential ?? []);
    return buildReceipt({ request: request?.envelope, decision: decision?.envelope, credentials });
  }

  #recordOf(sessionId: string): SessionRecord {
    const record = this.#records.get(sessionId) ?? { requests: [], decisions: [] };
    this.#records.set(sessionId, record);
    const [oldest] = this.#records.keys();
    if (this.#records.size > SESSION_RECORDS.max) this.#records.delete(oldest as string);
    return record;
  }
}

/** Its target made the decision, for its requester, on this very request. */
function isOn(decision: Kept, request: Kept): boolean {
  return areParties(decision, request) && decision.envelope.payload.request_sha256 === request.digest;
}

/** It may be on the request, and does not say so. */
function isUnboundOn(decision: Kept, request: Kept): boolean {
  return areParties(decision, request) && isUnbound(decision.envelope);
}

function areParties({ envelope: decision }: Kept, { envelope: request }: Kept): boolean {
  return decision.from === request.to && decision.to === request.from;
}
