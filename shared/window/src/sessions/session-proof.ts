import type { DeliveryStatus } from "relay-protocol/contract/presence.ts";
import type { ProofSource } from "relay-protocol/contract/session.ts";

/** An accepted session request, as it is retained. Source: docs/reports.md#session-proofs. */
export interface SessionProof {
  readonly sessionId: string;
  readonly requester: string;
  readonly target: string;
  /** Unix ms. */
  readonly acceptedAt: number;
  readonly targetStatus: DeliveryStatus;
  readonly source: ProofSource;
  /** Requester and target answer to one key of the keys file, or to one issuer. */
  readonly samePrincipal: boolean;
}

/** Reads `session requester target accepted_at status source[ within]`. Source: shared/window/src/lua/lib/proof.lua. */
export function parseSessionProof(record: string): SessionProof {
  const [sessionId, requester, target, acceptedAt, targetStatus, source, within] = record.split(" ") as [
    ...[string, string, string, string],
    DeliveryStatus,
    ProofSource,
    string?,
  ];
  const samePrincipal = within !== undefined;
  return { sessionId, requester, target, acceptedAt: Number(acceptedAt), targetStatus, source, samePrincipal };
}
