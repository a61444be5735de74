import { generateKeyPairSync, sign } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type AgentKey, type AgentSocket, type Frame, signed } from "../../../support/agent.ts";
import { registerWith, TestIssuer } from "../../../support/issuer.ts";
import { MEMORY_PROBE, type PodProcess } from "../../../support/pod-process.ts";
import { TestRelay } from "../../../support/relay.ts";
import { until } from "../../../support/until.ts";
import { instant, type Pids, residentBytes, type Span, spanOf, totalCpu } from "../accounting.ts";
import { inTurn, type Plan } from "../plan.ts";
import { type Section, shown, times } from "../section.ts";
import { median } from "../statistics.ts";

const AGENTS = 10_000;
/** Agents that register once the pods have taken those, so that what is asked of them has been compiled. */
const LATER_AGENTS = 10_000;
/** As many as a connection may carry: the question here is what a registration costs, not what a socket does. */
const AGENTS_EACH = 100;
/** Registers without an answer, over all connections; more would wait in the relay. */
const CONNECTIONS_AT_ONCE = 4;
const ANSWERED_WITHIN_MS = 60_000;
const SETTLE_MS = 1000;
const HOST = "relay.example";
const NOBODY = "agent://load.nobody";
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
const COSTS = ["registration", "messages", "again", "later"] as const;
type Cost = (typeof COSTS)[number];
interface Measured {
  readonly registration: Span;
  readonly messages: Span;
  /** The same agents again, with the same tokens. */
  readonly again: Span;
  /** Of others, after all that. */
  readonly later: Span;
  readonly podBytes: number;
  readonly redisBytes: number;
}

/** What the registration of an agent costs, and its messages, whose key is listed, and whose key a credential brings. */
export async function registrationSections(plan: Plan): Promise<Section[]> {
  const measured: Record<Kind, Measured[]> = { listed: [], credential: [] };
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const kind of inTurn(KINDS, round)) {
      const one = await measure(plan, kind);
      measured[kind].push(one);
      const [first, message, again, later] = COSTS.map((what) => shown(totalCpu(one[what]) / countOf(what)));
      plan.say(
        `registrations, round ${round + 1}, ${kind}: ${first} µs each, a message ${message} µs, again ${again} µs, of others later ${later} µs`,
      );
    }
  }
  const over = (kind: Kind, figure: (one: Measured) => number) => median(measured[kind].map(figure));
  const cpu = (kind: Kind, what: Cost) => over(kind, (one) => totalCpu(one[what]) / countOf(what));
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
        shown(over(kind, ({ registration }) => registration.seconds)),
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

async function measure(plan: Plan, kind: Kind): Promise<Measured> {
  const relay = await new TestRelay().start();
  try {
    const { keys, registers, messages, registersAgain, laterRegisters } =
      kind === "listed" ? listed() : await withCredentials();
    await relay.writeKeys(keys);
    const start = (role: string) =>
      relay.startProcess("ws-connector", SETTINGS, [...MEMORY_PROBE, ...plan.ours(`${kind} ${role}`)]);
    const pods = [await start("one"), await start("other")] as const;
    const pids: Pids = { one: pods[0].pid, other: pods[1].pid, redis: await relay.redis.pid() };
    const connect = () => Promise.all(registers.map((_, n) => relay.connect(pods[n % pods.length] as PodProcess)));
    const sockets = await connect();
    const before = await memoryOf(pods, pids);
    const registration = await costOf(pids, sockets, registers);
    const after = await memoryOf(pods, pids);
    const sent = await costOf(pids, sockets, messages);
    const again = await costOf(pids, sockets, registersAgain);
    const later = await costOf(pids, await connect(), laterRegisters);
    await Promise.all(pods.map((pod) => pod.end("SIGTERM")));
    return {
      registration,
      messages: sent,
      again,
      later,
      podBytes: after.podBytes - before.podBytes,
      redisBytes: after.redisBytes - before.redisBytes,
    };
  } finally {
    await relay.stop();
  }
}

/** @param envelopes by connection. */
async function costOf(pids: Pids, sockets: readonly AgentSocket[], envelopes: readonly Frame[][]): Promise<Span> {
  const begin = instant(pids);
  for (let n = 0; n < sockets.length; n += CONNECTIONS_AT_ONCE) {
    await Promise.all(
      sockets.slice(n, n + CONNECTIONS_AT_ONCE).map((socket, k) => send(socket, envelopes[n + k] ?? [])),
    );
  }
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

async function memoryOf(pods: readonly PodProcess[], pids: Pids): Promise<{ podBytes: number; redisBytes: number }> {
  for (const { pid } of pods) process.kill(pid, "SIGUSR2");
  await delay(SETTLE_MS);
  const podBytes = pods.reduce((sum, { pid }) => sum + residentBytes(pid), 0);
  return { podBytes, redisBytes: residentBytes(pids.redis as number) };
}

/** Envelopes by connection. */
interface Traffic {
  readonly keys: object;
  readonly registers: Frame[][];
  readonly messages: Frame[][];
  readonly registersAgain: Frame[][];
  readonly laterRegisters: Frame[][];
}

function countOf(what: Cost): number {
  return what === "later" ? LATER_AGENTS : AGENTS;
}

const agentOf = (n: number) => `agent://load.a${n}`;

const messageOf = (key: AgentKey, from: string) =>
  signed(key, { type: "message.send", from, to: NOBODY, payload: { text: "hello" } });

function listed(): Traffic {
  const made = Array.from({ length: AGENTS + LATER_AGENTS }, (_, n) => {
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
  const first = made.slice(0, AGENTS);
  return {
    keys: { signing_keys: made.map(({ record }) => record) },
    registers: byConnection(first.map(({ register }) => register)),
    messages: byConnection(first.map(({ message }) => message)),
    registersAgain: byConnection(first.map(({ again }) => again)),
    laterRegisters: byConnection(made.slice(AGENTS).map(({ register }) => register)),
  };
}

async function withCredentials(): Promise<Traffic> {
  const issuer = new TestIssuer("load");
  const agents = await Promise.all(Array.from({ length: AGENTS + LATER_AGENTS }, (_, n) => issuer.agent(agentOf(n))));
  const [first, others] = [agents.slice(0, AGENTS), agents.slice(AGENTS)];
  const registers = (those: typeof agents) => byConnection(those.map((agent) => registerWith(agent, HOST)));
  const messages = byConnection(first.map(({ key, id }) => messageOf(key, id)));
  const keys = { issuers: [issuer.record(["agent://load.*"])] };
  return {
    keys,
    registers: registers(first),
    messages,
    registersAgain: registers(first),
    laterRegisters: registers(others),
  };
}

function byConnection(envelopes: readonly Frame[]): Frame[][] {
  return Array.from({ length: envelopes.length / AGENTS_EACH }, (_, n) =>
    envelopes.slice(n * AGENTS_EACH, (n + 1) * AGENTS_EACH),
  );
}
