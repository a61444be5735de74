/** One protection, and the edit of the source that switches it off. */
export interface Mutation {
  /** The protection, in a few words; `--only` takes it. */
  readonly name: string;
  /** From the repository on. */
  readonly file: string;
  /** Stands in the file exactly once. */
  readonly find: string;
  readonly replace: string;
  /** Test files, from the repository on; in each of them at least one test must fail. */
  readonly tests: readonly string[];
}

/** The source without the protection. @throws Error when the text to be replaced is not there exactly once. */
export function applied({ name, file, find, replace }: Mutation, source: string): string {
  const [before, after, ...more] = source.split(find);
  if (before === undefined || after === undefined || more.length > 0) {
    throw new Error(`"${name}" does not apply: its text must stand in ${file} exactly once.`);
  }
  return before + replace + after;
}
