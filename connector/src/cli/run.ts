import { VERSION } from "../version.ts";
import { nearest } from "./arguments.ts";
import { EXIT, EXIT_CODES, type Failure, failureOf, usageError } from "./failure.ts";
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
    summary: "Write an agent that works, with its test, to start from.",
    load: async () => (await import("./commands/init.ts")).init,
  },
  {
    name: "check",
    summary: "Test key, clock and connection against a relay.",
    load: async () => (await import("./commands/check.ts")).check,
  },
  {
    name: "listen",
    summary: "Keep an agent online and print what it receives.",
    load: async () => (await import("./commands/listen.ts")).listen,
  },
  { name: "send", summary: "Send a message.", load: async () => (await import("./commands/send.ts")).send },
  {
    name: "ask",
    summary: "Send a message, and print the reply.",
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
    summary: "Make an issuer of credentials.",
    load: async () => (await import("./commands/issuer.ts")).issuer,
  },
  {
    name: "issue",
    summary: "Sign a credential for the key of an agent.",
    load: async () => (await import("./commands/issue.ts")).issue,
  },
  {
    name: "credential",
    summary: "Put a credential into a key file.",
    load: async () => (await import("./commands/credential.ts")).credential,
  },
  {
    name: "inspect",
    summary: "Show what a credential says, and whether it holds.",
    load: async () => (await import("./commands/inspect.ts")).inspect,
  },
  {
    name: "receipt",
    summary: "Print the receipt of a decided session.",
    load: async () => (await import("./commands/receipt.ts")).receipt,
  },
  {
    name: "verify",
    summary: "Check the receipt of a session.",
    load: async () => (await import("./commands/verify.ts")).verify,
  },
  { name: "status", summary: "Show who is online.", load: async () => (await import("./commands/status.ts")).status },
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

const WIDTH = Math.max(...COMMANDS.map(({ name }) => name.length));

const HELP = `relay: an agent on an Agent Relay, from the shell.

${COMMANDS.map(({ name, summary }) => `  relay ${name.padEnd(WIDTH)}  ${summary}`).join("\n")}

relay <command> --help explains each. From nothing to a first message:

  relay keygen --agent agent://alice > record.json   alice.json is yours; record.json is for the relay's operator, who adds it
  relay check --key alice.json
  relay send --key alice.json agent://bob '{"message":"Hello, Bob."}'

Your agent: a key file (--key or RELAY_KEY_FILE), or RELAY_AGENT, RELAY_KEY_ID, RELAY_KEY_ALG and RELAY_PRIVATE_KEY or
RELAY_SECRET. The relay: --url or RELAY_URL; RELAY_HTTP_URL where its HTTP side is elsewhere; HTTPS_PROXY or HTTP_PROXY names a proxy. Secrets on the command line are refused.
With --json every command prints JSON. Colours appear on a terminal only, and not with NO_COLOR.

${EXIT_CODES}`;

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
  if (asksForHelp && name === undefined) return print(HELP, io);

  const entry = COMMANDS.find((candidate) => candidate.name === name);
  if (entry === undefined) throw unknownCommand(name ?? "");
  const command = await entry.load();
  const isHelp = asksForHelp || rest.includes("--help") || rest.includes("-h");
  return isHelp ? print(command.help, io) : await command.run(rest, io);
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
