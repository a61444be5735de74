import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { Connector } from "../connector.ts";
import { membersOf } from "../frames.ts";
import type { Output } from "./command.ts";
import { failureOf, usage } from "./failure.ts";
import { carryOut, orderOf } from "./orders.ts";
import { jsonLine, writeLine } from "./output.ts";

/** Orders without an answer at once; the reading of further lines waits. */
const MAX_OPEN = 100;

/**
 * Reads orders, one JSON line each, and answers each with one line, `accepted` or `refused`, that repeats the order's
 * `ref`, or else the number of its line. Orders go out in the order of their lines; answers come as they come. Resolves
 * when the input has ended and all are answered, or when the signal aborts.
 */
export async function serveOrders(
  input: Readable,
  output: Output,
  connector: Connector,
  signal: AbortSignal,
): Promise<void> {
  const open = new Set<Promise<void>>();
  let number = 0;
  const lines = createInterface({ input, signal });
  for await (const line of lines) {
    number += 1;
    if (line.trim() === "") continue;
    const answer = answerTo(line, number, connector).then((text) => writeLine(output, text, signal));
    open.add(answer);
    void answer.finally(() => open.delete(answer));
    if (open.size >= MAX_OPEN) await Promise.race(open);
  }
  await Promise.all(open);
}

/** Never rejects. */
async function answerTo(line: string, number: number, connector: Connector): Promise<string> {
  let ref: unknown = number;
  try {
    const value = parsed(line);
    ref = membersOf(value).ref ?? number;
    return jsonLine({ event: "accepted", ref, ...(await carryOut(connector, orderOf(value))) });
  } catch (error) {
    const { code, message, hint } = failureOf(error);
    const outcome = (error as { outcome?: string }).outcome ?? "refused";
    return jsonLine({ event: "refused", ref, code, message, hint, outcome });
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw usage("A line is not JSON.", "Send one JSON object a line.");
  }
}
