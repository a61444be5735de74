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

/**
 * Call it before the first start; what it returns, after the last stop: fails while more sockets, pipes or processes
 * are there than before. The runner's own pipes are there before, and so may be what another suite in the same worker
 * left to time out.
 */
export function watchLeaks(): () => Promise<void> {
  openStandardStreams();
  const before = lasting().length;
  return async () => {
    await until("no socket and no process is left", () => lasting().length <= before).catch(() => {
      throw new Error(`Left behind: ${lasting().length - before} of ${lasting().join(", ")}`);
    });
  };
}

/** Timers and file accesses of the runner come and go. */
function lasting(): string[] {
  return process.getActiveResourcesInfo().filter((name) => /^(TCP|UDP|Pipe|Process)/.test(name));
}

/** Node opens a standard stream when it is first read: the first suite in a worker that does would be held to it. */
function openStandardStreams(): void {
  for (const name of ["stdin", "stdout", "stderr"] as const) void process[name];
}
