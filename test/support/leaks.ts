import { until } from "./until.ts";

/** What a test must not leave behind: sockets, servers, pipes and processes. Timers of the runner come and go. */
const LASTING = /^(TCP|Pipe|UDP|Process)/;

/** Call it before the first start; what it returns, after the last stop: fails unless all that came since has gone. */
export function watchLeaks(): () => Promise<void> {
  const before = counts();
  return async () => {
    const left = () => Object.entries(counts()).filter(([name, n]) => n > (before[name] ?? 0));
    await until("no socket and no process is left", () => left().length === 0).catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(left())}`);
    });
  };
}

function counts(): Record<string, number> {
  const found: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) {
    if (LASTING.test(name)) found[name] = (found[name] ?? 0) + 1;
  }
  return found;
}
