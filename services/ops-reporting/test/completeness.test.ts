import { describe, expect, test } from "@jest/globals";
import { completenessOf } from "../src/reports/figures.ts";
import { STARTED_AT, sourceOf } from "./report-sources.ts";

const LATER = STARTED_AT + 5000;
const agents = { ok: 1, stale: 0, critical_stale: 0, offline: 0 };

describe("a report", () => {
  test("of which nothing was lost and nothing is missing is complete", () => {
    expect(completenessOf(sourceOf())).toEqual({
      complete: true,
      may_lack_since: null,
      partitions: { total: 1, missing: [], may_lack: [], control_may_lack: false },
    });
  });

  test("without a partition that cannot be read may lack something of its whole window, and names it", () => {
    expect(completenessOf(sourceOf({ partitions: 12, missing: [7, 2] }))).toMatchObject({
      complete: false,
      may_lack_since: STARTED_AT,
      partitions: { total: 12, missing: [2, 7], may_lack: [] },
    });
  });

  test("names a partition whose figures were read and whose agents could not be counted", () => {
    const source = sourceOf({ partitions: 12, missing: [2], presence: { ...agents, missing: [2, 1] } });
    expect(completenessOf(source)).toMatchObject({ complete: false, partitions: { missing: [1, 2] } });
  });

  test("of a window of which something was lost says where, and since when at the earliest", () => {
    const lostSince = new Map([
      [11, LATER + 1],
      [4, LATER],
    ]);
    expect(completenessOf(sourceOf({ partitions: 12, lostSince }))).toEqual({
      complete: false,
      may_lack_since: LATER,
      partitions: { total: 12, missing: [], may_lack: [4, 11], control_may_lack: false },
    });
    expect(completenessOf(sourceOf({ partitions: 12, lostSince: new Map([["control", LATER]]) }))).toMatchObject({
      complete: false,
      may_lack_since: LATER,
      partitions: { may_lack: [], control_may_lack: true },
    });
  });
});
