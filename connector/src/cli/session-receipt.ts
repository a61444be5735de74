import { writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { RelayError } from "../errors.ts";
import { Failure } from "./failure.ts";
import { jsonLine } from "./output.ts";
import type { Transport } from "./transports/transport.ts";

/** A look-up of the session may overtake the delivery of its decision; nobody waits longer for one that went elsewhere. */
const DELIVERED_WITHIN_MS = 1000;
const ASK_AGAIN_MS = 50;
/** What is wrong with a receipt for good: only the decision may still come. */
const DECISION = "decision";

/** The receipt of a session that was just decided. @throws {Failure | RelayError} `receipt_incomplete` when there is none. */
export async function receiptOf(sessionId: string, transport: Transport, signal: AbortSignal): Promise<unknown> {
  if (transport.receipt === undefined) throw signedByGateway();
  const giveUpAt = performance.now() + DELIVERED_WITHIN_MS;
  for (;;) {
    try {
      return await transport.receipt(sessionId);
    } catch (error) {
      if (!mayStillCome(error) || performance.now() >= giveUpAt || signal.aborted) throw error;
      await delay(ASK_AGAIN_MS, undefined, { signal }).catch(() => {});
    }
  }
}

/** As `relay receipt` prints it. @throws {Failure} `failed` when the file cannot be written. */
export async function writeReceipt(file: string, receipt: unknown): Promise<void> {
  await writeFile(file, `${jsonLine(receipt)}\n`).catch(({ code }: NodeJS.ErrnoException) => {
    const hint = "The relay listen that runs, if there is one, prints it again: relay receipt.";
    throw new Failure("failed", `The receipt cannot be written to ${file} (${code}).`, hint);
  });
}

/** A listener does not tell what is missing. */
function mayStillCome(error: unknown): boolean {
  if (error instanceof RelayError) return error.missing?.includes(DECISION) === true;
  return error instanceof Failure && error.code === "receipt_incomplete";
}

function signedByGateway(): Failure {
  return new Failure(
    "receipt_incomplete",
    "There is no receipt: the relay's gateway signed the request, not this agent.",
    "Unset RELAY_API_KEY to request with the agent's own key.",
  );
}
