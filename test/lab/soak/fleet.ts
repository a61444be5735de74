import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import { freePort } from "../../support/free-port.ts";
import { MEMORY_PROBE, type PodProcess } from "../../support/pod-process.ts";
import { TestRelay } from "../../support/relay.ts";
import { Fleet, type FleetPod } from "../fleet.ts";
import { DirectStage } from "../stages.ts";

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
