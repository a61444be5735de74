import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { RelayError } from "../errors.ts";
import { parseJson } from "../parse-json.ts";
import { isAnswerable } from "../replies.ts";
import type { Delivery, JsonObject } from "../types.ts";
import { within } from "../within.ts";
import { textIn } from "./files.ts";
import { type Io, jsonLine, type Reporter, readableEnvelope } from "./io.ts";
import { SECRET_VARIABLES } from "./key-file.ts";

interface ExecOptions {
  readonly command: string;
  /** Send what the program prints to the sender of the delivery. */
  readonly replies: boolean;
  /** Environment of the program, beside the variables of the delivery. */
  readonly variables: Readonly<Record<string, string>>;
  readonly reporter: Reporter;
  /** How long a program may keep the next delivery waiting before that is reported. */
  readonly slowAfterMs?: number;
}

const SLOW_AFTER_MS = 60_000;

/** Runs the program for a delivery, and sends its reply. Never rejects: failures are reported. */
export async function runForDelivery(delivery: Delivery, options: ExecOptions, io: Io): Promise<void> {
  const { command, replies, variables, reporter, slowAfterMs = SLOW_AFTER_MS } = options;
  const isAnswered = replies && isAnswerable(delivery.type);
  // What comes of a reply is dropped, so that two who both reply come to an end.
  const isRead = isAnswered || (replies && delivery.type === "session.request");
  const reportFailure = (text: string) =>
    reporter.report("exec_failed", text, { envelope_id: delivery.envelope.id }, "yellow");
  const slow = () => {
    const text = `The program for ${delivery.envelope.id} still runs after ${slowAfterMs / 1000} s. Later deliveries wait for its end.`;
    reporter.report("exec_slow", text, { envelope_id: delivery.envelope.id }, "yellow");
  };
  const timer = setTimeout(slow, slowAfterMs);
  try {
    const { exitCode, printed } = await runProgram(delivery, { command, variables, keepsOutput: isRead }, io);
    if (io.signal.aborted) return;
    if (exitCode !== 0)
      return reportFailure(`The program for ${delivery.envelope.id} ended with ${exitCode ?? "a signal"}.`);
    const reply = isRead ? replyOf(printed) : undefined;
    if (reply === undefined) return;
    if (!isAnswered) return reportFailure(undecided(delivery));
    const sent = await delivery.reply(reply);
    if (sent.delivery.canDeliverRealtime) return;
    const lost = `The reply to ${delivery.from} reached nobody: it is ${sent.delivery.status}, and the relay keeps nothing.`;
    reporter.report("reply_not_delivered", lost, { envelope_id: delivery.envelope.id, to: delivery.from }, "yellow");
  } catch (error) {
    const why = error instanceof RelayError ? `${error.message} ${error.hint}` : (error as Error).message;
    reportFailure(`The program for ${delivery.envelope.id} could not be run, or its reply could not be sent: ${why}`);
  } finally {
    clearTimeout(timer);
  }
}

/** Whoever prints a reply to a request may believe that it was decided. */
function undecided({ envelope, sessionId }: Delivery): string {
  const what = `The output of the program for ${envelope.id} was not sent, because a session.request gets a decision and no reply.`;
  return `${what} Run relay approve ${sessionId}, or relay reject.`;
}

/** A JSON object as it is, any other text as a message; undefined for no output. Throws `frame_too_large`. */
function replyOf(printed: string | undefined): JsonObject | undefined {
  if (printed === undefined) throw new RelayError("frame_too_large", { hint: "Shorten what the program prints." });
  const text = printed.trim();
  if (text === "") return undefined;
  try {
    const value: unknown = parseJson(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  } catch {
    // Not JSON: sent as a text.
  }
  return { message: text };
}

/** More than fits into an envelope. */
const MAX_OUTPUT_BYTES = 65_536;
/** What a program printed before it ended has come by then, whatever of it still holds its standard output. */
export const LAST_OUTPUT_MS = 1000;
/** What the signal does not end by then is killed. */
export const END = { withinMs: 5000 } as const;
const LOOK_MS = 50;

/** How a program ended. */
interface ProgramEnd {
  readonly exitCode: number | null;
  /** What it printed; empty unless it was kept. Undefined when it was more than fits into an envelope. */
  readonly printed: string | undefined;
}

interface ProgramOptions {
  /** For the shell. It never contains anything of a delivery: those go to stdin and the environment. */
  readonly command: string;
  /** Additional environment variables. */
  readonly variables: Readonly<Record<string, string>>;
  /** Keep its output; else the output goes to stderr. */
  readonly keepsOutput: boolean;
}

/**
 * Runs the program for one delivery. Rejects when it cannot be started, or the signal has aborted. The signal ends it, with its
 * child processes. What it leaves behind when it ends goes on, and has nothing of this process: where it holds an output that is
 * kept, it holds up the next by a second.
 */
export async function runProgram(delivery: Delivery, options: ProgramOptions, io: Io): Promise<ProgramEnd> {
  io.signal.throwIfAborted();
  // An output that is not kept goes there without this process: what a program leaves behind can still write it.
  const stderr = io.stderr.fd ?? "ignore";
  const child = spawn(options.command, {
    shell: true,
    detached: process.platform !== "win32",
    env: { ...withoutSecrets(io.env), ...options.variables, ...variablesOf(delivery) },
    stdio: ["pipe", options.keepsOutput ? "pipe" : stderr, stderr],
  });
  let ending: Promise<void> | undefined;
  const stop = () => (ending = endGroup(child));
  io.signal.addEventListener("abort", stop);
  const printed = collect(child);
  try {
    // A program may end without having read its input. One that could not be started may have none.
    child.stdin?.on("error", () => {}).end(`${jsonLine(readableEnvelope(delivery))}\n`);
    const exitCode = await endOf(child);
    return { exitCode, printed: printed() };
  } finally {
    io.signal.removeEventListener("abort", stop);
    child.stdout?.destroy();
    await ending;
  }
}

/** @returns its exit code, once all that it printed is read. */
async function endOf(child: ChildProcess): Promise<number | null> {
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const [exitCode] = (await once(child, "exit")) as [number | null];
  await within(LAST_OUTPUT_MS, closed);
  return exitCode;
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

function collect(child: ChildProcess): () => string | undefined {
  const chunks: Buffer[] = [];
  let bytes = 0;
  child.stdout?.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= MAX_OUTPUT_BYTES) chunks.push(chunk);
  });
  return () => (bytes > MAX_OUTPUT_BYTES ? undefined : textIn(Buffer.concat(chunks), "What it printed"));
}

/** Ends the program and what it started. */
async function endGroup(child: ChildProcess): Promise<void> {
  const askedAt = performance.now();
  let isThere = signalGroup(child, "SIGTERM");
  while (isThere && performance.now() - askedAt < END.withinMs) {
    await delay(LOOK_MS);
    isThere = signalGroup(child, 0);
  }
  if (isThere) signalGroup(child, "SIGKILL");
}

/** Signals the process group: a shell does not forward signals to its children. @returns whether anything of it was there. */
function signalGroup(child: ChildProcess, signal: NodeJS.Signals | 0): boolean {
  if (child.pid === undefined) return false;
  if (process.platform === "win32") return child.kill(signal);
  try {
    return process.kill(-child.pid, signal);
  } catch {
    return false;
  }
}
