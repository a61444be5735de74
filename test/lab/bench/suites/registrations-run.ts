import { setTimeout as delay } from "node:timers/promises";
import type { AgentSocket, Frame } from "../../../support/agent.ts";
import { MEMORY_PROBE, type PodProcess } from "../../../support/pod-process.ts";
import { TestRelay } from "../../../support/relay.ts";
import { until } from "../../../support/until.ts";
import { cpuWithout, instant, type Pids, residentBytes, type Span, spanOf } from "../../accounting.ts";
import type { Plan } from "../plan.ts";
import { type Crowd, HOST, listed, type Traffic, withCredentials } from "./registrations-traffic.ts";

/** Registers without an answer, over all connections; more would wait in the relay. */
export const AT_ONCE = 400;
const ANSWERED_WITHIN_MS = 60_000;
const SETTLE_MS = 1000;
const SETTINGS = {
  LOG_LEVEL: "info",
  RELAY_PUBLIC_HOSTS: HOST,
  RELAY_ENVELOPES_PER_SECOND: "0",
  RELAY_BYTES_PER_SECOND: "0",
  RELAY_CONNECTIONS_PER_ADDRESS: "0",
  RELAY_AGENTS_PER_ISSUER: "1000000",
};

export const KINDS = ["listed", "credential"] as const;
export type Kind = (typeof KINDS)[number];
/** In this order: `again` is of the same agents, with the same tokens; `later` is of others, after all that. */
export const COSTS = ["registration", "messages", "again", "later"] as const;
export type Cost = (typeof COSTS)[number];

/** What the pods of one kind were seen to take. */
export interface Measured {
  readonly costs: Readonly<Record<Cost, Span>>;
  readonly podBytes: number;
  readonly redisBytes: number;
}

/** A relay of its own for agents of one kind. */
interface Side {
  readonly kind: Kind;
  /** Agents on each connection. */
  readonly each: number;
  readonly relay: TestRelay;
  readonly pods: readonly PodProcess[];
  readonly pids: Pids;
  readonly traffic: Traffic;
  /** Open so far, in the order of its envelopes by connection. */
  readonly sockets: AgentSocket[];
}

/** The kinds beside each other: what slows the machine for a while slows both. @param kinds whose turn is first. */
export async function measure(plan: Plan, crowd: Crowd, kinds: readonly Kind[]): Promise<Map<Kind, Measured>> {
  const relays = await Promise.all(kinds.map(() => new TestRelay().start()));
  try {
    const sides = await Promise.all(kinds.map((kind, n) => startSide(plan, crowd, kind, relays[n] as TestRelay)));
    const before = await memoryOf(sides);
    const registration = await costsOf(sides, ({ registers }) => registers);
    const after = await memoryOf(sides);
    const messages = await costsOf(sides, (traffic) => traffic.messages);
    const again = await costsOf(sides, ({ registersAgain }) => registersAgain);
    const others = sides.map((side) => ({ ...side, sockets: [] }));
    const later = await costsOf(others, ({ laterRegisters }) => laterRegisters);
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

async function startSide(plan: Plan, crowd: Crowd, kind: Kind, relay: TestRelay): Promise<Side> {
  const traffic = kind === "listed" ? listed(crowd) : await withCredentials(crowd);
  await relay.writeKeys(traffic.keys);
  const start = (role: string) =>
    relay.startProcess("ws-connector", SETTINGS, [...MEMORY_PROBE, ...plan.ours(`${kind} ${role}`)]);
  const [one, other] = [await start("one"), await start("other")];
  const pids: Pids = { one: one.pid, other: other.pid, redis: await relay.redis.pid() };
  return { kind, each: crowd.each, relay, pods: [one, other], pids, traffic, sockets: [] };
}

/**
 * What each side takes for what its agents send, some of one side and then of the other. Connections are opened when they are
 * first needed, since a pod closes one that does not register soon; that does not count.
 * @param envelopesOf by connection.
 */
async function costsOf(sides: readonly Side[], envelopesOf: (traffic: Traffic) => readonly Frame[][]): Promise<Span[]> {
  const begins = sides.map(({ pids }) => instant(pids));
  const opening: Span[][] = sides.map(() => []);
  const ms = sides.map(() => 0);
  const turns = Math.max(...sides.map(({ traffic, each }) => (envelopesOf(traffic).length * each) / AT_ONCE));
  for (let turn = 0; turn < turns; turn += 1) {
    for (const [n, side] of sides.entries()) {
      const [from, to] = [turn, turn + 1].map((number) => (number * AT_ONCE) / side.each);
      const some = envelopesOf(side.traffic).slice(from, to);
      at(opening, n).push(await open(side, (from as number) + some.length));
      const began = performance.now();
      await Promise.all(some.map((envelopes, k) => send(at(side.sockets, (from as number) + k), envelopes)));
      ms[n] = at(ms, n) + performance.now() - began;
    }
  }
  // What a side's processes do while it is the other's turn is of what they did before, such as compiling: it counts.
  return sides.map(({ pids }, n) => {
    const whole = spanOf(at(begins, n), instant(pids));
    return { seconds: at(ms, n) / 1000, cpu: cpuWithout(whole, at(opening, n)) };
  });
}

/** Opens connections until the side has so many. */
async function open({ relay, pods, pids, sockets }: Side, count: number): Promise<Span> {
  const begin = instant(pids);
  const from = sockets.length;
  const more = Array.from({ length: Math.max(count - from, 0) }, (_, n) =>
    relay.connect(at(pods, (from + n) % pods.length)),
  );
  sockets.push(...(await Promise.all(more)));
  return spanOf(begin, instant(pids));
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
