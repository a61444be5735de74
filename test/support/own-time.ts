import { setTimeout as delay } from "node:timers/promises";

const STEP_MS = 10;

/**
 * Resolves once this process could run for so long. Time in which it stood still does not count: a busy machine breaks no
 * promise of what is done within a time.
 */
export async function ownTime(ms: number): Promise<"late"> {
  for (let passed = 0; passed < ms; passed += STEP_MS) await delay(STEP_MS);
  return "late";
}
