import { CONTROL_SLOT, partitionOf, slotOfPartition } from "relay-window/redis/partitions.ts";
import type { ClusterNode } from "../../deploy/local/cluster-node.ts";
import { PARTITIONS } from "../cluster/support/cluster-relay.ts";
import { GuardedClusterRelay } from "../cluster/support/guarded-cluster-relay.ts";
import type { AgentKey, Frame } from "../support/agent.ts";
import type { GuardedCluster } from "../support/deployed-users.ts";
import type { GuardedRelay } from "../support/guarded-redis.ts";
import { Ledger } from "../support/ledger.ts";
import type { PodProcess, ProcessLimits } from "../support/pod-process.ts";
import { RedisProxy } from "../support/redis-proxy.ts";
import type { TestRelay } from "../support/relay.ts";
import { Exchange, ReturningAgent } from "../support/returning-agent.ts";
import { clusterClient, type RedisUser } from "../support/test-redis.ts";
import { until } from "../support/until.ts";
import { countersIn, type WindowView } from "../support/window-view.ts";

type Service = Exclude<RedisUser, "window-reset">;

/** Short, so that "back within one heartbeat" is seen soon; that of real agents is 15 s. */
const HEARTBEAT_MS = 1000;
/** No limit of rates: faults are the subject, not limits. */
const UNLIMITED = {
  LOG_LEVEL: "info",
  RELAY_ENVELOPES_PER_SECOND: "0",
  RELAY_BYTES_PER_SECOND: "0",
  RELAY_PUBLIC_REQUESTS_PER_MINUTE: "0",
};

export type SingleFleet = Fleet<SingleStage>;
export type ClusterFleet = Fleet<ClusterStage>;

interface FleetOptions {
  /** Connectors, to which agents go in turn. */
  readonly connectors: number;
  /** Settings of every service. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly heartbeatMs?: number;
}

interface PodOptions {
  readonly settings?: Readonly<Record<string, string>>;
  /** Arguments of Node itself. */
  readonly nodeArguments?: readonly string[];
  readonly limits?: ProcessLimits;
}

/** A service as a process, with what is between it and each Redis. */
export class FleetPod {
  readonly service: Service;
  readonly proxies: readonly RedisProxy[];
  readonly #start: () => Promise<PodProcess>;
  readonly #sawEnd: (how: string) => void;
  /** One after the other. */
  readonly #processes: PodProcess[] = [];
  /** True while a fault, or a program's own will, has it ended. */
  #isDismissed = false;

  /** Not started. @param sawEnd is told of an end as it should not be. */
  constructor(
    service: Service,
    proxies: readonly RedisProxy[],
    start: () => Promise<PodProcess>,
    sawEnd: (how: string) => void,
  ) {
    this.service = service;
    this.proxies = proxies;
    this.#start = start;
    this.#sawEnd = sawEnd;
  }

  /** Starts it, or the process that comes after one that has ended: on the same port, if its settings name one. */
  async start(): Promise<void> {
    this.#processes.push(await this.#start());
    this.#isDismissed = false;
  }

  get process(): PodProcess {
    const process = this.#processes.at(-1);
    if (process === undefined) throw new Error(`A ${this.service} was not started.`);
    return process;
  }

  /** False from its end on, until it is started again. */
  get isThere(): boolean {
    return !this.#isDismissed;
  }

  get hasEndedByItself(): boolean {
    return !this.#isDismissed && this.process.hasEnded;
  }

  /** Lines of level error or worse. */
  get errorLines(): string[] {
    return this.#processes.flatMap(({ errorLines }) => errorLines);
  }

  /** The proxy before the one Redis. */
  get redis(): RedisProxy {
    return this.proxies[0] as RedisProxy;
  }

  get port(): number {
    return this.process.port;
  }

  get url(): string {
    return this.process.url;
  }

  get websocketUrl(): string {
    return `${this.url.replace("http", "ws")}/ws`;
  }

  async untilReady(): Promise<void> {
    await until("the pod is ready", async () => (await fetch(`${this.url}/ready`)).ok, 60_000);
  }

  /** A pod that is told to end does so with 0. */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    if (this.#isDismissed) return;
    if (this.process.hasEnded) this.#sawEnd(`a ${this.service} ended by itself`);
    this.#isDismissed = true;
    const code = await this.process.end(signal);
    if (signal === "SIGTERM" && code !== 0) this.#sawEnd(`a ${this.service} that was told to end ended with ${code}`);
  }
}

/**
 * Services as real processes on a stage, and agents that come back to any connector that is there. One ledger holds all that
 * agents sent and were sent.
 */
