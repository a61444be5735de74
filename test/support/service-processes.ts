import type { ServiceName } from "protocol/contract/surface.ts";
import { freePort } from "./free-port.ts";
import type { PodProcess } from "./pod-process.ts";
import type { TestRelay } from "./relay.ts";
import { until } from "./until.ts";

export const SERVICES = ["gateway", "ws-connector", "ops-reporting"] as const satisfies ServiceName[];

interface ServiceProcess {
  readonly pod: PodProcess;
  readonly metrics: string;
}

/** One process of each service, as they are deployed, with their metrics. They end with the relay. */
export class ServiceProcesses {
  readonly #processes: ReadonlyMap<ServiceName, ServiceProcess>;

  private constructor(processes: ReadonlyMap<ServiceName, ServiceProcess>) {
    this.#processes = processes;
  }

  /** @param settings are given to each. */
  static async start(relay: TestRelay, settings: Record<string, string> = {}): Promise<ServiceProcesses> {
    const starting = SERVICES.map(async (name) => [name, await startProcess(relay, name, settings)] as const);
    return new ServiceProcesses(new Map(await Promise.all(starting)));
  }

  pod(name: ServiceName): PodProcess {
    return this.#process(name).pod;
  }

  urlOf(name: ServiceName): string {
    return this.pod(name).url;
  }

  /** Address of a service's metrics. */
  metricsOf(name: ServiceName): string {
    return this.#process(name).metrics;
  }

  /** All that a service logged so far. */
  logOf(name: ServiceName): string {
    return this.pod(name).log.join("\n");
  }

  /** Asks a service to stop. Resolves with its exit code. */
  async end(name: ServiceName): Promise<number | null> {
    return await this.pod(name).end("SIGTERM");
  }

  #process(name: ServiceName): ServiceProcess {
    return this.#processes.get(name) as ServiceProcess;
  }
}

async function startProcess(
  relay: TestRelay,
  name: ServiceName,
  settings: Record<string, string>,
): Promise<ServiceProcess> {
  const port = String(await freePort());
  const pod = await relay.startProcess(name, { ...settings, METRICS_PORT: port });
  const metrics = `http://127.0.0.1:${port}/metrics`;
  await until(`${name} serves its metrics`, () => answers(metrics));
  return { pod, metrics };
}

async function answers(url: string): Promise<boolean> {
  const response = await fetch(url).catch(() => null);
  return response?.ok === true;
}
