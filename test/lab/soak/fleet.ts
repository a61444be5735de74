import type { Redis } from "ioredis";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import { freePort } from "../../support/free-port.ts";
import { scrape } from "../../support/http.ts";
import { MEMORY_PROBE, type PodProcess } from "../../support/pod-process.ts";
import { TestRelay } from "../../support/relay.ts";
import { countersIn } from "../../support/window-view.ts";
import { residentBytes } from "../accounting.ts";
import { DirectStage, Fleet, type FleetPod } from "../fleet.ts";

/** The first lives from start to end, so that what it keeps for good adds up; the second is replaced all the time. */
export const STEADY = "ws-connector, steady";
export const ROLLED = "ws-connector, rolled";
export const GATEWAY = "gateway";
export const REPORTING = "ops-reporting";

const SERVICES = {
  [STEADY]: "ws-connector",
  [ROLLED]: "ws-connector",
  [GATEWAY]: "gateway",
  [REPORTING]: "ops-reporting",
} as const;
export type Role = keyof typeof SERVICES;
export const ROLES = Object.keys(SERVICES) as Role[];
/** What a crowd on one machine needs lifted: it comes from one address. */
const SETTINGS = { LOG_LEVEL: "info", RELAY_PUBLIC_REQUESTS_PER_MINUTE: "0", RELAY_CONNECTIONS_PER_ADDRESS: "0" };

interface Seat {
  readonly pod: FleetPod;
  readonly port: number;
  /** Address of the metrics. */
  readonly metrics: string;
}

/** Two connectors, a gateway and an ops-reporting over one Redis, each on ports that it keeps. */
export class SoakFleet extends Fleet<DirectStage> {
  readonly #seats = new Map<Role, Seat>();

  constructor(names: readonly string[]) {
    const heartbeatMs = CONNECTION_LIMITS.heartbeatIntervalMs;
    super(new DirectStage(new TestRelay(...names)), { connectors: 0, settings: SETTINGS, heartbeatMs });
  }

  /** Agents come on their own. */
  override async start(): Promise<this> {
    await this.relay.start();
    for (const role of ROLES) {
      const [port, metricsPort] = [await freePort(), await freePort()];
      const settings = { PORT: String(port), METRICS_PORT: String(metricsPort) };
      const pod = await this.addPod(SERVICES[role], { settings, nodeArguments: MEMORY_PROBE });
      this.#seats.set(role, { pod, port, metrics: `http://127.0.0.1:${metricsPort}/metrics` });
    }
    return this;
  }

  /** Each process is told to end: how it does is among the ends. */
  override async stop(): Promise<void> {
    await Promise.all(this.agents.map((agent) => agent.stop()));
    await Promise.all(this.pods.map((pod) => pod.end("SIGTERM")));
    await super.stop();
  }

  url(role: Role): string {
    return `http://127.0.0.1:${this.#seat(role).port}`;
  }

  /** The process of a role, and the address of its metrics; undefined while it is replaced. */
  running(role: Role): { readonly process: PodProcess; readonly metrics: string } | undefined {
    const { pod, metrics } = this.#seat(role);
    return pod.isThere ? { process: pod.process, metrics } : undefined;
  }

  /** A process ends, and the next starts on the same port. */
  async restart(role: Role, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const { pod } = this.#seat(role);
    await pod.end(signal);
    await pod.start();
  }

  /** Lines of all processes that there ever were, of level error or worse. */
  get errorLines(): string[] {
    return this.pods.flatMap(({ errorLines }) => errorLines);
  }

  #seat(role: Role): Seat {
    return this.#seats.get(role) as Seat;
  }
}

/** Bytes, after a garbage collection. */
interface ProcessMemory {
  readonly heap: number;
  readonly resident: number;
}

/** What was there at one moment. */
export interface Sample {
  /** Since the traffic began. */
  readonly ms: number;
  /** Of those that ran. */
  readonly processes: Readonly<Partial<Record<Role, ProcessMemory>>>;
  readonly redis: RedisMemory;
  readonly redisResident: number;
  readonly agentsOnline: number;
}

