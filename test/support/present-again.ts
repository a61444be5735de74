import { until } from "./until.ts";
import type { WindowView } from "./window-view.ts";

/** Source: docs/protocol.md#presence */
const WITHIN_MS = 2000;
/** What two busy cores may add before it counts as broken. */
const SLACK_MS = 1000;

/** To be called when a window was opened. Resolves when these agents are present in it, as soon as is promised. */
export async function presentAgain(view: WindowView, names: readonly string[]): Promise<void> {
  const arePresent = async () => (await Promise.all(names.map((name) => view.isConnected(name)))).every(Boolean);
  await until("all are present again", arePresent, WITHIN_MS + SLACK_MS);
}
