import type { Readable, Writable } from "node:stream";

/** What a command uses of the process it runs in. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Aborted by SIGINT, SIGTERM, and when stdout has lost its reader. */
  readonly signal: AbortSignal;
}

/** What a command reads of. */
export type Input = Pick<Io, "stdin" | "signal">;

/** A stream to write to; a terminal when `isTTY`. Programs that a command starts write to its `fd`, if it has one. */
export type Output = Writable & { readonly isTTY?: boolean; readonly fd?: number };
