import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { styleText } from "node:util";
import { printable } from "../said-text.ts";
import type { Delivery, Envelope, JsonObject } from "../types.ts";
import type { Failure } from "./failure.ts";

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
type Output = Writable & { readonly isTTY?: boolean; readonly fd?: number };

/** Every line goes through this file, which escapes what a terminal would act on. */

/** A value as one line of JSON. */
export function jsonLine(value: unknown): string {
  return printable(JSON.stringify(value));
}

/** A text as one word of a shell's line. */
export function shellWord(text: string): string {
  return /^[\w./@:+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export type Style = Parameters<typeof styleText>[0];

/** A text that is styled where the output is a terminal that supports it. */
export interface Styled {
  readonly style: Style;
  readonly text: string;
}

/** What one line shows. Nothing in its texts can end it, or act on a terminal. */
export type Line = string | readonly (string | Styled)[];

export function styled(style: Style, text: string): Styled {
  return { style, text };
}

/** The line with its end, as it is written. */
function lineFor(output: Output, line: Line): string {
  const parts = (typeof line === "string" ? [line] : line).map((part) => {
    if (typeof part === "string") return printable(part);
    // FORCE_COLOR would have styleText colour what no terminal shows.
    return output.isTTY ? styleText(part.style, printable(part.text), { stream: output }) : printable(part.text);
  });
  return `${parts.join("")}\n`;
}

/** Writes a line, and waits while the reader is slow. The signal ends the wait. */
export async function writeLine(output: Output, line: Line, signal?: AbortSignal): Promise<void> {
  if (output.write(lineFor(output, line)) || signal?.aborted) return;
  await once(output, "drain", { ...(signal && { signal }) }).catch(() => {});
}

/** With the start of a process it is less than 3 s. */
const SILENT_MS = 2000;

/** Reports on stderr what happens beside a command's result: as text, or as JSON lines for programs. */
export class Reporter {
  readonly #output: Output;
  readonly #json: boolean;
  readonly #said = new Set<string>();

  constructor(output: Output, json: boolean) {
    this.#output = output;
    this.#json = json;
  }

  /** @param event the first member of the JSON line. @param fields the values in the text, for programs. */
  report(event: string, text: string, fields: object = {}, style: Style = "dim"): void {
    const line = this.#json ? jsonLine({ event, message: text, ...fields }) : [styled(style, text)];
    this.#output.write(lineFor(this.#output, line));
  }

  /** Why a command cannot do what it was asked to. */
  fail({ code, message, hint, retry, outcome, outcomeText }: Failure): void {
    const text = ["relay:", message, hint, outcomeText].filter((part) => part !== "").join(" ");
    this.report("error", text, { code, hint, retry, outcome }, "red");
  }

  /** A read has to wait so many ms. */
  readonly waiting = (ms: number): void =>
    this.report("waiting", `The relay's limit for this address is reached: asking again in ${ms} ms.`, { ms });

  /** Says what a command waits for, where that takes longer than somebody at a prompt should wait without knowing. */
  async whileWaiting<T>(text: string, result: Promise<T>): Promise<T> {
    const timer = setTimeout(() => this.report("waiting", text), SILENT_MS);
    try {
      return await result;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Says why a command waits, once for each reason. */
  waitingOnce(text: string, fields?: object): void {
    if (this.#said.has(text)) return;
    this.#said.add(text);
    this.report("waiting", text, fields);
  }

  warn(text: string, fields?: object): void {
    this.report("warning", text, fields, "yellow");
  }

  warnOnce(text: string, fields?: object): void {
    if (this.#said.has(text)) return;
    this.#said.add(text);
    this.warn(text, fields);
  }
}

/** A delivery as a line on stdout: JSON, or text for people at a terminal. */
export function deliveryLine(delivery: Delivery, output: Output, json: boolean): Line {
  if (json || !output.isTTY) return jsonLine({ event: "delivery", ...deliveryMembers(delivery) });
  const { sessionId, verified, issuer, sealed, receivedAt, from, type, payload } = delivery;
  const time = new Date(receivedAt);
  const head = [styled("dim", time.toTimeString().slice(0, 8)), " ", styled("bold", from)];
  const session = sessionId === undefined ? "" : ` ${sessionId}`;
  const who = [verified, ...(issuer === undefined ? [] : [`by ${issuer}`]), ...(sealed ? ["sealed"] : [])];
  return [...head, ` ${type}${session} ${jsonLine(payload)} `, styled("dim", `(${who.join(", ")})`)];
}

/** A delivery for programs, with the protocol's member names. */
export function deliveryMembers(delivery: Delivery): JsonObject {
  const { sessionId, verified, issuer, sealed, receivedAt } = delivery;
  const session = sessionId !== undefined && { session_id: sessionId };
  const who = { verified, ...(issuer !== undefined && { issuer }), sealed };
  const received_at_iso = new Date(receivedAt).toISOString();
  return { envelope: readableEnvelope(delivery), ...session, ...who, received_at_iso };
}

/** The envelope as programs read it: with the payload that was sealed in place of the ciphertext. */
export function readableEnvelope({ envelope, payload, sealed }: Delivery): Envelope {
  return sealed ? { ...envelope, payload } : envelope;
}

/** An option of a command: `parseArgs` reads it, and the help page lists it. */
export interface Option {
  readonly type: "string" | "boolean";
  readonly multiple?: boolean;
  readonly default?: string;
  /** What stands for its value in the help page, such as FILE. */
  readonly value?: string;
  readonly help: string;
}
export type Options = Readonly<Record<string, Option>>;

/** One command of `relay`. */
export interface Command {
  /** The words after its name. */
  readonly usage: string;
  /** Beside those of every command. */
  readonly options: Options;
  /** Command lines. */
  readonly examples: readonly string[];
  /**
   * @param args the words after the command's name.
   * @returns the exit code; see CLI.md#exit-codes.
   * @throws {Failure} or a RelayError, which is turned into one.
   */
  run(args: string[], io: Io): Promise<number>;
}

/** A line of `relay --help`. */
export interface CommandEntry {
  readonly name: string;
  /** The one sentence of its help page. */
  readonly summary: string;
  /** A module is loaded when its command is run: no command pays for the dependencies of another. */
  readonly load: () => Promise<Command>;
}
