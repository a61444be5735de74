import type { ServiceName } from "@agent-relay/shared/contract/surface.ts";
import { freePort } from "./free-port.ts";
import { PodProcess } from "./pod-process.ts";
import type { TestRelay } from "./relay.ts";

export const SERVICES = ["gateway", "ws-connector", "ops-reporting"] as const satisfies ServiceName[];

/** One process of each service, as they are deployed, with their metrics. */
export class ServiceProcesses {
  readonly #pods = new Map<ServiceName, { readonly process: PodProcess; readonly metricsPort: string }>();

  /** @param settings are given to each. */
  async start(relay: TestRelay, settings: Record<string, string>): Promise<void> {
    await Promise.all(SERVICES.map((name) => this.#start(relay, name, settings)));
  }

  async #start(relay: TestRelay, name: ServiceName, settings: Record<string, string>): Promise<void> {
    const metricsPort = String(await freePort());
    const environment = relay.environmentOf(name, { ...settings, METRICS_PORT: metricsPort });
    const process = await PodProcess.start(`services/${name}/src/main.ts`, environment);
    this.#pods.set(name, { process, metricsPort });
  }

  urlOf(name: ServiceName): string {
    return this.#podOf(name).process.url;
  }

  metricsOf(name: ServiceName): string {
    return `http://127.0.0.1:${this.#podOf(name).metricsPort}/metrics`;
  }

  /** All that a service logged so far. */
  logOf(name: ServiceName): string {
    return this.#podOf(name).process.log.join("\n");
  }

  /** Asks a service to stop. Resolves with its exit code. */
  async end(name: ServiceName): Promise<number | null> {
    return await this.#podOf(name).process.end("SIGTERM");
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#pods.values()].map(({ process }) => process.stop()));
  }

  #podOf(name: ServiceName) {
    const pod = this.#pods.get(name);
    if (pod === undefined) throw new Error(`${name} was not started.`);
    return pod;
  }
}
