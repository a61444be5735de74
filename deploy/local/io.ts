import type { Readable, Writable } from "node:stream";

/** What a command uses of the process that runs it. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
}
