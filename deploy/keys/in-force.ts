import { setTimeout as delay } from "node:timers/promises";
import type { Wait } from "./command-line.ts";

const FIRST_LOOK_MS = 250;
/** Thirty looks a minute: a gateway takes 60 failed API keys of an address, and a connector 60 connections. */
const LAST_LOOK_MS = 2000;

/** By who is asked, a gateway or a connector: whether it shows that the change is in force. Undefined where none answers. */
export type Shown = Readonly<Partial<Record<"gateway" | "connector", boolean | undefined>>>;

/** A change of the keys file, as a relay shows it. */
export interface Change {
  /** What a relay does from then on, and with what: `accept` the key, `refuse` what an issuer signed. */
  readonly verb: "accept" | "refuse";
  readonly what: string;
  /** Without `ask` nothing shows it. */
  readonly ask?: ((wait: Wait) => Promise<Shown>) | undefined;
  /** Where the change itself cannot be seen: what was seen in its place, in a sentence. */
  readonly seen?: string;
}

/** The keys file is changed, and a relay that runs does not have the change in time, or another address was named in its place. */
export class NotInForceError extends Error {}

/**
 * Waits until a change is in force at the relay that is asked. @returns what is in force, in a sentence.
 * @throws {NotInForceError} after the wait, and at once for a redirect.
 */
export async function untilInForce({ verb, what, ask, seen }: Change, wait: Wait): Promise<string> {
  const { url, waitMs } = wait;
  const does = `${verb}s ${what}`;
  if (ask === undefined || waitMs === 0)
    return `A relay that reads this file ${does} within 5 seconds; none was asked.\n`;
  const deadline = performance.now() + waitMs;
  let shown: Shown = {};
  for (let lookAgainMs = FIRST_LOOK_MS; ; lookAgainMs = Math.min(2 * lookAgainMs, LAST_LOOK_MS)) {
    shown = merged(shown, await ask(wait));
    const leftMs = deadline - performance.now();
    const isLate = leftMs <= 0;
    const answers = Object.values(shown);
    if (answers.every((answer) => answer === undefined)) {
      return `No relay answers at ${url}. Name another address with --url; if that has the websocket alone, set RELAY_HTTP_URL. A relay that reads this file ${does} within 5 seconds, or from its start on.\n`;
    }
    // A connector at another address never answers at this one: by the end of the wait the gateway's word is enough.
    if (answers.every((answer) => answer === true || (isLate && answer === undefined))) {
      if (seen !== undefined) return `The relay at ${url} should ${verb} ${what} by now. ${seen}\n`;
      return `The relay at ${url} ${does}: ${whoOf(shown)} Others load the change within 5 seconds.\n`;
    }
    if (isLate) break;
    await delay(Math.min(lookAgainMs, leftMs));
  }
  throw new NotInForceError(
    `The keys file is changed, but the relay at ${url} does not show after ${waitMs / 1000} s that it ${does}: ${whoOf(shown)} Name another relay with --url or RELAY_URL; under compose run docker compose run --rm keys; else see its log, whether degraded in its /ready has keys_file, and which file it reads (RELAY_KEYS_FILE).`,
  );
}

/** An answer holds until the next. */
function merged(before: Shown, now: Shown): Shown {
  const answers = Object.entries(now).map(([who, answer]) => [who, answer ?? before[who as keyof Shown]]);
  return Object.fromEntries(answers) as Shown;
}

const GATEWAY_HINT = " (RELAY_HTTP_URL names its address)";

function whoOf(shown: Shown): string {
  const named = (isSilent: boolean) =>
    Object.entries(shown).flatMap(([who, answer]) => ((answer === undefined) === isSilent ? [who] : []));
  const [asked, silent] = [named(false), named(true)];
  const none = silent.map((who) => `, and no ${who} answers there${who === "gateway" ? GATEWAY_HINT : ""}`).join("");
  return `${asked.map((who) => `one ${who}`).join(" and ")} ${asked.length > 1 ? "were" : "was"} asked${none}.`;
}
