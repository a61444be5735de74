import { freePort } from "../../support/free-port.ts";
import { MEMORY_PROBE, type PodProcess } from "../../support/pod-process.ts";
import { TestRelay } from "../../support/relay.ts";
import type { RedisUser } from "../../support/test-redis.ts";

/** The first lives from start to end, so that what it keeps for good adds up; the second is replaced all the time. */
export const STEADY = "ws-connector, steady";
export const ROLLED = "ws-connector, rolled";
export const GATEWAY = "gateway";
export const REPORTING = "ops-reporting";
export type Role = typeof STEADY | typeof ROLLED | typeof GATEWAY | typeof REPORTING;

const USERS: Readonly<Record<Role, Exclude<RedisUser, "window-reset">>> = {
  [STEADY]: "ws-connector",
  [ROLLED]: "ws-connector",
  [GATEWAY]: "gateway",
  [REPORTING]: "ops-reporting",
};
export const ROLES = Object.keys(USERS) as Role[];
/** What a crowd on one machine needs lifted: it comes from one address. */
const SETTINGS = { LOG_LEVEL: "info", RELAY_PUBLIC_REQUESTS_PER_MINUTE: "0", RELAY_CONNECTIONS_PER_ADDRESS: "0" };

interface Seat {
  readonly role: Role;
  readonly port: number;
  readonly metricsPort: number;
  /** Undefined while one process is replaced by the next. */
  process: PodProcess | undefined;
}

/** Two connectors, a gateway and an ops-reporting as processes over one Redis, each on ports that it keeps. */
export class Fleet {
  readonly relay: TestRelay;
  /** Processes that ended without being told to, or with another code than 0. */
  readonly unexpectedEnds: string[] = [];
  readonly #seats = new Map<Role, Seat>();
  readonly #processes: PodProcess[] = [];
  rolls = 0;

  constructor(agents: readonly string[]) {
    this.relay = new TestRelay(...agents);
  }

  async start(): Promise<void> {
    await this.relay.start();
    for (const role of ROLES) {
      const seat = { role, port: await freePort(), metricsPort: await freePort(), process: undefined };
      this.#seats.set(role, seat);
      await this.#fill(seat);
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#seats.values()].map((seat) => this.#empty(seat)));
    await this.relay.stop();
  }

  url(role: Role): string {
    return `http://127.0.0.1:${this.#seat(role).port}`;
  }

  /** The process of a role, and the address of its metrics; undefined while it is replaced. */
  running(role: Role): { readonly process: PodProcess; readonly metrics: string } | undefined {
    const { process, metricsPort } = this.#seat(role);
    return process && { process, metrics: `http://127.0.0.1:${metricsPort}/metrics` };
  }

  /** Tells a process to end, waits for it, and starts the next on the same port. */
  async roll(role: Role): Promise<void> {
    await this.#empty(this.#seat(role));
    await this.#fill(this.#seat(role));
    this.rolls += 1;
  }

  /** A process dies without a goodbye; the next starts on the same port. */
  async kill(role: Role): Promise<void> {
    const seat = this.#seat(role);
    const { process } = seat;
    seat.process = undefined;
    await process?.end("SIGKILL");
    await this.#fill(seat);
  }

  /** Lines of all processes that there ever were, of level error or worse. */
  get errorLines(): string[] {
    return this.#processes.flatMap(({ errorLines }) => errorLines);
  }

  #seat(role: Role): Seat {
    return this.#seats.get(role) as Seat;
  }

  async #fill(seat: Seat): Promise<void> {
    const user = USERS[seat.role];
    const settings = { ...SETTINGS, PORT: String(seat.port), METRICS_PORT: String(seat.metricsPort) };
    const process = await this.relay.startProcess(user, settings, MEMORY_PROBE);
    this.#processes.push(process);
    seat.process = process;
  }

  async #empty(seat: Seat): Promise<void> {
    const { process, role } = seat;
    if (process === undefined) return;
    seat.process = undefined;
    if (process.hasEnded) this.unexpectedEnds.push(`${role} had ended by itself`);
    const code = await process.end("SIGTERM");
    if (code !== 0) this.unexpectedEnds.push(`${role} ended with ${code}`);
  }
}
