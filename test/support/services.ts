import type { ServiceName } from "protocol/contract/surface.ts";
import { freePort } from "./free-port.ts";
import type { Pod } from "./relay.ts";
import { until } from "./until.ts";

export const SERVICES = ["gateway", "ws-connector", "ops-reporting"] as const satisfies ServiceName[];

interface Service<Started extends Pod> {
  readonly pod: Started;
  readonly metrics: string;
}

/** One of each service, with their metrics. They end with the relay. */
export class Services<Started extends Pod> {
  readonly #services: ReadonlyMap<ServiceName, Service<Started>>;

  private constructor(services: ReadonlyMap<ServiceName, Service<Started>>) {
    this.#services = services;
  }

  /** @param start starts a service with these settings, in this process or in its own. */
  static async start<Started extends Pod>(
    start: (name: ServiceName, settings: Record<string, string>) => Promise<Started>,
  ): Promise<Services<Started>> {
    const starting = SERVICES.map(async (name) => {
      const port = String(await freePort());
      const metrics = `http://127.0.0.1:${port}/metrics`;
      const pod = await start(name, { METRICS_PORT: port });
      await until(`${name} serves its metrics`, () => answers(metrics));
      return [name, { pod, metrics }] as const;
    });
    return new Services(new Map(await Promise.all(starting)));
  }

  pod(name: ServiceName): Started {
    return this.#of(name).pod;
  }

  /** Address of a service's metrics. */
  metricsOf(name: ServiceName): string {
    return this.#of(name).metrics;
  }

  #of(name: ServiceName): Service<Started> {
    return this.#services.get(name) as Service<Started>;
  }
}

async function answers(url: string): Promise<boolean> {
  const response = await fetch(url).catch(() => null);
  return response?.ok === true;
}
