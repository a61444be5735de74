import { aimsTable, describeMachine, isMet, type Machine, machineText, markdown, type Section } from "../report.ts";
import { peersSection } from "./report-tmp.ts";
import type { Plan } from "./plan.ts";

export interface Report {
  readonly at: string;
  readonly machine: Machine;
  readonly plan: Plan;
  readonly sections: readonly Section[];
}

export function reportOf(plan: Plan, sections: readonly Section[]): Report {
  return { at: new Date().toISOString(), machine: describeMachine(), plan, sections };
}

export function reportText({ at, machine, plan, sections }: Report): string {
  const { rounds, measureMs, paceMs, warmUpMs } = plan;
  const how =
    `${rounds} rounds of ${measureMs / 1000} s a cell, ${paceMs / 1000} s at a fixed rate, after ` +
    `${warmUpMs / 1000} s of warm-up.`;
  const aims = sections.flatMap((section) => section.aims);
  const peers = plan.systems.length === 0 ? [] : [peersSection(plan.systems)];
  const tables = [...peers, ...sections].map(markdown);
  const verdict = aims.length === 0 ? [] : [aimsTable("Medians of the rounds.", aims)];
  return [`${at.slice(0, 10)}, ${machineText(machine)} ${how}`, "", ...verdict, ...tables].join("\n");
}

/** Everything that was measured. */
export function reportData({ at, machine, plan, sections }: Report): object {
  const aims = sections.flatMap((section) => section.aims.map((aim) => ({ ...aim, met: isMet(aim) })));
  const measured = Object.fromEntries(sections.map(({ title, data }) => [title, data]));
  return { at, machine, plan, aims, measured };
}
