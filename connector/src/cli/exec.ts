import type { Connector } from "../connector.ts";
import { RelayError } from "../errors.ts";
import type { Delivery, JsonObject } from "../types.ts";
import type { Io } from "./command.ts";
import type { Voice } from "./output.ts";
import { runProgram } from "./programs.ts";

/** A reply is never replied to: two agents that both reply would never come to an end. */
const REPLY_TYPE = "message.reply";

export interface ExecOptions {
  readonly command: string;
  /** Send what the program prints to the sender of the delivery. */
  readonly replies: boolean;
  readonly connector: Connector;
  /** Environment of the program, beside what is of the delivery. */
  readonly variables: Readonly<Record<string, string>>;
  readonly voice: Voice;
}

/** Runs the program for a delivery, and sends its reply. Never rejects: what went wrong is said. */
export async function execute(delivery: Delivery, options: ExecOptions, io: Io): Promise<void> {
  const { command, replies, connector, variables, voice } = options;
  const answers = replies && delivery.type.startsWith("message.") && delivery.type !== REPLY_TYPE;
  const fault = (words: string) => voice.say("exec_failed", words, { envelope_id: delivery.envelope.id }, "yellow");
  try {
    const { exitCode, printed } = await runProgram(delivery, { command, variables, keepsOutput: answers }, io);
    if (io.signal.aborted) return;
    if (exitCode !== 0) return fault(`The program for ${delivery.envelope.id} ended with ${exitCode ?? "a signal"}.`);
    const reply = answers ? replyOf(printed) : undefined;
    if (reply === undefined) return;
    const task = delivery.envelope.task_id;
    await connector.send(delivery.from, reply, { type: REPLY_TYPE, ...(task !== undefined && { taskId: task }) });
  } catch (error) {
    const why = error instanceof RelayError ? `${error.message} ${error.hint}` : (error as Error).message;
    fault(`The program for ${delivery.envelope.id} could not be run, or its reply not sent: ${why}`);
  }
}

/** A JSON object as it is, any other text as a message; undefined for none. Throws for what no envelope can hold. */
function replyOf(printed: string | undefined): JsonObject | undefined {
  if (printed === undefined) throw new RelayError("frame_too_large", { hint: "Let it print less." });
  const text = printed.trim();
  if (text === "") return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  } catch {
    // Then it is a text.
  }
  return { message: text };
}
