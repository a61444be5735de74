import { parseArgs } from "node:util";
import { aimsTable, describeMachine, isMet, machineText, markdown, writeDocument, writeJson } from "../../report.ts";
import { soakConnectors } from "./soak.ts";
import { sectionsOf } from "./verdict.ts";

/**
 * `npm run soak:connectors`: do agents of both languages keep their messages while everything around them is killed in turn?
 * Exit code 1 when something is lost, comes twice or out of order, or grows. Source: docs/reliability.md#soak-of-the-connectors.
 */

const USAGE = `npm run soak:connectors -- [options]
  --minutes <n>  how long (10)
  --agents <n>   how many of each language (100)
  --write        put the tables into docs/reliability.md
`;

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    agents: { type: "string", default: "100" },
    write: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (values.help) {
  process.stdout.write(USAGE);
} else {
  const plan = { minutes: Number(values.minutes), agents: Number(values.agents) };
  const outcome = await soakConnectors(plan, say);
  const sections = sectionsOf(plan, outcome);
  const aims = sections.flatMap((section) => section.aims);
  const machine = describeMachine();
  const at = new Date().toISOString();
  const tables = [aimsTable("What the run is held to.", aims), ...sections.map(markdown)];
  const text = [`${at.slice(0, 10)}, ${machineText(machine)}`, "", ...tables].join("\n");
  process.stdout.write(`${text}\n`);
  for (const line of [...outcome.violations, ...outcome.unexpectedEnds]) say(line);
  say(`All figures: ${(await writeJson("soak-connectors.json", { at, machine, plan, aims, outcome })).pathname}`);
  if (values.write) await writeDocument("reliability.md", "soak-connectors", text);
  if (!aims.every(isMet)) process.exitCode = 1;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
