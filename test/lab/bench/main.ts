import { parseArgs } from "node:util";
import { type EarlierTree, earlierTree } from "../earlier-tree.ts";
import type { Section } from "../report.ts";
import { writeDocument, writeJson } from "../report.ts";
import type { Plan } from "./plan.ts";
import { reportData, reportOf, reportText } from "./report.ts";
import { growthSections, heartbeatSections, idleSections, memorySections } from "./suites/agents.ts";
import { clusterSections } from "./suites/cluster.ts";
import { ed25519Sections } from "./suites/ed25519.ts";
import { gatewaySections, reportSections } from "./suites/http.ts";
import { registrationSections } from "./suites/registrations.ts";
import { rateSections, relaySections } from "./suites/relay.ts";
import { installed } from "./systems/all.ts";
import { SYSTEM_TITLES, type SystemName } from "./systems/system.ts";

/** `npm run bench`: what the relay costs, beside its peers. Source: docs/performance.md. */

const SUITES: Readonly<Record<string, (plan: Plan) => Promise<Section[]>>> = {
  relay: relaySections,
  rates: rateSections,
  gateway: gatewaySections,
  memory: memorySections,
  heartbeats: heartbeatSections,
  idle: idleSections,
  growth: growthSections,
  registrations: registrationSections,
  reports: reportSections,
  ed25519: ed25519Sections,
  cluster: clusterSections,
};
/** Takes minutes of its own, and has a part of the document of its own. */
const APART = "cluster";
const USAGE = `npm run bench -- [options]
  --quick              one short round: is all in order, and roughly where do we stand
  --rounds <n>         rounds of each figure, of which the median counts (3)
  --only <suites>      of ${Object.keys(SUITES).join(", ")}; ${APART} by itself alone
  --systems <names>    of ${Object.keys(SYSTEM_TITLES).join(", ")}
  --before <commit>    relay and rates: the services of that commit as well, side by side with these
  --windows <n,n>      in flight per sender (1,8,32)
  --rates <n,n>        envelopes a second, on schedule (500,1000,5000,10000)
  --cpu-prof <folder>  CPU profiles of our own servers, one a process, of the last that ran
  --write              put the tables into docs/performance.md
`;

const TOGETHER = Object.keys(SUITES).filter((name) => name !== APART);
const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    only: { type: "string", default: TOGETHER.join() },
    systems: { type: "string", default: Object.keys(SYSTEM_TITLES).join() },
    windows: { type: "string", default: "1,8,32" },
    rates: { type: "string", default: "500,1000,5000,10000" },
    before: { type: "string" },
    "cpu-prof": { type: "string" },
    write: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const chosen = values.only.split(",");

const isApart = chosen.includes(APART);
if (values.help || chosen.some((name) => !(name in SUITES)) || (isApart && chosen.length > 1)) {
  process.stdout.write(USAGE);
} else {
  await using before = values.before === undefined ? undefined : await earlierTree(values.before);
  const plan = planOf(values, before);
  const sections: Section[] = [];
  for (const name of chosen) sections.push(...((await SUITES[name]?.(plan)) ?? []));
  const report = reportOf(plan, sections);
  const text = reportText(report);
  process.stdout.write(`${text}\n`);
  plan.say(
    `All figures: ${(await writeJson(isApart ? `bench-${APART}.json` : "bench.json", reportData(report))).pathname}`,
  );
  if (values.write) await writeDocument("performance.md", isApart ? APART : "benchmark", text);
}

function planOf(
  { quick, rounds, systems, windows, rates, "cpu-prof": profiles }: typeof values,
  before: EarlierTree | undefined,
): Plan {
  return {
    rounds: rounds === undefined ? (quick ? 1 : 3) : Number(rounds),
    warmUpMs: quick ? 500 : 1000,
    measureMs: quick ? 800 : 3000,
    windows: windows.split(",").map(Number),
    rates: rates.split(",").map(Number),
    paceMs: quick ? 1000 : 5000,
    systems: isApart ? [] : installed(systems.split(",") as SystemName[]),
    before,
    memoryConnections: quick ? 3000 : 10_000,
    idleConnections: quick ? 2000 : 10_000,
    idleMs: quick ? 2000 : 15_000,
    ours: (role) => (profiles === undefined ? [] : profileArguments(profiles, role)),
    say: (text) => process.stderr.write(`${text}\n`),
  };
}

function profileArguments(folder: string, role: string): string[] {
  return ["--cpu-prof", `--cpu-prof-dir=${folder}`, `--cpu-prof-name=${role.replace(" ", "-")}.cpuprofile`];
}
