import type { Change } from "./in-force.ts";

/** What a command of `npm run keys` prints, and what it has changed. */
export interface Outcome {
  readonly text: string;
  readonly change: Change;
}
