import { VERSION } from "../version.ts";
import { COMMANDS } from "./commands/index.ts";
import { EXIT, EXIT_CODES } from "./exit-codes.ts";
import { type Failure, failureOf, usageError } from "./failure.ts";
import type { Io } from "./io.ts";
import { nearest } from "./nearest.ts";
import { Reporter } from "./reporter.ts";

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
