import { setTimeout as delay } from "node:timers/promises";
import { AbstractStartedContainer, type StartedTestContainer } from "testcontainers";
import { PID_FILE, REDIS_TURNS_FILE } from "../../deploy/docker/told-in-files.ts";
import type { TestAgent } from "./contract.ts";
import type { TestKeys } from "./test-keys.ts";

const LOOK_AGAIN_MS = 50;
/** Above what the slowest of them takes: Redis and the relay start within seconds. */
const PATIENCE_MS = 30_000;

/** A relay in a container, with keys of its own. */
export class StartedAgentRelayContainer extends AbstractStartedContainer {
  readonly #port: number;
  readonly #keys: TestKeys;
  readonly #isCluster: boolean;

  constructor(
    started: StartedTestContainer,
    { port, keys, isCluster }: { readonly port: number; readonly keys: TestKeys; readonly isCluster: boolean },
  ) {
    super(started);
    this.#port = port;
    this.#keys = keys;
    this.#isCluster = isCluster;
  }

  /** Base address of the relay. */
  getUrl(): string {
    return `http://${this.getHost()}:${this.getMappedPort(this.#port)}`;
  }

  /** For the header `x-api-key` of the gateway: sends as agent://alice or agent://alice.*. */
  getApiKey(): string {
    return this.#keys.apiKey;
  }

  /** @param name `alice` for agent://alice. The same name gives the same agent. */
  async agent(name: string): Promise<TestAgent> {
    return await this.#keys.agent(name, this.getUrl());
  }

  /**
   * Redis dies with all that it holds. Resolves when the relay says that it is not ready. Of a cluster one primary dies:
   * resolves when its replica has taken its place and the relay is ready.
   */
  async failRedis(): Promise<void> {
    await this.#befallRedis("USR2");
    const status = this.#isCluster ? 200 : 503;
    await this.#until(`the relay answers ${status}`, async () => (await this.#readiness()) === status);
  }

  /** Redis is back, empty; of a cluster all that died, as replicas. Resolves when the relay is ready. */
  async restoreRedis(): Promise<void> {
    await this.#befallRedis("CONT");
    await this.#until("the relay has its Redis back", async () => (await this.#readiness()) === 200);
  }

  /** The relay's process dies without a goodbye, and with it every connection. Resolves when another one is ready. */
  async killPod(): Promise<void> {
    const former = await this.#pod();
    await this.#signal("HUP");
    await this.#until("another pod runs", async () => (await this.#pod()) !== former);
    await this.#until("it is ready", async () => (await this.#readiness()) === 200);
  }

  protected override async containerStopped(): Promise<void> {
    await this.#keys.remove();
  }

  async #befallRedis(signal: string): Promise<void> {
    const turns = async () => await this.#shell(`cat ${REDIS_TURNS_FILE} 2>/dev/null || true`);
    const former = await turns();
    await this.#signal(signal);
    await this.#until("Redis has died, or is back", async () => (await turns()) !== former);
  }

  /** To process 1. Source: docs/testing.md#containers. */
  async #signal(name: string): Promise<void> {
    await this.#shell(`kill -${name} 1`);
  }

  /** Process id of the relay. */
  async #pod(): Promise<string> {
    return await this.#shell(`cat ${PID_FILE}`);
  }

  async #shell(line: string): Promise<string> {
    const { exitCode, output } = await this.exec(["sh", "-c", line]);
    if (exitCode !== 0) throw new Error(`${line}: ${output.trim()}`);
    return output.trim();
  }

  /** HTTP status of /ready; undefined while nothing answers. */
  async #readiness(): Promise<number | undefined> {
    return await fetch(`${this.getUrl()}/ready`, { signal: AbortSignal.timeout(PATIENCE_MS) }).then(
      ({ status }) => status,
      () => undefined,
    );
  }

  async #until(what: string, condition: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    while (!(await condition())) {
      if (Date.now() > deadline) throw new Error(`Waited ${PATIENCE_MS} ms in vain: ${what}`);
      await delay(LOOK_AGAIN_MS);
    }
  }
}
