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
/** As many as a connection may carry: the question here is what a registration costs, not what a socket does. */
const AGENTS_EACH = 100;
/** Registers without an answer, over all connections; more would wait in the relay. */
const CONNECTIONS_AT_ONCE = 4;
const ANSWERED_WITHIN_MS = 60_000;
const SETTLE_MS = 1000;
const HOST = "relay.example";
const SETTINGS = {
  LOG_LEVEL: "info",
  RELAY_PUBLIC_HOSTS: HOST,
  RELAY_ENVELOPES_PER_SECOND: "0",
  RELAY_BYTES_PER_SECOND: "0",
  RELAY_CONNECTIONS_PER_ADDRESS: "0",
};

const KINDS = ["listed", "credential"] as const;
type Kind = (typeof KINDS)[number];
type Registration = Span & { readonly podBytes: number; readonly redisBytes: number };

/** What the registration of an agent costs, whose key is listed, and whose key a credential brings. */
export async function registrationSections(plan: Plan): Promise<Section[]> {
  const measured: Record<Kind, Registration[]> = { listed: [], credential: [] };
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const kind of inTurn(KINDS, round)) {
      const registration = await measure(plan, kind);
      measured[kind].push(registration);
      plan.say(`registrations, round ${round + 1}, ${kind}: ${shown(totalCpu(registration) / AGENTS)} µs each`);
    }
  }
  const over = (kind: Kind, figure: (one: Registration) => number) => median(measured[kind].map(figure));
  const cpu = (kind: Kind) => over(kind, (one) => totalCpu(one) / AGENTS);
  return [
    {
      title: "Registrations",
      about:
        `${shown(AGENTS)} agents register over two pods, ${AGENTS_EACH} on each connection, each with an Ed25519 key of its own: ` +
        "listed in the keys file, or with a credential of one issuer. CPU of both pods and Redis; memory that it adds.",
      head: ["", "s", "µs each", "pods, KiB an agent", "Redis, KiB an agent"],
      rows: KINDS.map((kind) => [
        kind,
        shown(over(kind, ({ seconds }) => seconds)),
        shown(cpu(kind)),
        shown(over(kind, ({ podBytes }) => podBytes / AGENTS / 1024)),
        shown(over(kind, ({ redisBytes }) => redisBytes / AGENTS / 1024)),
      ]),
      aims: [
        {
          name: "registration with a credential to one with a listed key",
          value: cpu("credential") / cpu("listed"),
          most: 1.5,
        },
      ],
      data: { measured, ratio: times(cpu("credential") / cpu("listed")) },
    },
  ];
}

async function measure(plan: Plan, kind: Kind): Promise<Registration> {
  const relay = await new TestRelay().start();
  try {
    const { keys, registers } = kind === "listed" ? listed() : await withCredentials();
    await relay.writeKeys(keys);
    const start = () => relay.startProcess("ws-connector", SETTINGS, [...MEMORY_PROBE, ...plan.ours(kind)]);
    const pods = [await start(), await start()] as const;
    const pids: Pids = { one: pods[0].pid, other: pods[1].pid, redis: await relay.redis.pid() };
    const sockets = await Promise.all(registers.map((_, n) => relay.connect(pods[n % pods.length] as PodProcess)));
    const before = await memoryOf(pods, pids);
    const begin = instant(pids);
    for (let n = 0; n < sockets.length; n += CONNECTIONS_AT_ONCE) {
      await Promise.all(
        sockets.slice(n, n + CONNECTIONS_AT_ONCE).map((socket, k) => send(socket, registers[n + k] ?? [])),
      );
    }
    const span = spanOf(begin, instant(pids));
    const after = await memoryOf(pods, pids);
    return { ...span, podBytes: after.podBytes - before.podBytes, redisBytes: after.redisBytes - before.redisBytes };
  } finally {
    await relay.stop();
  }
}

async function send(socket: AgentSocket, envelopes: readonly Frame[]): Promise<void> {
  const from = socket.frames.length;
  for (const envelope of envelopes) socket.send(envelope);
  const isAnswered = () => socket.frames.length - from >= envelopes.length;
  await until("all registers are answered", isAnswered, ANSWERED_WITHIN_MS);
  const refused = socket.frames.slice(from).find(({ accepted }) => accepted !== true);
  if (refused !== undefined) throw new Error(`a register was refused: ${refused.code}`);
}

async function memoryOf(pods: readonly PodProcess[], pids: Pids): Promise<{ podBytes: number; redisBytes: number }> {
  for (const { pid } of pods) process.kill(pid, "SIGUSR2");
  await delay(SETTLE_MS);
  const podBytes = pods.reduce((sum, { pid }) => sum + residentBytes(pid), 0);
  return { podBytes, redisBytes: residentBytes(pids.redis as number) };
}

/** By connection. */
interface Registers {
  readonly keys: object;
  readonly registers: readonly (readonly Frame[])[];
}

const agentOf = (n: number) => `agent://load.a${n}`;

function listed(): Registers {
  const made = Array.from({ length: AGENTS }, (_, n) => {
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
    return { record, register: signed(key, { type: "agent.register", from: agentOf(n) }) };
  });
  return {
    keys: { signing_keys: made.map(({ record }) => record) },
    registers: byConnection(made.map(({ register }) => register)),
  };
}

async function withCredentials(): Promise<Registers> {
  const issuer = new TestIssuer("load");
  const agents = await Promise.all(Array.from({ length: AGENTS }, (_, n) => issuer.agent(agentOf(n))));
  const registers = byConnection(agents.map((agent) => registerWith(agent, HOST)));
  return { keys: { issuers: [issuer.record(["agent://load.*"])] }, registers };
}

function byConnection(registers: readonly Frame[]): Frame[][] {
  return Array.from({ length: AGENTS / AGENTS_EACH }, (_, n) =>
    registers.slice(n * AGENTS_EACH, (n + 1) * AGENTS_EACH),
  );
}