export async function takeSample(
  fleet: SoakFleet,
  redis: Redis,
  { ms, agentsOnline }: Pick<Sample, "ms" | "agentsOnline">,
): Promise<Sample> {
  const memory = await Promise.all(ROLES.map(async (role) => [role, await processMemory(fleet, role)]));
  return {
    ms,
    agentsOnline,
    processes: Object.fromEntries(memory.filter(([, known]) => known !== undefined)),
    redis: await redisMemory(redis),
    redisResident: residentBytes(await fleet.relay.redis.pid()),
  };
}

/** Undefined while the process is replaced. */
export async function processMemory(fleet: SoakFleet, role: Role): Promise<ProcessMemory | undefined> {
  const running = fleet.running(role);
  if (running === undefined) return undefined;
  try {
    await running.process.held();
    const heap = (await scrape(running.metrics)).value("nodejs_heap_size_used_bytes") as number;
    return { heap, resident: residentBytes(running.process.pid) };
  } catch (error) {
    if (fleet.running(role)?.process === running.process) throw error;
    return undefined;
  }
}

/** Keys of one kind: how many, and what they take, bytes. */
export interface Family {
  readonly keys: number;
  readonly bytes: number;
}

interface RedisMemory {
  /** `used_memory`, bytes. */
  readonly used: number;
  readonly keys: number;
  readonly families: Readonly<Record<string, Family>>;
  /** Envelopes that the guard remembers. */
  readonly guarded: number;
  /** Envelopes that were accepted since the window opened. */
  readonly accepted: number;
  readonly published: number;
}

/** What is kept for minutes or hours, and so grows as long as a soak runs. */
export const GROWING = ["seen", "session", "asked", "decided", "idempotency", "idempotency-body"] as const;
const SCAN_COUNT = 1000;

/** Every key by its kind: `relay:{p}:<kind>…`. */
async function redisMemory(client: Redis): Promise<RedisMemory> {
  const keys = await keysOf(client);
  const sizes = await manyReplies(client, keys, (key) => ["memory", "usage", key, "samples", "0"]);
  const families: Record<string, Family> = {};
  for (const [n, key] of keys.entries()) {
    const kind = kindOf(key);
    const { keys: counted, bytes } = families[kind] ?? { keys: 0, bytes: 0 };
    families[kind] = { keys: counted + 1, bytes: bytes + (sizes[n] ?? 0) };
  }
  const buckets = keys.filter((key) => kindOf(key) === "seen");
  const entries = await manyReplies(client, buckets, (key) => ["scard", key]);
  const counters = await countersIn(client, 1);
  const counted = (name: string) => counters[name] ?? 0;
  return {
    used: Number(/used_memory:(\d+)/.exec(await client.info("memory"))?.[1]),
    keys: keys.length,
    families,
    guarded: entries.reduce((sum, n) => sum + n, 0),
    accepted:
      counted("websocket_accepted") + counted("simple_send_accepted") + counted("simple_session_request_accepted"),
    published: counted("published_envelopes"),
  };
}

export function kindOf(key: string): string {
  return /^relay:\{\w+\}:([a-z-]+)/.exec(key)?.[1] ?? "unknown";
}

async function keysOf(client: Redis): Promise<string[]> {
  const keys = new Set<string>();
  let cursor = "0";
  do {
    const [next, found] = await client.scan(cursor, "COUNT", SCAN_COUNT);
    for (const key of found) keys.add(key);
    cursor = next;
  } while (cursor !== "0");
  return [...keys];
}

/** A key that expired meanwhile counts 0. */
async function manyReplies(
  client: Redis,
  keys: readonly string[],
  command: (key: string) => string[],
): Promise<number[]> {
  const replies = await client.pipeline(keys.map(command)).exec();
  return (replies ?? []).map(([, reply]) => Number(reply ?? 0));
}
