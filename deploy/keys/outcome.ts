import type { Change } from "./in-force.ts";

/** What a command of `npm run keys` prints, and what it has changed. */
export interface Outcome {
  /** Sentences, for people. */
  readonly text: string;
  /** What it made, for the standard input of a program or a file: a secret that is shown once. */
  readonly data?: string;
  readonly change: Change;
}
