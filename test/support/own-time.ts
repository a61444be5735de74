import { setTimeout as delay } from "node:timers/promises";

const STEP_MS = 10;

/** Resolves when this process has run for `ms`. Time in which a busy machine did not let it run does not count. */
export async function ownTime(ms: number): Promise<"late"> {
  for (let passed = 0; passed < ms; passed += STEP_MS) await delay(STEP_MS);
  return "late";
}
