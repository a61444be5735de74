import { until } from "./until.ts";

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
