import { RelayError } from "../errors.ts";
import { parseJson } from "../parse-json.ts";
import { isAnswerable } from "../replies.ts";
import type { Delivery, JsonObject } from "../types.ts";
import type { Io } from "./io.ts";
import { runProgram } from "./programs.ts";
import type { Reporter } from "./reporter.ts";

export interface ExecOptions {
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
    const text = `The program for ${delivery.envelope.id} still runs after ${slowAfterMs / 1000} s: what comes meanwhile waits for its end.`;
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
  const what = `What the program for ${envelope.id} printed was not sent: a session.request is decided, not replied to.`;
  return `${what} Use relay approve ${sessionId}, or relay reject.`;
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
