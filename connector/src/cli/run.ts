import { COMMANDS, type Io } from "./command.ts";
import { EXIT, EXIT_CODES } from "./exit-codes.ts";
import { failureOf, usage } from "./failure.ts";
import { Voice } from "./output.ts";
import { version } from "./version.ts";

const WIDTH = Math.max(...COMMANDS.map(({ name }) => name.length));

const HELP = `relay: an agent's way to an Agent Relay, from the shell.

${COMMANDS.map(({ name, summary }) => `  relay ${name.padEnd(WIDTH)}  ${summary}`).join("\n")}

relay <command> --help teaches each. A first conversation, with the keys that npm start made:

  relay listen --key .local/bob.json
  relay send --key .local/alice.json agent://bob '{"message":"Hello, Bob."}'

Who you are: a key file (--key or RELAY_KEY_FILE), or RELAY_AGENT, RELAY_KEY_ID, RELAY_KEY_ALG and RELAY_PRIVATE_KEY or
RELAY_SECRET. Which relay: --url or RELAY_URL. Secrets are never taken from the command line.
--json makes every command speak JSON. Colours appear on a terminal only, and not with NO_COLOR.

${EXIT_CODES}`;

/** Runs one command line. Never rejects. @returns the exit code. */
export async function run(args: string[], io: Io): Promise<number> {
  const voice = new Voice(io.stderr, args.includes("--json"));
  try {
    return await dispatch(args, io);
  } catch (error) {
    const { code, message, hint, exitCode } = failureOf(error);
    voice.say("error", `relay: ${message} ${hint}`.trim(), { code }, "red");
    return io.signal.aborted ? EXIT.interrupted : exitCode;
  }
}

async function dispatch([first, ...rest]: string[], io: Io): Promise<number> {
  if (first === "--version") return print(`${await version()}\n`, io);
  const asksForHelp = first === undefined || first === "help" || first === "--help" || first === "-h";
  const name = asksForHelp ? rest[0] : first;
  if (asksForHelp && name === undefined) return print(HELP, io);

  const entry = COMMANDS.find((candidate) => candidate.name === name);
  if (entry === undefined) throw usage("There is no such command.", "relay --help lists them.");
  const { command } = await entry.load();
  const isHelp = asksForHelp || rest.includes("--help") || rest.includes("-h");
  return isHelp ? print(command.help, io) : await command.run(rest, io);
}

function print(text: string, { stdout }: Io): number {
  stdout.write(text);
  return EXIT.ok;
}
