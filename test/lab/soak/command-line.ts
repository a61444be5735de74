import { parseArgs } from "node:util";
import {
  aimsTable,
  describeMachine,
  isMet,
  machineText,
  markdown,
  type Section,
  writeDocument,
  writeJson,
} from "../report.ts";

interface Plan {
  readonly minutes: number;
  readonly agents: number;
}

interface Soak {
  /** Of its part of docs/reliability.md, and of its JSON. */
  readonly name: string;
  readonly command: string;
  /** How many, unless told otherwise, and the help about that. */
  readonly agents: readonly [count: string, help: string];
  /** Runs it. `broken` has what was not as promised, a line each. */
  readonly run: (
    plan: Plan,
    say: (text: string) => void,
  ) => Promise<{ readonly sections: readonly Section[]; readonly broken: readonly string[]; readonly outcome: object }>;
}

/** Runs a soak as its command line says. Exit code 1 when an aim is not met. */
export async function soakFromCommandLine({ name, command, agents: [count, help], run }: Soak): Promise<void> {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "10" },
      agents: { type: "string", default: count },
      write: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(`${command} -- [options]
  --minutes <n>  how long (10)
  --agents <n>   ${help}
  --write        put the tables into docs/reliability.md
`);
    return;
  }
  const plan = { minutes: Number(values.minutes), agents: Number(values.agents) };
  const { sections, broken, outcome } = await run(plan, say);
  const aims = sections.flatMap((section) => section.aims);
  const machine = describeMachine();
  const at = new Date().toISOString();
  const tables = [aimsTable("What the run is held to.", aims), ...sections.map(markdown)];
  const text = [`${at.slice(0, 10)}, ${machineText(machine)}`, "", ...tables].join("\n");
  process.stdout.write(`${text}\n`);
  for (const line of broken) say(line);
  say(`All figures: ${(await writeJson(`${name}.json`, { at, machine, plan, aims, outcome })).pathname}`);
  if (values.write) await writeDocument("reliability.md", name, text);
  if (!aims.every(isMet)) process.exitCode = 1;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
