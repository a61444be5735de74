import { describe, expect, test } from "@jest/globals";
import { type JestReport, verdictOf } from "./verdict.ts";

/** A report of test files, each with the outcomes of its tests. */
function reportOf(...files: readonly (readonly string[])[]): JestReport {
  return {
    testResults: files.map((statuses, file) => ({
      name: `file-${file}`,
      message: "said",
      assertionResults: statuses.map((status, n) => ({ fullName: `test ${file}.${n}`, status })),
    })),
  };
}

describe("A protection that is switched off", () => {
  test("is caught when a test of each file fails, and the tests are named", () => {
    const verdict = verdictOf(reportOf(["passed", "failed"], ["failed", "failed"]));
    expect(verdict).toEqual({ kind: "caught", by: ["test 0.1", "test 1.0", "test 1.1"] });
  });

  test("survives when no test of a file notices", () => {
    expect(verdictOf(reportOf(["failed", "passed"], ["passed"]))).toEqual({
      kind: "survived",
      unnoticedBy: ["file-1"],
    });
  });

  test("was not tried when a file could not run, whatever failed elsewhere", () => {
    expect(verdictOf(reportOf(["failed", "passed"], []))).toEqual({
      kind: "unfit",
      why: "file-1 could not run:\nsaid",
    });
  });

  test("was not tried when no test passes: then nothing works any more", () => {
    expect(verdictOf(reportOf(["failed"], ["failed"]))).toMatchObject({ kind: "unfit" });
  });
});
