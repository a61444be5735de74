import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import type { GuideNext } from "protocol/contract/reports/guides.ts";
import type { Target } from "window/targets.ts";
import { rowsBetween } from "../../../../test/support/documents.ts";
import { proofOf, STARTED_AT } from "../report-sources.ts";
import * as windows from "./windows.ts";
import { AWAY, CONGESTED, GUIDE_IDS, HELD, NAMED, ONLINE, PROVEN, SESSION_ID, targetOf, written } from "./written.ts";

const protocol = await readFile(new URL("../../../../docs/protocol.md", import.meta.url), "utf8");
const rows = rowsBetween(protocol, "guides");

/** bob and his window in each situation of the table, by its first cell. */
const SITUATIONS: Readonly<Record<string, { readonly target: Target; readonly source?: typeof windows.EMPTY }>> = {
  "nobody is online, the window was just reset included": { source: windows.EMPTY, target: targetOf() },
  "never seen": { target: targetOf() },
  offline: { target: targetOf({ presence: AWAY.offline }) },
  stale: { target: targetOf({ presence: AWAY.stale }) },
  "online, but congested": { target: targetOf({ presence: CONGESTED }) },
  "online, not held for 90 s": { target: targetOf({ presence: ONLINE }) },
  "online and held": { target: targetOf({ presence: HELD }) },
  "fresh proof of another's": {
    target: targetOf({ ...PROVEN, lastOnlineProof: proofOf({ requester: "agent://carol" }) }),
  },
  "fresh proof of your own": { target: targetOf(PROVEN) },
  "rejected your session": { target: targetOf({ ...PROVEN, decision: "rejected" }) },
  "your session with it expired": { target: targetOf({ ...PROVEN, decision: "expired" }) },
};

/** `next` as the table spells it: whose it is, or the request and the guide that it reads. */
function cellOf({ who, request }: GuideNext): string {
  if (request === null) return who;
  return request.method === "POST" ? "POST" : `GET ${new URL(request.url).pathname.split("/").at(-1)}`;
}

describe("the table of the guides in docs/protocol.md", () => {
  test("has every situation, and no other", () => {
    expect(rows.map(([situation]) => situation)).toEqual(Object.keys(SITUATIONS));
  });

  test.each(rows)("says what the guides say of a target: %s", (situation, status, allowed, ...cells) => {
    const { target, source = windows.NO_REQUEST } = SITUATIONS[situation as string] as (typeof SITUATIONS)[string];
    const query = target.decision === null ? NAMED : { ...NAMED, session_id: SESSION_ID };
    const guides = written({ ...source, now: STARTED_AT + 60_000 }, query, target);
    const gate = guides.marketplaceHandoffStatus;
    expect([gate.status.startsWith(`${status}_`), `\`${gate.allowed_next_step}\``]).toEqual([true, allowed]);
    expect(GUIDE_IDS.map((id) => cellOf(guides[id].next))).toEqual(cells.slice(0, GUIDE_IDS.length));
  });
});
