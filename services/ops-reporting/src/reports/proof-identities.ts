import type { SessionProofRecord } from "relay-protocol/contract/reports/common.ts";

/**
 * The proofs with numbers in the place of agents and sessions. Within one document the same agent has the same number, in the
 * order in which agents come. Pure. Source: docs/reports.md#session-proofs.
 */
export function withoutIdentities(proofs: readonly SessionProofRecord[]): SessionProofRecord[] {
  const session = numbering("session");
  const agent = numbering("agent");
  return proofs.map((proof) => ({
    ...proof,
    session_id: session(proof.session_id),
    requester: agent(proof.requester),
    target: agent(proof.target),
  }));
}

function numbering(word: string): (id: string) => string {
  const numbers = new Map<string, number>();
  return (id) => {
    const number = numbers.get(id) ?? numbers.size + 1;
    numbers.set(id, number);
    return `${word}-${number}`;
  };
}
