import type { Draft } from "./canonical.ts";
import type { AckFrame } from "./frames.ts";
import type { Accepted, AcceptedSession, SessionProposal } from "./types.ts";

/**
 * Maps calls of the SDK to envelopes, and acks to their results. Source: docs/protocol.md#envelopes,
 * docs/protocol.md#frames.
 */

/** The part of an envelope that differs from call to call. Members that are undefined are left out. */
export interface EnvelopeContent {
  readonly type: string;
  readonly to?: string;
  readonly task_id?: string | undefined;
  readonly payload: object;
}

/** Of what goes to an agent: all but registers and heartbeats. */
export interface AddressedContent extends EnvelopeContent {
  readonly to: string;
}

/** A member of a proposal, and what the protocol calls it. */
const PROPOSAL = {
  purpose: "purpose",
  ttlMinutes: "ttl_minutes",
  intro: "intro",
  scope: "scope",
  expectedFrequency: "expected_frequency",
} as const satisfies Record<keyof SessionProposal, string>;
const PROPOSAL_NAMES = Object.entries(PROPOSAL) as [keyof SessionProposal, keyof Proposal][];

/** A proposal with the protocol's member names. */
export type Proposal = { [Name in keyof SessionProposal as (typeof PROPOSAL)[Name]]: SessionProposal[Name] };
export const PROPOSAL_MEMBERS: readonly string[] = Object.values(PROPOSAL);

export function proposalMembers(proposal: SessionProposal): Proposal {
  return Object.fromEntries(PROPOSAL_NAMES.map(([name, member]) => [member, proposal[name]])) as unknown as Proposal;
}

export function proposalOf(members: Proposal): SessionProposal {
  return Object.fromEntries(
    PROPOSAL_NAMES.map(([name, member]) => [name, members[member]]),
  ) as unknown as SessionProposal;
}

export function sessionRequest(to: string, proposal: SessionProposal): AddressedContent {
  return { type: "session.request", to, payload: proposalMembers(proposal) };
}

export function draftOf(content: EnvelopeContent, id: string, from: string): Draft {
  return { id, from, ...content } as Draft;
}

export function accepted({ envelopeId, delivery, duplicate }: AckFrame): Accepted {
  return { envelopeId, delivery, duplicate };
}

export function acceptedSession(ack: AckFrame): AcceptedSession {
  return { ...accepted(ack), sessionId: ack.sessionId, status: ack.sessionStatus };
}
