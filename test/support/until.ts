import { hrtime } from "node:process";
import { clearInterval, setInterval } from "node:timers";
import { setTimeout as delay } from "node:timers/promises";

const LOOK_AGAIN_MS = 10;
/** The most that counts at a time. When more has passed, this process stood still. */
const COUNTED_MS = 50;
/**
 * It ends a test that hangs, before Jest does and with a name. No promise of the system: what is promised within a time
 * says so where it is awaited.
 */
const GENEROUS_MS = 50_000;

/**
 * Resolves as soon as `condition` holds. Fails, naming it, when this process has run for `withinMs` before that: time in
 * which a busy machine did not let it run does not count.
 */
export async function until(
  name: string,
  condition: () => boolean | Promise<boolean>,
  withinMs = GENEROUS_MS,
): Promise<void> {
  let ranMs = 0;
  let countedAt = hrtime.bigint();
  const counting = setInterval(() => {
    const now = hrtime.bigint();
    ranMs += Math.min(Number(now - countedAt) / 1e6, COUNTED_MS);
    countedAt = now;
  }, LOOK_AGAIN_MS);
  try {
    while (!(await condition())) {
      if (ranMs > withinMs) throw new Error(`Waited ${withinMs} ms in vain: ${name}`);
      await delay(LOOK_AGAIN_MS);
    }
  } finally {
    clearInterval(counting);
  }
}
