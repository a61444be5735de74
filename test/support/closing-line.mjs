import { writeSync } from "node:fs";

/**
 * Jest reporter: the run's totals, alone on the last line of what the run prints: `N passed, N failed[, N skipped]`. A run
 * in which no test passed has failed: Jest would say otherwise where a pattern fits no name.
 */
export default class ClosingLine {
  onRunComplete(_contexts, results) {
    const line = closingLine(results);
    // Jest adds its own summary after every reporter.
    process.once("exit", () => {
      if (results.numPassedTests === 0) process.exitCode ||= 1;
      writeSync(1, `${line}\n`);
    });
  }
}

/** A file that could not run at all counts as a failure. */
function closingLine(results) {
  const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
  const skipped = results.numPendingTests + results.numTodoTests;
  return `${results.numPassedTests} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}
