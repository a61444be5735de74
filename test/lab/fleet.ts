import { Ledger } from "../support/ledger.ts";
import type { PodProcess } from "../support/pod-process.ts";
import type { RedisProxy } from "../support/redis-proxy.ts";
import { Exchange, ReturningAgent } from "../support/returning-agent.ts";
import type { RedisUser } from "../support/test-redis.ts";
import { until } from "../support/until.ts";
import type { Stage } from "./stages.ts";

/** Short, so that "back within one heartbeat" is seen soon; that of real agents is 15 s. */
export const HEARTBEAT_MS = 1000;
/** No limit of rates, and a drain as short as it may be: faults are the subject, not limits. */
const SETTINGS = {
  LOG_LEVEL: "info",
  RELAY_ENVELOPES_PER_SECOND: "0",
  RELAY_BYTES_PER_SECOND: "0",
  RELAY_PUBLIC_REQUESTS_PER_MINUTE: "0",
};

/** A service as a process, with proxies of its own between it and each Redis. */
export class FleetPod {
  readonly service: RedisUser;
  readonly process: PodProcess;
  readonly proxies: readonly RedisProxy[];
  /** True when a fault ended it. */
  isDismissed = false;

  constructor(service: RedisUser, process: PodProcess, proxies: readonly RedisProxy[]) {
    this.service = service;
    this.process = process;
    this.proxies = proxies;
  }

  /** The proxy before the one Redis. */
  get redis(): RedisProxy {
    return this.proxies[0] as RedisProxy;
  }

  get url(): string {
    return this.process.url;
  }

  get websocketUrl(): string {
    return `${this.url.replace("http", "ws")}/ws`;
  }

  async isReady(): Promise<boolean> {
    return (await fetch(`${this.url}/ready`)).ok;
  }

  async untilReady(): Promise<void> {
    await until("the pod is ready", () => this.isReady(), 60_000);
  }

  /** Resolves with the exit code, or null when the signal itself ended the process. */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<number | null> {
    this.isDismissed = true;
    return await this.process.end(signal);
  }
}

/**
 * Services as real processes on a stage, each behind proxies of its own, and agents that come back to any connector that is
 * there. One ledger holds all that agents sent and were sent.
 */
export class Fleet<S extends Stage = Stage> {
  readonly stage: S;
  readonly ledger = new Ledger();
  readonly agents: ReturningAgent[] = [];
  /** All pods that there ever were, in the order of their start. */
  readonly pods: FleetPod[] = [];
  /** Where agents go. */
  readonly #seats: FleetPod[] = [];
  readonly #size: number;
  #exchange: Exchange | undefined;

  /** There is an agent for each key; the n-th prefers the n-th connector, in turn. */
  constructor(stage: S, connectors: number) {
    this.stage = stage;
    this.#size = connectors;
  }

  get relay(): S["relay"] {
    return this.stage.relay;
  }

  /** Resolves when all connectors run and all agents are registered. */
  async start(): Promise<this> {
    await this.relay.start();
    const starting = Array.from({ length: this.#size }, () => this.addPod("ws-connector"));
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
    await Promise.all(this.pods.map(({ process }) => process.stop()));
    await Promise.all(this.pods.flatMap(({ proxies }) => proxies.map((proxy) => proxy.stop())));
    await this.relay.stop();
  }

  /** Those that agents go to. */
  get connectors(): readonly FleetPod[] {
    return this.#seats;
  }

  /** Where the n-th agent goes. */
  connectorFor(n: number): FleetPod {
    return this.#seats[n % this.#size] as FleetPod;
  }

  /** Starts a connector, to which the agents of this one go from now on when they come back. */
  async replace(pod: FleetPod): Promise<void> {
    this.#seats[this.#seats.indexOf(pod)] = await this.addPod("ws-connector");
  }

  /** Which agents' connections a connector has. */
  agentsOf(pod: FleetPod): ReturningAgent[] {
    return this.agents.filter((agent) => agent.url === pod.websocketUrl);
  }

  /** Starts a pod that no agent goes to by itself. @param nodeArguments arguments of Node itself. */
  async addPod(
    service: "ws-connector" | "gateway" | "ops-reporting",
    overrides: Readonly<Record<string, string>> = {},
    nodeArguments: readonly string[] = [],
  ): Promise<FleetPod> {
    const wiring = await this.stage.wire(service);
    const settings = { ...SETTINGS, ...wiring.settings, ...overrides };
    const process = await this.relay.startProcess(service, settings, [...wiring.nodeArguments, ...nodeArguments]);
    const pod = new FleetPod(service, process, wiring.proxies);
    this.pods.push(pod);
    await pod.untilReady();
    return pod;
  }

  /** An agent that writes into the ledger, not started. */
  agent(name: string, url: string | (() => string)): ReturningAgent {
    const key = this.relay.keys.agents.get(name);
    if (key === undefined) throw new Error(`${name} has no key.`);
    return new ReturningAgent({ url, id: `agent://${name}`, key, heartbeatMs: HEARTBEAT_MS, ledger: this.ledger });
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
