import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import type { GuideNext } from "relay-protocol/contract/reports/guides.ts";
import { rowsBetween } from "../../../../test/support/documents.ts";
import { TABLE, type TargetSituation } from "./target-situations.ts";
import { GUIDE_IDS, written } from "./written.ts";

const protocol = await readFile(new URL("../../../../docs/protocol.md", import.meta.url), "utf8");
const rows = rowsBetween(protocol, "guides");

/** `next` as the table spells it: whose it is, or the request and the guide that it reads. */
function cellOf({ who, request }: GuideNext): string {
  if (request === null) return who;
  return request.method === "POST" ? "POST" : `GET ${new URL(request.url).pathname.split("/").at(-1)}`;
}

describe("the table of the guides in docs/protocol.md", () => {
  test("has every situation, and no other", () => {
    expect(rows.map(([situation]) => situation)).toEqual(Object.keys(TABLE));
  });

  test.each(rows)("says what the guides say of a target: %s", (situation, status, allowed, ...cells) => {
    const { source, query, target } = TABLE[situation as string] as TargetSituation;
    const guides = written(source, query, target);
    const gate = guides.marketplaceHandoffStatus;
    expect([gate.status.startsWith(`${status}_`), `\`${gate.allowed_next_step}\``]).toEqual([true, allowed]);
    expect(GUIDE_IDS.map((id) => cellOf(guides[id].next))).toEqual(cells.slice(0, GUIDE_IDS.length));
  });
});
