import type { Connector } from "../../connector.ts";
import { membersOf } from "../../frames.ts";
import { parseJson } from "../../parse-json.ts";
import { failureOf, usageError } from "../failure.ts";
import { jsonLine } from "../output.ts";
import { executeAsk } from "./ask.ts";
import { execute, isFollow, parseRequest, receiptAskedBy, sealedOf } from "./request.ts";

/** With this many requests unanswered, no further line is read. */
const MAX_UNANSWERED = 100;

/** Where the hint of a command names one of its options: a line has members. */
const HINTS: Readonly<Record<string, string>> = {
  target_not_online: "Send it again when the target is online; wait_online_ms waits for that.",
  recipient_unknown:
    "Check its id. It has to have been online with a credential: wait_online_ms waits for that, then seals again.",
};

interface Serving {
  /**
   * Runs a call over the agent's connection, and ends it when nobody can wait for it any more.
   * @param outlasts it goes on where the connection is lost meanwhile, since it has a time of its own.
   */
  readonly bounded: <T>(call: (signal: AbortSignal) => Promise<T>, outlasts?: boolean) => Promise<T>;
  /** Begins to tell what comes over the connection. @returns the first line. */
  readonly follow?: (() => string) | undefined;
}

/**
 * Takes control requests, one JSON object a line, and answers each with one line, `accepted`, `reply`, `receipt` or `refused`, that
 * repeats the request's `ref`, or else the number of its line. Envelopes go out in the order of the lines; answers are written as
 * they arrive. Resolves when the lines have ended and all requests are answered.
 * @param write resolves when the next line can be written.
 */
export async function serveRequestLines(
  lines: AsyncIterable<string>,
  write: (line: string) => Promise<void>,
  connector: Connector,
  { bounded, follow }: Serving,
): Promise<void> {
  const unanswered = new Set<Promise<void>>();
  let number = 0;
  for await (const line of lines) {
    number += 1;
    if (line.trim() === "") continue;
    const answer = answerTo(line, number, connector, { bounded, follow }).then(write);
    unanswered.add(answer);
    void answer.then(() => unanswered.delete(answer));
    if (unanswered.size >= MAX_UNANSWERED) await Promise.race(unanswered);
  }
  await Promise.all(unanswered);
}

/** Never rejects. */
async function answerTo(line: string, number: number, connector: Connector, how: Serving): Promise<string> {
  let ref: unknown = number;
  try {
    const value = jsonOf(line);
    ref = refIn(value) ?? number;
    if (how.follow && isFollow(value)) return how.follow();
    const session = receiptAskedBy(value);
    if (session !== undefined) return jsonLine({ event: "receipt", ref, receipt: connector.receipt(session) });
    const request = parseRequest(value);
    if ("ask" in request) {
      const reply = await how.bounded((signal) => executeAsk(connector, request, signal), true);
      return jsonLine({ event: "reply", ref, ...reply });
    }
    const accepted = await how.bounded((signal) => execute(connector, request, signal));
    return jsonLine({ event: "accepted", ref, ...accepted, ...sealedOf(request) });
  } catch (error) {
    const { code, message, hint: hinted, retry, outcome } = failureOf(error);
    const hint = Object.hasOwn(HINTS, code) ? HINTS[code] : hinted;
    return jsonLine({ event: "refused", ref, code, message, hint, retry, outcome });
  }
}

/** A text or a number: a value of any depth could not be written again. */
function refIn(value: unknown): string | number | undefined {
  const { ref } = membersOf(value);
  return typeof ref === "string" || typeof ref === "number" ? ref : undefined;
}

function jsonOf(line: string): unknown {
  try {
    return parseJson(line);
  } catch {
    throw usageError("A line is not JSON.", "Send one JSON object a line.");
  }
}
