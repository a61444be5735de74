import { setTimeout as delay } from "node:timers/promises";
import type { Wait } from "./command-line.ts";

const LOOK_AGAIN_MS = 250;

/** A change of the keys file, as a relay shows it. */
export interface Change {
  /** What a relay does from then on, and with what: `accept` the key, `refuse` what an issuer signed. */
  readonly verb: "accept" | "refuse";
  readonly what: string;
  /** Whether it is in force, of each that is asked; undefined where none answers. Without `ask` nothing shows it. */
  readonly ask?: ((wait: Wait) => Promise<readonly (boolean | undefined)[]>) | undefined;
  /** Who was asked, and what that proves. */
  readonly asked?: string;
}

/** The keys file is changed, and a relay that runs does not have the change in time. */
export class NotInForceError extends Error {}

/**
 * Waits until a change is in force at the relay that is asked. @returns what is in force, in a sentence.
 * @throws {NotInForceError} after the wait.
 */
export async function untilInForce({ verb, what, ask, asked }: Change, wait: Wait): Promise<string> {
  const { url, waitMs } = wait;
  const does = `${verb}s ${what}`;
  if (ask === undefined || waitMs === 0)
    return `A relay that reads this file ${does} within 5 seconds; none was asked.\n`;
  const deadline = performance.now() + waitMs;
  for (;;) {
    const answers = await ask(wait);
    if (answers.every((answer) => answer === undefined)) {
      return `No relay answers at ${url} (--url names another): one that reads this file ${does} within 5 seconds, or from its start on.\n`;
    }
    if (answers.every((answer) => answer === true)) return `The relay at ${url} ${does}: ${asked}\n`;
    if (performance.now() >= deadline) break;
    await delay(LOOK_AGAIN_MS);
  }
  throw new NotInForceError(
    `The keys file is changed, but the relay at ${url} did not ${verb} ${what} within ${waitMs / 1000} s. Name another relay with --url or RELAY_URL; under compose run docker compose run --rm keys; else see its log, whether degraded in its /ready has keys_file, and which file it reads (RELAY_KEYS_FILE).`,
  );
}
