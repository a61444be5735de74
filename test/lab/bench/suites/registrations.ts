import { generateKeyPairSync, sign } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type AgentKey, type AgentSocket, type Frame, signed } from "../../../support/agent.ts";
import { registerWith, TestIssuer } from "../../../support/issuer.ts";
import { MEMORY_PROBE, type PodProcess } from "../../../support/pod-process.ts";
import { TestRelay } from "../../../support/relay.ts";
import { until } from "../../../support/until.ts";
import { cpuWithout, instant, type Pids, residentBytes, type Span, spanOf, totalCpu } from "../../accounting.ts";
import { median, type Section, shown, times } from "../../report.ts";
import { inTurn, type Plan } from "../plan.ts";
import { connectionsWithin, limitText } from "./agents.ts";

/** Of the relay, as its agents dial it. */
const HOST = "relay.example";
const AGENTS = 10_000;
/** As many agents as a connection may carry: there a socket costs nearly nothing of a registration. */
const MOST_EACH = 100;

/** What the registration of an agent costs, and its messages, whose key is listed, and whose key a credential brings. */
export async function registrationSections(plan: Plan): Promise<Section[]> {
  const connections = Math.floor(connectionsWithin(KINDS.length * AGENTS) / KINDS.length);
  const alone = { agents: connections, laterAgents: 0, each: 1 };
  const together = { agents: AGENTS, laterAgents: AGENTS, each: MOST_EACH };
  return [
    await sectionOf(plan, "Registrations", alone, "each on a connection of its own"),
    await sectionOf(plan, "Registrations, many on a connection", together, `${MOST_EACH} on each connection`),
  ];
}

async function sectionOf(plan: Plan, title: string, crowd: Crowd, place: string): Promise<Section> {
  const { agents, laterAgents } = crowd;
  const measured: Record<Kind, Measured[]> = { listed: [], credential: [] };
  const countOf = (what: Cost) => (what === "later" ? laterAgents : agents);
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const [kind, one] of await measure(plan, crowd, inTurn(KINDS, round))) {
      measured[kind].push(one);
      const [first, message, again, later] = COSTS.map((what) => shown(totalCpu(one.costs[what]) / countOf(what)));
      plan.say(
        `${title}, round ${round + 1}, ${kind}: ${first} µs each, a message ${message} µs, again ${again} µs, of others later ${later} µs`,
      );
    }
  }
  const over = (kind: Kind, figure: (one: Measured) => number) => median(measured[kind].map(figure));
  const cpu = (kind: Kind, what: Cost) => over(kind, (one) => totalCpu(one.costs[what]) / countOf(what));
  const ratio = (what: Cost) => cpu("credential", what) / cpu("listed", what);
  const others = laterAgents === 0 ? "" : ` Then ${shown(laterAgents)} others register.`;
  return {
    title,
    about:
      `${shown(agents)} agents register over two pods, ${place}, each with an Ed25519 key of its own: ` +
      "listed in the keys file, or with a credential of one issuer; then each sends a message, to an agent that nobody has seen, and " +
      `registers again, with the token that its pod has seen.${others} The two kinds take turns, ${AT_ONCE} agents at a time. ` +
      `CPU of both pods and Redis, without that of opening connections; memory that the first registrations add, with their connections.${limitText(agents, AGENTS)}`,
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
      shown(over(kind, ({ podBytes }) => podBytes / agents / 1024)),
      shown(over(kind, ({ redisBytes }) => redisBytes / agents / 1024)),
    ]),
    aims: [
      {
        name: `registration with a credential to one with a listed key, ${place}`,
        value: ratio("registration"),
        most: 1.5,
      },
      { name: `message under a credential to one under a listed key, ${place}`, value: ratio("messages"), most: 1.1 },
    ],
    data: {
      measured,
      ratio: times(ratio("registration")),
      messages: times(ratio("messages")),
      again: times(ratio("again")),
      later: times(ratio("later")),
    },
  };
}

/** Registers without an answer, over all connections; more would wait in the relay. */
const AT_ONCE = 400;
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
async function measure(plan: Plan, crowd: Crowd, kinds: readonly Kind[]): Promise<Map<Kind, Measured>> {
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

/** What the agents of the registrations send, made before anything is measured. */

const NOBODY = "agent://load.nobody";

/** How many agents there are, and how they come. */
interface Crowd {
  readonly agents: number;
  /** Agents that register once the pods have taken those, so that what is asked of them has been compiled. */
  readonly laterAgents: number;
  /** Agents on each connection. */
  readonly each: number;
}

/** Envelopes by connection. */
interface Traffic {
  readonly keys: object;
  readonly registers: Frame[][];
  readonly messages: Frame[][];
  readonly registersAgain: Frame[][];
  readonly laterRegisters: Frame[][];
}

const agentOf = (n: number) => `agent://load.a${n}`;

const messageOf = (key: AgentKey, from: string) =>
  signed(key, { type: "message.send", from, to: NOBODY, payload: { text: "hello" } });

/** Of agents whose keys are listed. */
function listed({ agents, laterAgents, each }: Crowd): Traffic {
  const made = Array.from({ length: agents + laterAgents }, (_, n) => {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const record = {
      key_id: `k-${n}`,
      alg: "ed25519",
      public_key: publicKey.export({ format: "jwk" }).x,
      agents: [agentOf(n)],
    };
    const key: AgentKey = {
      keyId: record.key_id,
      sign: (text) => sign(null, Buffer.from(text), privateKey).toString("base64url"),
    };
    const register = () => signed(key, { type: "agent.register", from: agentOf(n) });
    return { record, register: register(), message: messageOf(key, agentOf(n)), again: register() };
  });
  const first = made.slice(0, agents);
  return {
    keys: { signing_keys: made.map(({ record }) => record) },
    registers: byConnection(
      first.map(({ register }) => register),
      each,
    ),
    messages: byConnection(
      first.map(({ message }) => message),
      each,
    ),
    registersAgain: byConnection(
      first.map(({ again }) => again),
      each,
    ),
    laterRegisters: byConnection(
      made.slice(agents).map(({ register }) => register),
      each,
    ),
  };
}

/** Of agents whose keys one issuer's credentials bring. */
async function withCredentials({ agents, laterAgents, each }: Crowd): Promise<Traffic> {
  const issuer = new TestIssuer("load");
  const all = await Promise.all(Array.from({ length: agents + laterAgents }, (_, n) => issuer.agent(agentOf(n))));
  const [first, others] = [all.slice(0, agents), all.slice(agents)];
  const registers = (those: typeof all) =>
    byConnection(
      those.map((agent) => registerWith(agent, HOST)),
      each,
    );
  const messages = byConnection(
    first.map(({ key, id }) => messageOf(key, id)),
    each,
  );
  const keys = { issuers: [issuer.record(["agent://load.*"])] };
  return {
    keys,
    registers: registers(first),
    messages,
    registersAgain: registers(first),
    laterRegisters: registers(others),
  };
}

function byConnection(envelopes: readonly Frame[], each: number): Frame[][] {
  return Array.from({ length: envelopes.length / each }, (_, n) => envelopes.slice(n * each, (n + 1) * each));
}
