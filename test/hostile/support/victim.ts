import { afterAll, afterEach, beforeAll, expect } from "@jest/globals";
import { watchLeaks } from "../../support/leaks.ts";
import { PodProcess } from "../../support/pod-process.ts";
import { type Pod, TestRelay } from "../../support/relay.ts";
import { until } from "../../support/until.ts";

/** Stands in whatever an attacker writes; the relay neither logs nor answers it. */
export const MARK = "hOsTiLe";

/**
 * What a process may hold more after a corpus than before, in bytes: compiled code and caches that a first use fills.
 * A corpus that left one frame, or one connection's buffers, behind a case would be over it.
 */
const GROWTH_BOUND = 3 * 1024 * 1024;
const ERROR_LEVEL = 50;

type Service = "gateway" | "ws-connector" | "ops-reporting";

interface Stock {
  readonly heldBytes: number;
  readonly sockets: number;
}

/** A service as a process of its own, that is attacked and asked afterwards what it still holds. */
export class Victim implements Pod {
  readonly #pod: PodProcess;
  #before: Stock = { heldBytes: 0, sockets: 0 };

  private constructor(pod: PodProcess) {
    this.#pod = pod;
  }

  static async start(relay: TestRelay, service: Service, overrides: Record<string, string>): Promise<Victim> {
    const environment = relay.environmentOf(service, overrides);
    const preload = ["--expose-gc", "--import", "./test/hostile/support/probe.ts"];
    return new Victim(await PodProcess.start(`services/${service}/src/main.ts`, environment, preload));
  }

  get port(): number {
    return this.#pod.port;
  }

  get url(): string {
    return this.#pod.url;
  }

  /** Growth is counted from here on: to be called when everything was used once and lasting connections are made. */
  async remember(): Promise<void> {
    this.#before = await this.#stock();
  }

  /** No client is connected that was not there before. */
  async untilAlone(withinMs: number): Promise<void> {
    const { sockets } = this.#before;
    await until("no attacker is connected", async () => (await this.#stock()).sockets <= sockets, withinMs);
  }

  expectAlive(): void {
    expect(this.#pod.hasEnded).toBe(false);
  }

  /** The process has logged no error and nothing that it was sent, and holds no more than it did before. */
  async expectUnharmed(): Promise<void> {
    await this.untilAlone(5000);
    const { heldBytes } = await this.#stock();
    expect(heldBytes - this.#before.heldBytes).toBeLessThan(GROWTH_BOUND);
    const log = this.#pod.log.map((line) => JSON.parse(line));
    expect(log.filter(({ level }) => level >= ERROR_LEVEL)).toEqual([]);
    expect(JSON.stringify(log)).not.toContain(MARK);
  }

  async stop(): Promise<void> {
    await this.#pod.stop();
  }

  async #stock(): Promise<Stock> {
    const { log, pid } = this.#pod;
    const from = log.length;
    process.kill(pid, "SIGUSR2");
    const stock = () =>
      log
        .slice(from)
        .map((line) => JSON.parse(line))
        .find(({ msg }) => msg === "stock");
    await until("the process takes stock", () => stock() !== undefined);
    return stock();
  }
}

/** A relay for the tests of one file. After each test its victims live; in the end they are unharmed. */
export function relayUnderAttack(...names: readonly string[]) {
  const relay = new TestRelay(...names);
  const victims: Victim[] = [];
  const noLeaks = watchLeaks();
  beforeAll(async () => {
    await relay.start();
  });
  afterEach(() => {
    for (const victim of victims) victim.expectAlive();
  });
  afterAll(async () => {
    for (const victim of victims) await victim.expectUnharmed();
  });
  afterAll(async () => {
    for (const victim of victims) await victim.stop();
    await relay.stop();
    await noLeaks();
  });
  const victim = async (service: Service, overrides: Record<string, string> = {}): Promise<Victim> => {
    const started = await Victim.start(relay, service, overrides);
    victims.push(started);
    return started;
  };
  return { relay, victim };
}
