import type { Section } from "../../report.ts";
import type { Plan } from "../plan.ts";
import { capacitySections } from "./cluster-capacity.ts";
import { fullCallSections } from "./cluster-full-calls.ts";
import { wholePodSections } from "./cluster-whole-pods.ts";

/** What a Redis Cluster takes off one Redis, by CPU: two cores cannot saturate three primaries. */
export async function clusterSections(plan: Plan): Promise<Section[]> {
  const suites = [fullCallSections, wholePodSections, capacitySections];
  const sections: Section[] = [];
  for (const suite of suites) sections.push(...(await suite(plan)));
  return sections;
}
