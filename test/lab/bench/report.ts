import { aimsTable, describeMachine, isMet, type Machine, machineText, markdown, type Section } from "../report.ts";
import { MAX_VERIFICATION_THREADS, REDIS_CLIENT, SHARDED_ADAPTER, SOCKET_IO, WEBSOCKETS } from "./peers/peer.ts";
import type { Plan } from "./plan.ts";
import { SYSTEM_TITLES, type SystemName } from "./systems/system.ts";

interface Report {
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
export function peersSection(systems: readonly SystemName[]): Section {
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
