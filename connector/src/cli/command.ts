import type { Readable, Writable } from "node:stream";

/** What a command has of the process it runs in. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Aborted by SIGINT, SIGTERM, and when nobody reads stdout any more. */
  readonly signal: AbortSignal;
}

/** A stream to write to; a terminal when `isTTY`. */
export type Output = Writable & { readonly isTTY?: boolean };

/** One command of `relay`. A module under `commands/` exports it by the name `command`. */
export interface Command {
  /** What `relay <command> --help` prints. */
  readonly help: string;
  /**
   * @param args the words after the command's name.
   * @returns the exit code; see exit-codes.ts.
   * @throws {Failure} with an exit code and words for people; a RelayError is turned into one.
   */
  run(args: string[], io: Io): Promise<number>;
}

/** A line of the command table. A module is loaded when its command is asked for, so that none pays for another. */
export interface CommandEntry {
  readonly name: string;
  /** One line for `relay --help`. */
  readonly summary: string;
  readonly load: () => Promise<{ readonly command: Command }>;
}

export const COMMANDS: readonly CommandEntry[] = [
  { name: "keygen", summary: "Make a key for an agent.", load: () => import("./commands/keygen.ts") },
  {
    name: "check",
    summary: "Test key, clock and connection against a relay.",
    load: () => import("./commands/check.ts"),
  },
  {
    name: "listen",
    summary: "Hold an agent online and print what it receives.",
    load: () => import("./commands/listen.ts"),
  },
  { name: "send", summary: "Send a message.", load: () => import("./commands/send.ts") },
  { name: "request", summary: "Ask an agent for a session.", load: () => import("./commands/request.ts") },
  { name: "approve", summary: "Approve a session that was asked of you.", load: () => import("./commands/approve.ts") },
  { name: "reject", summary: "Reject a session that was asked of you.", load: () => import("./commands/reject.ts") },
  { name: "status", summary: "Show who is online.", load: () => import("./commands/status.ts") },
  { name: "mcp", summary: "Offer the relay to a model as MCP tools.", load: () => import("./commands/mcp.ts") },
];
