/** What Jest writes with `--json`, as far as it is read here. */
export interface JestReport {
  readonly testResults: readonly {
    /** Absolute path of the test file. */
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

export type Verdict =
  | { readonly kind: "caught"; readonly by: readonly string[] }
  /** In these files every test passed. */
  | { readonly kind: "survived"; readonly unnoticedBy: readonly string[] }
  | { readonly kind: "unfit"; readonly why: string };

/**
 * What the tests said of a source without one of its protections. A test that failed is told from a run that says nothing:
 * a file that could not start, or a relay that no longer does anything, so that no test passes.
 */
export function verdictOf({ testResults }: JestReport): Verdict {
  const broken = testResults.find(({ assertionResults }) => assertionResults.length === 0);
  if (broken !== undefined) return { kind: "unfit", why: `${broken.name} could not run:\n${broken.message}` };
  const results = testResults.flatMap(({ assertionResults }) => assertionResults);
  if (!results.some(({ status }) => status === "passed")) {
    return { kind: "unfit", why: "No test passed: this breaks more than one protection." };
  }
  const unnoticedBy = testResults.filter(({ assertionResults }) => !assertionResults.some(hasFailed));
  if (unnoticedBy.length > 0) return { kind: "survived", unnoticedBy: unnoticedBy.map(({ name }) => name) };
  return { kind: "caught", by: results.filter(hasFailed).map(({ fullName }) => fullName) };
}

function hasFailed({ status }: { readonly status: string }): boolean {
  return status === "failed";
}
