import { setTimeout as delay } from "node:timers/promises";

const LOOK_AGAIN_MS = 10;
/**
 * It ends a test that hangs, before Jest does and with a name. No promise of the system: what is promised within a time
 * says so where it is awaited.
 */
const GENEROUS_MS = 50_000;

/** Resolves as soon as `condition` holds; fails, naming it, when it does not within `withinMs`. */
export async function until(
  name: string,
  condition: () => boolean | Promise<boolean>,
  withinMs = GENEROUS_MS,
): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`Waited ${withinMs} ms in vain: ${name}`);
    await delay(LOOK_AGAIN_MS);
  }
}
