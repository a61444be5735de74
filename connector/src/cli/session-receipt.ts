import { open, rm } from "node:fs/promises";
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
const CHOOSE_ANOTHER = "Give --receipt the name of a new file.";
const PRINTED_AGAIN = "The relay listen that runs, if there is one, prints it again: relay receipt.";

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

/** Writes a receipt as `relay receipt` prints it. */
export type WriteReceipt = (receipt: unknown) => Promise<void>;

/**
 * Makes the file of a receipt before what it is the receipt of is sent: whoever names what exists, such as a key file, or what
 * cannot be written, has sent nothing. Without a receipt nothing is left of it.
 * @throws {Failure} `failed` when the file exists, or cannot be written.
 */
export async function withReceiptFile<T>(file: string, use: (write: WriteReceipt) => Promise<T>): Promise<T> {
  const handle = await open(file, "wx").catch(({ code }: NodeJS.ErrnoException) => {
    if (code === "EEXIST") throw new Failure("failed", `${file} exists already; nothing was sent.`, CHOOSE_ANOTHER);
    throw new Failure("failed", `${file} cannot be written (${code}); nothing was sent.`, CHOOSE_ANOTHER);
  });
  let isWritten = false;
  try {
    return await use(async (receipt) => {
      await handle.writeFile(`${jsonLine(receipt)}\n`).catch(({ code }) => {
        throw new Failure("failed", `The receipt cannot be written to ${file} (${code}).`, PRINTED_AGAIN);
      });
      isWritten = true;
    });
  } finally {
    await handle.close();
    if (!isWritten) await rm(file, { force: true });
  }
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
