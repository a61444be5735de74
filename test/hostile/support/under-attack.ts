import { afterAll, afterEach, expect } from "@jest/globals";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import { type Held, MEMORY_PROBE, type PodProcess } from "../../support/pod-process.ts";
import type { Pod, TestRelay } from "../../support/relay.ts";
import { until } from "../../support/until.ts";
import { useRelay } from "../../support/use-relay.ts";

/** Stands in whatever an attacker writes; the relay neither logs nor answers it. */
export const MARK = "hOsTiLe";
/** The same as the name of a field, one that is not named in answers. Source: docs/security.md#echoes. */
export const MARKED_NAME = `${MARK}!`;

/**
 * What a process may hold more after a corpus than before, in bytes: compiled code and caches that a first use fills.
 * A corpus that left one frame, or one connection's buffers, behind a case would be over it.
 */
const GROWTH_BOUND = 3 * 1024 * 1024;

/** A service as a process of its own, that is attacked and asked afterwards what it still holds. */
export class AttackedService implements Pod {
  readonly #pod: PodProcess;
  #before: Held = { heapUsed: 0, arrayBuffers: 0, sockets: 0 };

  private constructor(pod: PodProcess) {
    this.#pod = pod;
  }

  static async start(
    relay: TestRelay,
    service: ServiceName,
    overrides: Record<string, string>,
  ): Promise<AttackedService> {
    return new AttackedService(await relay.startProcess(service, overrides, MEMORY_PROBE));
  }

  get port(): number {
    return this.#pod.port;
  }

  get url(): string {
    return this.#pod.url;
  }

  /** Growth is counted from here on: to be called when everything was used once and lasting connections are made. */
  async remember(): Promise<void> {
    this.#before = await this.#pod.held();
  }

  /** No client is connected that was not there before. */
  async untilAlone(withinMs?: number): Promise<void> {
    const { sockets } = this.#before;
    await until("no attacker is connected", async () => (await this.#pod.held()).sockets <= sockets, withinMs);
  }

  expectAlive(): void {
    expect(this.#pod.hasEnded).toBe(false);
  }

  /** The process has logged no error and nothing that it was sent, and holds no more than it did before. */
  async expectUnharmed(): Promise<void> {
    await this.untilAlone();
    expect(bytesIn(await this.#pod.held()) - bytesIn(this.#before)).toBeLessThan(GROWTH_BOUND);
    expect(this.#pod.errorLines).toEqual([]);
    expect(this.#pod.log.join("\n")).not.toContain(MARK);
  }

  async stop(): Promise<void> {
    await this.#pod.stop();
  }
}

function bytesIn({ heapUsed, arrayBuffers }: Held): number {
  return heapUsed + arrayBuffers;
}

/** A relay for the tests of one file. After each test the services under attack live; in the end they are unharmed. */
export function relayUnderAttack(...names: readonly string[]) {
  const services: AttackedService[] = [];
  afterAll(async () => {
    for (const service of services) await service.expectUnharmed();
  });
  const relay = useRelay(...names);
  afterEach(() => {
    for (const service of services) service.expectAlive();
  });
  const start = async (service: ServiceName, overrides: Record<string, string> = {}): Promise<AttackedService> => {
    const started = await AttackedService.start(relay, service, overrides);
    services.push(started);
    return started;
  };
  return { relay, start };
}
