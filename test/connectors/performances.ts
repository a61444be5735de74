import type { Cast } from "./cast.ts";
import { Performance } from "./performance.ts";
import type { Run } from "./scenario.ts";

/** Most of a run is waiting. */
const RUNS_AT_ONCE = 16;

/** Begins all runs, a few at once. @returns what was wrong with each, once it has ended. */
export function performAll(casts: ReadonlyMap<Run, Cast>): ReadonlyMap<Run, Promise<Error | undefined>> {
  const ends = new Map([...casts.keys()].map((run) => [run, Promise.withResolvers<Error | undefined>()]));
  const waiting = [...casts];
  const performNext = async (): Promise<void> => {
    const [run, cast] = waiting.shift() ?? [];
    if (run === undefined || cast === undefined) return;
    const wrong = await perform(run, cast).then(
      () => undefined,
      (error: Error) => error,
    );
    ends.get(run)?.resolve(wrong);
    await performNext();
  };
  for (let n = 0; n < RUNS_AT_ONCE; n += 1) void performNext();
  return new Map([...ends].map(([run, { promise }]) => [run, promise]));
}

async function perform({ scenario }: Run, cast: Cast): Promise<void> {
  try {
    await cast.start();
    const performance = new Performance(cast);
    const started = Object.entries(scenario.agents).filter(([, { starts }]) => starts !== false);
    await Promise.all(started.map(([name]) => cast.call(name, "start", {})));
    for (const [n, step] of scenario.steps.entries()) {
      await performance.step(step).catch((error) => {
        throw new Error(`Step ${n + 1}, ${JSON.stringify(step)}: ${error.message}`, { cause: error });
      });
    }
    await performance.nothingElse(scenario.ignores ?? []);
  } finally {
    await cast.stop();
  }
}
