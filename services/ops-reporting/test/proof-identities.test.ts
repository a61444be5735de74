import { describe, expect, test } from "@jest/globals";
import { PROOF_PRIVACY } from "relay-protocol/contract/reports/common.ts";
import { SessionProofRetention, TrafficDaily } from "relay-protocol/contract/reports/traffic.ts";
import { sessionProofRetention } from "../src/reports/session-proof-retention.ts";
import { trafficDaily } from "../src/reports/traffic-daily.ts";
import { proofOf, SETTINGS, sourceOf } from "./report-sources.ts";

const [S1, S2] = ["ses_00abcdefghjkmnpqrstvwxyz01", "ses_00abcdefghjkmnpqrstvwxyz02"];
const SOURCE = sourceOf({
  proofs: [
    proofOf({ sessionId: S1, requester: "agent://alice", target: "agent://bob" }),
    proofOf({ sessionId: S2, requester: "agent://bob", target: "agent://carol" }),
    proofOf({ sessionId: S1, requester: "agent://alice", target: "agent://bob" }),
  ],
});
const HIDDEN = { ...SETTINGS, proofIdentities: "hidden" } as const;

describe.each([
  ["session-proof-retention", sessionProofRetention, SessionProofRetention],
  ["traffic-daily", trafficDaily, TrafficDaily],
] as const)("the proofs of %s", (_, report, Schema) => {
  test("name requester, target and session, and the document says so in words", () => {
    const { recent_session_proofs, privacy } = Schema.parse(report(SOURCE, SETTINGS));
    expect(recent_session_proofs[0]).toMatchObject({
      session_id: S1,
      requester: "agent://alice",
      target: "agent://bob",
    });
    expect(privacy).toEqual(PROOF_PRIVACY.shown);
    expect(privacy.identities).toMatch(/recent_session_proofs.*\/sessions\//);
  });

  test("number them where the operator hides identities, each the same throughout the document", () => {
    const document = Schema.parse(report(SOURCE, HIDDEN));
    const named = document.recent_session_proofs.map(({ session_id, requester, target }) => [
      session_id,
      requester,
      target,
    ]);
    expect(named).toEqual([
      ["session-1", "agent-1", "agent-2"],
      ["session-2", "agent-2", "agent-3"],
      ["session-1", "agent-1", "agent-2"],
    ]);
    expect(document.privacy).toEqual(PROOF_PRIVACY.hidden);
    expect(JSON.stringify(document)).not.toMatch(/ses_|agent:\/\//);
  });
});
