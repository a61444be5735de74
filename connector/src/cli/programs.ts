import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Delivery } from "../types.ts";
import { readableEnvelope } from "./delivery-line.ts";
import { SECRET_VARIABLES } from "./identity.ts";
import type { Io } from "./io.ts";
import { jsonLine } from "./output.ts";

/** More than fits into an envelope. */
const MAX_OUTPUT_BYTES = 65_536;

/** How a program ended. */
export interface ProgramEnd {
  readonly exitCode: number | null;
  /** What it printed; empty unless it was kept. Undefined when it was more than fits into an envelope. */
  readonly printed: string | undefined;
}

export interface ProgramOptions {
  /** For the shell. It never contains anything of a delivery: those go to stdin and the environment. */
  readonly command: string;
  /** Additional environment variables. */
  readonly variables: Readonly<Record<string, string>>;
  /** Keep its output; else the output goes to stderr. */
  readonly keepsOutput: boolean;
}

/**
 * Runs the program for one delivery. Rejects when it cannot be started. The signal ends it, with its child processes.
 */
export async function runProgram(delivery: Delivery, options: ProgramOptions, io: Io): Promise<ProgramEnd> {
  const child = spawn(options.command, {
    shell: true,
    detached: process.platform !== "win32",
    env: { ...withoutSecrets(io.env), ...options.variables, ...variablesOf(delivery) },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const stop = () => endGroup(child);
  io.signal.addEventListener("abort", stop);
  const printed = collect(child, options.keepsOutput, io);
  try {
    // A program may end without having read its input.
    child.stdin.on("error", () => {}).end(`${jsonLine(readableEnvelope(delivery))}\n`);
    const [exitCode] = (await once(child, "close")) as [number | null];
    return { exitCode, printed: printed() };
  } finally {
    io.signal.removeEventListener("abort", stop);
  }
}

/** The main members of a delivery, for programs that do not parse the envelope. */
function variablesOf({ envelope, from, type, sessionId, verified, issuer, sealed }: Delivery): Record<string, string> {
  const variables = {
    RELAY_FROM: from,
    RELAY_TYPE: type,
    RELAY_ENVELOPE_ID: envelope.id,
    RELAY_SESSION_ID: sessionId ?? "",
    RELAY_VERIFIED: verified,
    RELAY_ISSUER: issuer ?? "",
    RELAY_SEALED: sealed ? "1" : "",
  };
  // An environment cannot contain NUL; the relay checks deliveries, but this process must not depend on it.
  return Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, value.replaceAll("\0", "")]));
}

function withoutSecrets(env: Io["env"]): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !SECRET_VARIABLES.includes(name)));
}

function collect(child: ChildProcess, keeps: boolean, io: Io): () => string | undefined {
  const chunks: Buffer[] = [];
  let bytes = 0;
  child.stdout?.on("data", (chunk: Buffer) => {
    if (!keeps) {
      io.stderr.write(chunk);
      return;
    }
    bytes += chunk.length;
    if (bytes <= MAX_OUTPUT_BYTES) chunks.push(chunk);
  });
  return () => (bytes > MAX_OUTPUT_BYTES ? undefined : Buffer.concat(chunks).toString("utf8"));
}

/** Signals the process group: a shell does not forward signals to its children. */
function endGroup(child: ChildProcess): void {
  try {
    if (process.platform === "win32") child.kill();
    else if (child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
  } catch {
    // It has already ended.
  }
}