export class Fleet<S extends Stage = Stage> {
  readonly stage: S;
  readonly ledger = new Ledger();
  readonly agents: ReturningAgent[] = [];
  /** All pods that there ever were, in the order of their start. */
  readonly pods: FleetPod[] = [];
  readonly #options: FleetOptions;
  /** Where agents go. */
  readonly #seats: FleetPod[] = [];
  readonly #badEnds: string[] = [];
  #exchange: Exchange | undefined;

  /** There is an agent for each key; the n-th prefers the n-th connector, in turn. */
  constructor(stage: S, options: FleetOptions) {
    this.stage = stage;
    this.#options = options;
  }

  get relay(): S["relay"] {
    return this.stage.relay;
  }

  /** Resolves when all connectors run and all agents are registered. */
  async start(): Promise<this> {
    await this.relay.start();
    const starting = Array.from({ length: this.#options.connectors }, () => this.addPod("ws-connector"));
    this.#seats.push(...(await Promise.all(starting)));
    const names = [...this.relay.keys.agents.keys()];
    this.agents.push(...names.map((name, n) => this.agent(name, () => this.connectorFor(n).websocketUrl)));
    await Promise.all(this.agents.map((agent) => agent.start()));
    return this;
  }

  /** Ends everything, what is frozen, cut or half-open too. */
  async stop(): Promise<void> {
    await this.#exchange?.stop(0).catch(() => {});
    await Promise.all(this.agents.map((agent) => agent.stop()));
    await Promise.all(this.pods.map((pod) => pod.end("SIGKILL")));
    await Promise.all(this.pods.flatMap(({ proxies }) => proxies.map((proxy) => proxy.stop())));
    await this.relay.stop();
  }

  /** Those that agents go to. */
  get connectors(): readonly FleetPod[] {
    return this.#seats;
  }

  /** Where the n-th agent goes. */
  connectorFor(n: number): FleetPod {
    return this.#seats[n % this.#seats.length] as FleetPod;
  }

  /** Starts a connector, to which the agents of this one go from now on when they come back. */
  async replace(pod: FleetPod): Promise<void> {
    this.#seats[this.#seats.indexOf(pod)] = await this.addPod("ws-connector");
  }

  /** Agents that have a connection to a connector, or may have one. */
  agentsOf(pod: FleetPod): ReturningAgent[] {
    return this.agents.filter((agent) => agent.url === pod.websocketUrl);
  }

  /** What ended that nobody ended, or otherwise than it should. */
  get unexpectedEnds(): string[] {
    const alone = this.pods.filter((pod) => pod.hasEndedByItself);
    return [...this.#badEnds, ...alone.map(({ service }) => `a ${service} ended by itself`)];
  }

  /** Starts a pod that no agent goes to by itself. */
  async addPod(service: Service, { settings, nodeArguments = [], limits }: PodOptions = {}): Promise<FleetPod> {
    const wiring = await this.stage.wire(service);
    const all = { ...(this.#options.settings ?? UNLIMITED), ...wiring.settings, ...settings };
    const start = () => this.relay.startProcess(service, all, [...wiring.nodeArguments, ...nodeArguments], limits);
    const pod = new FleetPod(service, wiring.proxies, start, (how) => this.#badEnds.push(how));
    await pod.start();
    this.pods.push(pod);
    await pod.untilReady();
    return pod;
  }

  /** An agent that writes into the ledger, not started. @param received is told of every frame. */
  agent(name: string, url: string | (() => string), received: (frame: Frame) => void = () => {}): ReturningAgent {
    const { heartbeatMs = HEARTBEAT_MS } = this.#options;
    const key = this.keyOf(name);
    return new ReturningAgent({ url, id: `agent://${name}`, key, heartbeatMs, ledger: this.ledger, received });
  }

  /** An agent's key, as only it and the relay should know it. */
  keyOf(name: string): AgentKey {
    const key = this.relay.keys.agents.get(name);
    if (key === undefined) throw new Error(`${name} has no key.`);
    return key;
  }

  /** Ends what a fault left behind that came to no end: nothing hangs, is cut or slow any more. */
  async heal(): Promise<void> {
    for (const { process, proxies } of this.pods) {
      process.thaw();
      for (const proxy of proxies) proxy.heal();
    }
    await this.stage.heal();
  }

  /** Messages between all agents, until `stopTraffic`. */
  startTraffic(perSecond: number): void {
    this.#exchange = new Exchange(this.agents, perSecond);
    this.#exchange.start();
  }

  /** Some of the agents send again what they sent lately of these envelopes. Returns the ids of those. */
  repeat(ids: ReadonlySet<string>): string[] {
    return this.#exchange?.repeat(ids) ?? [];
  }

  /** Resolves when every envelope is answered. */
  async stopTraffic(): Promise<void> {
    await this.#exchange?.stop(10_000);
  }
}

/** `name` of `agent://name`. */
export function nameOf({ id }: Pick<ReturningAgent, "id">): string {
  return id.slice("agent://".length);
}

/** How a process reaches Redis: through proxies of its own. */
interface Wiring {
  readonly proxies: readonly RedisProxy[];
  readonly settings: Readonly<Record<string, string>>;
  /** Arguments of Node itself. */
  readonly nodeArguments: readonly string[];
}

/** The Redis, one or a cluster, over which the services of a fleet run. */
export interface Stage {
  readonly relay: TestRelay;
  /** Proxies for a process that is about to start. */
  wire(service: RedisUser): Promise<Wiring>;
  /** Of acceptance, over all partitions. */
  counters(): Promise<Readonly<Record<string, number>>>;
  /** One Redis has no scripts any more. */
  flushScripts(): Promise<void>;
  /** Resolves when each Redis has come to all that was there for it before, the ends of connections too. */
  caughtUp(): Promise<void>;
  /** Ends what a fault left behind: each Redis is there and answers. */
  heal(): Promise<void>;
}

/** One Redis, which processes reach as it is deployed, with nothing between. */
export class DirectStage<Relay extends TestRelay = TestRelay> implements Stage {
  readonly relay: Relay;
  #view: WindowView | undefined;

  constructor(relay: Relay) {
    this.relay = relay;
  }

  /** Looks into Redis, and does to it what no service may. */
  get view(): WindowView {
    this.#view ??= this.relay.view();
    return this.#view;
  }

  async wire(_service: RedisUser): Promise<Wiring> {
    return { proxies: [], settings: {}, nodeArguments: [] };
  }

  async counters(): Promise<Readonly<Record<string, number>>> {
    return await this.view.counters();
  }

  async flushScripts(): Promise<void> {
    await this.view.client.script("FLUSH");
  }

  async caughtUp(): Promise<void> {
    await this.view.client.ping();
  }

  async heal(): Promise<void> {
    await this.relay.redis.resume().catch(() => {});
  }
}

/** The same, with a proxy between each process and Redis. */
export class SingleStage extends DirectStage<GuardedRelay> {
  override async wire(service: RedisUser): Promise<Wiring> {
    const { redis } = this.relay;
    const proxy = await new RedisProxy(redis.url).start();
    return { proxies: [proxy], settings: { REDIS_URL: proxy.urlFor(redis.urlFor(service)) }, nodeArguments: [] };
  }
}

/** For `--import` of Node: shifts a process's clock, or redirects its connections. */
export const PRELOADED = new URL("preloaded.mjs", import.meta.url).href;

/** A Redis Cluster of three primaries with a replica each. */
export class ClusterStage implements Stage {
  readonly relay: GuardedClusterRelay;

  constructor(names: readonly string[]) {
    this.relay = new GuardedClusterRelay(...names);
  }

  get cluster(): GuardedCluster {
    return this.relay.cluster;
  }

  /** A process has a proxy before each of the first six nodes, in their order. */
  async wire(): Promise<Wiring> {
    const { nodes } = this.cluster;
    const starting = nodes.map(({ port }) => new RedisProxy(`redis://127.0.0.1:${port}`).start());
    const proxies = await Promise.all(starting);
    const redirected = nodes.map(({ port }, n) => `${port}:${proxies[n]?.host.split(":")[1]}`);
    return {
      proxies,
      settings: { REDIRECTED_PORTS: redirected.join(",") },
      nodeArguments: ["--import", PRELOADED],
    };
  }

  /** The proxy of each pod before one of the first six nodes. */
  proxiesBefore(node: ClusterNode, pods: readonly { readonly proxies: readonly RedisProxy[] }[]): RedisProxy[] {
    const n = this.cluster.nodes.indexOf(node);
    return pods.map(({ proxies }) => proxies[n] as RedisProxy);
  }

  async counters(): Promise<Readonly<Record<string, number>>> {
    const client = clusterClient(this.cluster.adminUrl);
    try {
      return await countersIn(client, PARTITIONS);
    } finally {
      client.disconnect();
    }
  }

  async flushScripts(): Promise<void> {
    const primary = await this.cluster.primaryOf(CONTROL_SLOT);
    await primary.ask("SCRIPT FLUSH");
  }

  async caughtUp(): Promise<void> {
    await Promise.all(this.cluster.nodes.map((node) => node.ask("PING")));
  }

  async heal(): Promise<void> {
    await this.cluster.mend();
  }
}

/** The slot of an agent's partition. */
export function slotOfAgent(agent: string): number {
  return slotOfPartition(partitionOf(agent, PARTITIONS));
}
