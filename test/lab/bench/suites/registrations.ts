import { setTimeout as delay } from "node:timers/promises";
import type { AgentSocket, Frame } from "../../../support/agent.ts";
import { MEMORY_PROBE, type PodProcess } from "../../../support/pod-process.ts";
import { TestRelay } from "../../../support/relay.ts";
import { until } from "../../../support/until.ts";
import { instant, type Pids, residentBytes, type Span, spanOf, totalCpu } from "../accounting.ts";
import { inTurn, type Plan } from "../plan.ts";
import { type Section, shown, times } from "../section.ts";
import { median } from "../statistics.ts";
import {
  AGENTS,
  AGENTS_EACH,
  HOST,
  LATER_AGENTS,
  listed,
  type Traffic,
  withCredentials,
} from "./registrations-traffic.ts";

/** Registers without an answer, over all connections; more would wait in the relay. */
const CONNECTIONS_AT_ONCE = 4;
const ANSWERED_WITHIN_MS = 60_000;
const SETTLE_MS = 1000;
const SETTINGS = {
  LOG_LEVEL: "info",
  RELAY_PUBLIC_HOSTS: HOST,
  RELAY_ENVELOPES_PER_SECOND: "0",
  RELAY_BYTES_PER_SECOND: "0",
  RELAY_CONNECTIONS_PER_ADDRESS: "0",
  RELAY_AGENTS_PER_ISSUER: String(AGENTS + LATER_AGENTS),
};

const KINDS = ["listed", "credential"] as const;
type Kind = (typeof KINDS)[number];
/** In this order: `again` is of the same agents, with the same tokens; `later` is of others, after all that. */
const COSTS = ["registration", "messages", "again", "later"] as const;
type Cost = (typeof COSTS)[number];
/** What the pods of one kind were seen to take. */
interface Measured {
  readonly costs: Readonly<Record<Cost, Span>>;
  readonly podBytes: number;
  readonly redisBytes: number;
}

/** What the registration of an agent costs, and its messages, whose key is listed, and whose key a credential brings. */
export async function registrationSections(plan: Plan): Promise<Section[]> {
  const measured: Record<Kind, Measured[]> = { listed: [], credential: [] };
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const [kind, one] of await measure(plan, inTurn(KINDS, round))) {
      measured[kind].push(one);
      const [first, message, again, later] = COSTS.map((what) => shown(totalCpu(one.costs[what]) / countOf(what)));
      plan.say(
        `registrations, round ${round + 1}, ${kind}: ${first} µs each, a message ${message} µs, again ${again} µs, of others later ${later} µs`,
      );
    }
  }
  const over = (kind: Kind, figure: (one: Measured) => number) => median(measured[kind].map(figure));
  const cpu = (kind: Kind, what: Cost) => over(kind, (one) => totalCpu(one.costs[what]) / countOf(what));
  const ratio = (what: Cost) => cpu("credential", what) / cpu("listed", what);
  return [
    {
      title: "Registrations",
      about:
        `${shown(AGENTS)} agents register over two pods, ${AGENTS_EACH} on each connection, each with an Ed25519 key of its own: ` +
        "listed in the keys file, or with a credential of one issuer; then each sends a message, to an agent that nobody has seen, and " +
        `registers again, with the token that its pod has seen. Then ${shown(LATER_AGENTS)} others register. ` +
        "CPU of both pods and Redis; memory that the first registrations add.",
      head: [
        "",
        "s",
        "µs each",
        "µs a message",
        "µs again",
        "µs of others later",
        "pods, KiB an agent",
        "Redis, KiB an agent",
      ],
      rows: KINDS.map((kind) => [
        kind,
        shown(over(kind, ({ costs }) => costs.registration.seconds)),
        shown(cpu(kind, "registration")),
        shown(cpu(kind, "messages")),
        shown(cpu(kind, "again")),
        shown(cpu(kind, "later")),
        shown(over(kind, ({ podBytes }) => podBytes / AGENTS / 1024)),
        shown(over(kind, ({ redisBytes }) => redisBytes / AGENTS / 1024)),
      ]),
      aims: [
        { name: "registration with a credential to one with a listed key", value: ratio("registration"), most: 1.5 },
        { name: "message under a credential to one under a listed key", value: ratio("messages"), most: 1.1 },
      ],
      data: {
        measured,
        ratio: times(ratio("registration")),
        messages: times(ratio("messages")),
        again: times(ratio("again")),
        later: times(ratio("later")),
      },
    },
  ];
}

/** A relay of its own for agents of one kind. */
interface Side {
  readonly kind: Kind;
  readonly relay: TestRelay;
  readonly pods: readonly PodProcess[];
  readonly pids: Pids;
  readonly traffic: Traffic;
}

