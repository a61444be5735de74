/** The reporter, which Jest loads as JavaScript, as TypeScript sees it. */
declare module "*/closing-line.mjs" {
  /** What it reads of Jest's AggregatedResult. */
  interface Totals {
    numPassedTests: number;
    numFailedTests: number;
    numRuntimeErrorTestSuites: number;
    numPendingTests: number;
    numTodoTests: number;
  }
  export function closingLine(results: Totals): string;
}
