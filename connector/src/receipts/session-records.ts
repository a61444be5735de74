import type { Credential } from "../credentials/read-credential.ts";
import { SESSION_RECORDS } from "../limits.ts";
import { parseJson } from "../parse-json.ts";
import type { Envelope } from "../types.ts";
import type { Receipt } from "./contract.ts";
import { type Kept, NewestSessions, type SessionRecord } from "./newest-sessions.ts";
import { buildReceipt, digestOf, isUnbound, signedBytes } from "./receipt.ts";

type Kind = keyof SessionRecord;

/** An envelope as it was kept, parsed again. */
interface Found extends Kept {
  readonly envelope: Envelope;
}

/**
 * Requests and decisions of the newest sessions, for receipts. Only the relay says which session a request opened: several
 * may claim to be one, so nothing here takes the place of anything.
 */
export class SessionRecords {
  readonly #agent: string;
  /** Those in which this agent signed something: whatever others send, it takes no room of theirs. */
  readonly #own = new NewestSessions();
  readonly #others = new NewestSessions();

  /** @param agent this agent. */
  constructor(agent: string) {
    this.#agent = agent;
  }

  /** @param envelope signed here or verified. */
  async keep(sessionId: string, envelope: Envelope, credential: Credential | undefined): Promise<void> {
    const kind = kindOf(envelope);
    if (kind === undefined) return;
    const kept = await keptOf(envelope, credential);
    const isOwn = envelope.from === this.#agent || this.#own.get(sessionId) !== undefined;
    const record = this.#recordOf(sessionId);
    if (record[kind].length >= SESSION_RECORDS.maxOfAKind) return;
    this.#others.delete(sessionId);
    const sessions = isOwn ? this.#own : this.#others;
    sessions.put(sessionId, { ...record, [kind]: [...record[kind], kept] });
  }

  /** The request that this agent got from the requester, and what a decision says of it; undefined when it is not clear which. */
  requestOf(sessionId: string, requester: string): { readonly digest: string; readonly ts: number } | undefined {
    const requests = this.#found(sessionId, "requests").filter(({ envelope }) => envelope.from === requester);
    const [request] = requests;
    if (request === undefined || requests.length > 1) return undefined;
    return { digest: request.digest, ts: request.envelope.ts };
  }

  /** Throws `receipt_incomplete`. */
  receipt(sessionId: string): Receipt {
    const [requests, decisions] = [this.#found(sessionId, "requests"), this.#found(sessionId, "decisions")];
    const decided = requests.find((request) => decisions.some((decision) => isOn(decision, request)));
    const request = decided ?? requests[0];
    const isOnIt = decided === undefined ? isUnboundOn : isOn;
    const decision = request === undefined ? decisions[0] : decisions.find((one) => isOnIt(one, request));
    const credentials = [request, decision].flatMap((found) => found?.voucher ?? []);
    return buildReceipt({ request: request?.envelope, decision: decision?.envelope, credentials });
  }

  #recordOf(sessionId: string): SessionRecord {
    return this.#own.get(sessionId) ?? this.#others.get(sessionId) ?? { requests: [], decisions: [] };
  }

  #found(sessionId: string, kind: Kind): Found[] {
    return this.#recordOf(sessionId)[kind].map((kept) => ({ ...kept, envelope: envelopeOf(kept) }));
  }
}

/** Undefined for what is no part of a receipt. */
function kindOf({ type }: Envelope): Kind | undefined {
  if (type === "session.request") return "requests";
  return type === "session.approve" || type === "session.reject" ? "decisions" : undefined;
}

async function keptOf(envelope: Envelope, credential: Credential | undefined): Promise<Kept> {
  const bytes = signedBytes(envelope);
  const voucher = credential && { agent: credential.agent, keyId: credential.keyId, token: credential.token };
  return { bytes, digest: await digestOf(bytes), voucher };
}

function envelopeOf({ bytes }: Kept): Envelope {
  return parseJson(new TextDecoder().decode(bytes)) as Envelope;
}

/** Its target made the decision, for its requester, on this very request. */
function isOn(decision: Found, request: Found): boolean {
  return areParties(decision, request) && decision.envelope.payload.request_sha256 === request.digest;
}

/** It may be on the request, and does not say so. */
function isUnboundOn(decision: Found, request: Found): boolean {
  return areParties(decision, request) && isUnbound(decision.envelope);
}

function areParties({ envelope: decision }: Found, { envelope: request }: Found): boolean {
  return decision.from === request.to && decision.to === request.from;
}