/** The kinds beside each other: what slows the machine for a while slows both. @param kinds whose turn is first. */
async function measure(plan: Plan, kinds: readonly Kind[]): Promise<Map<Kind, Measured>> {
  const relays = await Promise.all(kinds.map(() => new TestRelay().start()));
  try {
    const sides = await Promise.all(kinds.map((kind, n) => startSide(plan, kind, relays[n] as TestRelay)));
    const first = await connected(sides);
    const before = await memoryOf(sides);
    const registration = await costsOf(first, ({ registers }) => registers);
    const after = await memoryOf(sides);
    const messages = await costsOf(first, (traffic) => traffic.messages);
    const again = await costsOf(first, ({ registersAgain }) => registersAgain);
    const later = await costsOf(await connected(sides), ({ laterRegisters }) => laterRegisters);
    await Promise.all(sides.flatMap(({ pods }) => pods.map((pod) => pod.end("SIGTERM"))));
    return new Map(
      sides.map(({ kind }, n) => [
        kind,
        {
          costs: {
            registration: at(registration, n),
            messages: at(messages, n),
            again: at(again, n),
            later: at(later, n),
          },
          podBytes: at(after, n).podBytes - at(before, n).podBytes,
          redisBytes: at(after, n).redisBytes - at(before, n).redisBytes,
        },
      ]),
    );
  } finally {
    await Promise.all(relays.map((relay) => relay.stop()));
  }
}

async function startSide(plan: Plan, kind: Kind, relay: TestRelay): Promise<Side> {
  const traffic = kind === "listed" ? listed() : await withCredentials();
  await relay.writeKeys(traffic.keys);
  const start = (role: string) =>
    relay.startProcess("ws-connector", SETTINGS, [...MEMORY_PROBE, ...plan.ours(`${kind} ${role}`)]);
  const [one, other] = [await start("one"), await start("other")];
  const pids: Pids = { one: one.pid, other: other.pid, redis: await relay.redis.pid() };
  return { kind, relay, pods: [one, other], pids, traffic };
}

/** New connections of a side, for all of its agents. */
interface Connected {
  readonly side: Side;
  readonly sockets: readonly AgentSocket[];
}

async function connected(sides: readonly Side[]): Promise<Connected[]> {
  const socketsOf = ({ relay, pods, traffic }: Side) =>
    Promise.all(traffic.registers.map((_, n) => relay.connect(at(pods, n % pods.length))));
  return Promise.all(sides.map(async (side) => ({ side, sockets: await socketsOf(side) })));
}

/**
 * What each side takes for what its agents send, a few connections of one side and then of the other.
 * @param envelopesOf by connection.
 */
async function costsOf(all: readonly Connected[], envelopesOf: (traffic: Traffic) => Frame[][]): Promise<Span[]> {
  const begins = all.map(({ side }) => instant(side.pids));
  const ms = all.map(() => 0);
  const connections = Math.max(...all.map(({ sockets }) => sockets.length));
  for (let from = 0; from < connections; from += CONNECTIONS_AT_ONCE) {
    for (const [n, { side, sockets }] of all.entries()) {
      const began = performance.now();
      const some = sockets.slice(from, from + CONNECTIONS_AT_ONCE);
      await Promise.all(some.map((socket, k) => send(socket, envelopesOf(side.traffic)[from + k] ?? [])));
      ms[n] = at(ms, n) + performance.now() - began;
    }
  }
  // What a side's processes do while it is the other's turn is of what they did before, such as compiling: it counts.
  return all.map(({ side }, n) => ({ ...spanOf(at(begins, n), instant(side.pids)), seconds: at(ms, n) / 1000 }));
}

async function send(socket: AgentSocket, envelopes: readonly Frame[]): Promise<void> {
  const from = socket.frames.length;
  for (const envelope of envelopes) socket.send(envelope);
  const isAnswered = () => socket.frames.length - from >= envelopes.length;
  await until("all envelopes are answered", () => isAnswered() || socket.closed !== undefined, ANSWERED_WITHIN_MS);
  if (!isAnswered()) throw new Error(`a connection closed with ${socket.closed?.code}`);
  const refused = socket.frames.slice(from).find(({ accepted }) => accepted !== true);
  if (refused !== undefined) throw new Error(`an envelope was refused: ${refused.code}`);
}

interface Memory {
  readonly podBytes: number;
  readonly redisBytes: number;
}

async function memoryOf(sides: readonly Side[]): Promise<Memory[]> {
  for (const { pid } of sides.flatMap(({ pods }) => pods)) process.kill(pid, "SIGUSR2");
  await delay(SETTLE_MS);
  return sides.map(({ pods, pids }) => ({
    podBytes: pods.reduce((sum, { pid }) => sum + residentBytes(pid), 0),
    redisBytes: residentBytes(pids.redis as number),
  }));
}

function at<T>(list: readonly T[], n: number): T {
  return list[n] as T;
}

function countOf(what: Cost): number {
  return what === "later" ? LATER_AGENTS : AGENTS;
}
