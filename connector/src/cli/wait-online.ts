import { wholeNumber } from "./arguments.ts";

/** The option `--wait-online`. */

/** The most seconds of a wait. */
export const MAX_WAIT_S = 3600;

/** Its milliseconds; undefined where it is not given. @throws {Failure} as wholeNumber does. */
export function waitOnlineMs(text: string | undefined): number | undefined {
  const seconds = wholeNumber("wait-online", text, 1, MAX_WAIT_S);
  return seconds === undefined ? undefined : seconds * 1000;
}

/** What a command waits for. @param what comes after the target is online. */
export function waitingText(what: string, target: string, waitOnline: number | undefined): string {
  if (waitOnline === undefined) return `Waiting for ${what}.`;
  return `Waiting for ${target} to come online, up to ${waitOnline / 1000} s, then for ${what}.`;
}
