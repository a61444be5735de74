import { parseArgs } from "node:util";
import { aimsTable, describeMachine, isMet, machineText, markdown, writeDocument, writeJson } from "../report.ts";
import { soak } from "./soak.ts";
import { sectionsOf } from "./verdict.ts";

/**
 * `npm run soak`: does the relay hold level? Agents by the thousand, steady traffic, connections that come and go,
 * connectors that are replaced; exit code 1 when something grows, is lost, or ends. Source: docs/reliability.md.
 */

const USAGE = `npm run soak -- [options]
  --minutes <n>  how long (10)
  --agents <n>   how many (2000)
  --write        put the tables into docs/reliability.md
`;

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    agents: { type: "string", default: "2000" },
    write: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (values.help) {
  process.stdout.write(USAGE);
} else {
  const plan = { minutes: Number(values.minutes), agents: Number(values.agents), say };
  const { samples, outcome } = await soak(plan);
  const sections = sectionsOf(plan, samples, outcome);
  const aims = sections.flatMap((section) => section.aims);
  const machine = describeMachine();
  const at = new Date().toISOString();
  const tables = [aimsTable("What the run is held to.", aims), ...sections.map(markdown)];
  const text = [`${at.slice(0, 10)}, ${machineText(machine)}`, "", ...tables].join("\n");
  process.stdout.write(`${text}\n`);
  for (const line of [...outcome.violations, ...outcome.unexpectedEnds, ...outcome.errorLines]) say(line);
  say(`All figures: ${(await writeJson("soak.json", { at, machine, plan, aims, samples, outcome })).pathname}`);
  if (values.write) await writeDocument("reliability.md", "soak", text);
  if (!aims.every(isMet)) process.exitCode = 1;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
