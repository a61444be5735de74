import { VERSION } from "../version.ts";
import { nearest } from "./arguments.ts";
import { EXIT, type Failure, failureOf, usageError } from "./failure.ts";
import { overview, pageOf } from "./help.ts";
import type { CommandEntry, Io } from "./io.ts";
import { Reporter } from "./io.ts";

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: "keygen",
    summary: "Make a key for an agent.",
    load: async () => (await import("./commands/keygen.ts")).keygen,
  },
  {
    name: "init",
    summary: "Write an agent that works, with its test, into a folder.",
    load: async () => (await import("./commands/init.ts")).init,
  },
  {
    name: "check",
    summary: "Test the key, the clock and the connection to a relay.",
    load: async () => (await import("./commands/check.ts")).check,
  },
  {
    name: "listen",
    summary: "Keep an agent online and print what it receives.",
    load: async () => (await import("./commands/listen.ts")).listen,
  },
  { name: "send", summary: "Send a message to an agent.", load: async () => (await import("./commands/send.ts")).send },
  {
    name: "ask",
    summary: "Send a message and print the reply.",
    load: async () => (await import("./commands/ask.ts")).ask,
  },
  {
    name: "request",
    summary: "Request a session with an agent.",
    load: async () => (await import("./commands/request.ts")).request,
  },
  {
    name: "approve",
    summary: "Approve a session that another agent requested.",
    load: async () => (await import("./commands/decisions.ts")).approve,
  },
  {
    name: "reject",
    summary: "Reject a session that another agent requested.",
    load: async () => (await import("./commands/decisions.ts")).reject,
  },
  {
    name: "issuer",
    summary: "Make an issuer, which signs credentials for agents.",
    load: async () => (await import("./commands/issuer.ts")).issuer,
  },
  {
    name: "issue",
    summary: "Sign a credential for the key of an agent.",
    load: async () => (await import("./commands/issue.ts")).issue,
  },
  {
    name: "credential",
    summary: "Put a credential into the key file of its agent.",
    load: async () => (await import("./commands/credential.ts")).credential,
  },
  {
    name: "inspect",
    summary: "Show what a credential says, and whether it is valid.",
    load: async () => (await import("./commands/inspect.ts")).inspect,
  },
  {
    name: "receipt",
    summary: "Print the receipt of a decided session.",
    load: async () => (await import("./commands/receipt.ts")).receipt,
  },
  {
    name: "verify",
    summary: "Check the receipt of a session, without a relay.",
    load: async () => (await import("./commands/verify.ts")).verify,
  },
  {
    name: "status",
    summary: "Show whether agents are online, and the state of sessions.",
    load: async () => (await import("./commands/status.ts")).status,
  },
  {
    name: "mcp",
    summary: "Offer the relay to a model as MCP tools.",
    load: async () => (await import("./commands/mcp.ts")).mcp,
  },
  {
    name: "completion",
    summary: "Print a script that makes a shell complete commands.",
    load: async () => (await import("./commands/completion.ts")).completionOf(COMMANDS),
  },
];

/** Runs one command line. Never rejects. @returns the exit code. */
export async function run(args: string[], io: Io): Promise<number> {
  const reporter = new Reporter(io.stderr, args.includes("--json"));
  try {
    return await dispatch(args, io);
  } catch (error) {
    const failure = failureOf(error);
    reporter.fail(failure);
    return io.signal.aborted ? EXIT.interrupted : failure.exitCode;
  }
}

async function dispatch([first, ...rest]: string[], io: Io): Promise<number> {
  if (first === "--version") return print(`${VERSION}\n`, io);
  const asksForHelp = first === undefined || first === "help" || first === "--help" || first === "-h";
  const name = asksForHelp ? rest[0] : first;
  if (asksForHelp && name === undefined) return print(overview(COMMANDS), io);

  const entry = COMMANDS.find((candidate) => candidate.name === name);
  if (entry === undefined) throw unknownCommand(name ?? "");
  const command = await entry.load();
  const isHelp = asksForHelp || rest.includes("--help") || rest.includes("-h");
  return isHelp ? print(pageOf(entry, command), io) : await command.run(rest, io);
}

function unknownCommand(word: string): Failure {
  const meant = nearest(
    word,
    COMMANDS.map(({ name }) => name),
  );
  return usageError(
    "Unknown command.",
    `${meant ? `Did you mean relay ${meant}? ` : ""}relay --help lists the commands.`,
  );
}

function print(text: string, { stdout }: Io): number {
  stdout.write(text);
  return EXIT.ok;
}
