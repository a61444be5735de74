import { until } from "./until.ts";

/** The runner's own pipes: standard streams, and the channel to the process that started this one. */
const MOST_OWN_PIPES = 4;

/** Call it before the first start; what it returns, after the last stop: fails while a socket or a process is left. */
export function watchLeaks(): () => Promise<void> {
  const ownPipes = Math.min(lasting().filter(isPipe).length, MOST_OWN_PIPES);
  return async () => {
    const left = () => lasting().filter((name) => !isPipe(name));
    const pipes = () => lasting().filter(isPipe).length;
    await until("no socket and no process is left", () => left().length === 0 && pipes() <= ownPipes).catch(() => {
      throw new Error(
        `Left behind: ${left().join(", ") || "nothing"}, and ${pipes() - ownPipes} pipes or unix sockets`,
      );
    });
  };
}

/** Timers and file accesses of the runner come and go. */
function lasting(): string[] {
  return process.getActiveResourcesInfo().filter((name) => /^(TCP|UDP|Pipe|Process)/.test(name));
}

function isPipe(name: string): boolean {
  return name.startsWith("Pipe");
}
