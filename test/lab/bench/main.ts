import { parseArgs } from "node:util";
import { type EarlierTree, earlierTree } from "../earlier-tree.ts";
import {
  aimsTable,
  describeMachine,
  isMet,
  type Machine,
  machineText,
  markdown,
  type Section,
  writeDocument,
  writeJson,
} from "../report.ts";
import { MAX_VERIFICATION_THREADS, REDIS_CLIENT, SHARDED_ADAPTER, SOCKET_IO, WEBSOCKETS } from "./peers/peer.ts";
import type { Plan } from "./plan.ts";
import { growthSections, heartbeatSections, idleSections, memorySections } from "./suites/agents.ts";
import { clusterSections } from "./suites/cluster.ts";
import { gatewaySections, reportSections } from "./suites/http.ts";
import { registrationSections } from "./suites/registrations.ts";
import { ed25519Sections, rateSections, relaySections } from "./suites/relay.ts";
import { installed, SYSTEM_TITLES, type SystemName } from "./systems.ts";

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

interface Report {
  readonly at: string;
  readonly machine: Machine;
  readonly plan: Plan;
  readonly sections: readonly Section[];
}

function reportOf(plan: Plan, sections: readonly Section[]): Report {
  return { at: new Date().toISOString(), machine: describeMachine(), plan, sections };
}

function reportText({ at, machine, plan, sections }: Report): string {
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
function reportData({ at, machine, plan, sections }: Report): object {
  const aims = sections.flatMap((section) => section.aims.map((aim) => ({ ...aim, met: isMet(aim) })));
  const measured = Object.fromEntries(sections.map(({ title, data }) => [title, data]));
  return { at, machine, plan, aims, measured };
}

/** An option of a peer, and why it has it. */
type Option = readonly [option: string, why: string];

const PIPELINING: Option = [
  code(REDIS_CLIENT),
  "what one turn of the event loop asks of Redis leaves in one write and is answered in one read",
];
const NO_DEFLATE = "100 bytes cost more to compress than they save";
const BARE: readonly Option[] = [
  PIPELINING,
  ["Buffers from the websocket to Redis and back", "a message is decoded to find its target, and never encoded again"],
  ["one channel a pod", "Redis writes a message to the pod that has the target, and to no other"],
  [code(WEBSOCKETS), `${NO_DEFLATE}; nobody asks for a list of clients`],
];
const SOCKET_IO_SERVER: readonly Option[] = [PIPELINING, [code(SOCKET_IO), `no polling first; ${NO_DEFLATE}`]];

const OF_SYSTEMS: Readonly<Record<Exclude<SystemName, "agent-relay">, readonly Option[]>> = {
  "agent-relay-gathering": [["`RELAY_GATHER_MS=1`", "acceptance calls begin at least a millisecond apart"]],
  bare: BARE,
  "bare-acks": [
    ["all of these, and an ack of 150 bytes when Redis has taken the message", "any relay that answers does this"],
  ],
  "socket.io": [
    ...SOCKET_IO_SERVER,
    ["`createAdapter`", "PUBLISH; each server gets all, and drops what is not for it"],
  ],
  "socket.io-sharded": [
    ["the same, `createShardedAdapter`", "SPUBLISH; the better of the two counts"],
    [code(SHARDED_ADAPTER), "an agent's channel goes to the server alone that has the agent"],
  ],
  nats: [
    ["two servers, one route", "as two pods"],
    ["`no_tls: true`, no compression", NO_DEFLATE],
  ],
};
const OF_OTHERS: Readonly<Record<string, readonly Option[]>> = {
  "bare Koa that signs": [
    PIPELINING,
    ["koa-body", "ours reads bodies with it too"],
    ["libsodium", "it signs in half the time of Node's"],
  ],
  "verification alone": [
    ["libsodium", "it verifies in half the time of Node's"],
    [
      `a loop on each of at most ${MAX_VERIFICATION_THREADS} threads, one a core`,
      "as many threads as a pod has, and no message to them and back",
    ],
  ],
};

/** What each peer is given, so that it is at its best. */
function peersSection(systems: readonly SystemName[]): Section {
  const peers = systems.flatMap((name) =>
    name === "agent-relay" ? [] : [[SYSTEM_TITLES[name], OF_SYSTEMS[name]] as const],
  );
  const rows = [...peers, ...Object.entries(OF_OTHERS)].flatMap(([title, options]) =>
    options.map(([option, why], n) => [n === 0 ? title : "", option, why]),
  );
  return {
    title: "Peers",
    about: "What each is given, so that it is at its best; all else is as it comes.",
    head: ["", "option", "why"],
    rows,
    aims: [],
    data: null,
  };
}

function code(options: object): string {
  const texts = Object.entries(options).map(([name, value]) => `\`${name}: ${JSON.stringify(value)}\``);
  return texts.join(", ");
}

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
