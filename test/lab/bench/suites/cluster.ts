import type { Plan } from "../plan.ts";
import type { Section } from "../section.ts";
import { capacitySections } from "./cluster-capacity.ts";
import { fullCallSections } from "./cluster-full-calls.ts";

/** What a Redis Cluster takes off one Redis, by CPU: two cores cannot saturate three primaries. */
export async function clusterSections(plan: Plan): Promise<Section[]> {
  return [...(await fullCallSections(plan)), ...(await capacitySections(plan))];
}
