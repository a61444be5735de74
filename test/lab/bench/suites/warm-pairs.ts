import { Generator } from "../load/generator.ts";
import { type Plan, TARGETS } from "../plan.ts";
import type { SystemUnderTest } from "../systems/system.ts";

/** A generator whose pairs are connected, and that has made the servers' code warm: they run what they compiled last. */
export async function warmPairs(under: SystemUnderTest, { warmUpMs }: Plan, window: number): Promise<Generator> {
  const generator = await connectedPairs(under);
  await generator.press({ window, warmUpMs: 0, measureMs: 2 * warmUpMs, pids: under.pids });
  return generator;
}

/** The same, warm by a schedule: nothing that was signed for another load stays, to grow old. */
export async function pacedPairs(under: SystemUnderTest, { warmUpMs }: Plan, perSecond: number): Promise<Generator> {
  const generator = await connectedPairs(under);
  await generator.pace({ perSecond, warmUpMs, measureMs: warmUpMs, pids: under.pids });
  return generator;
}

async function connectedPairs({ speech, ports }: SystemUnderTest): Promise<Generator> {
  const generator = await Generator.start(speech);
  await generator.pair(ports, TARGETS);
  return generator;
}
