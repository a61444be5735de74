import { Generator } from "../load/generator.ts";
import { PAIRS, type Plan } from "../plan.ts";
import type { SystemUnderTest } from "../systems/system.ts";

/** A generator whose pairs are connected, and that has made the servers' code warm: they run what they compiled last. */
export async function warmPairs(
  { speech, ports, pids }: SystemUnderTest,
  { warmUpMs }: Plan,
  window: number,
): Promise<Generator> {
  const generator = await Generator.start(speech);
  await generator.pair(ports, PAIRS);
  await generator.press({ window, warmUpMs: 0, measureMs: 2 * warmUpMs, pids });
  return generator;
}
