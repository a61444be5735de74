import type { ServiceName } from "protocol/contract/surface.ts";
import { freePort } from "./free-port.ts";
import type { Pod, TestRelay } from "./relay.ts";

interface Service {
  readonly pod: Pod;
  readonly metrics: string;
}

/** One of each service in the process of the test, with their metrics. They end with the relay. */
export class Services {
  readonly #services: ReadonlyMap<ServiceName, Service>;

  private constructor(services: ReadonlyMap<ServiceName, Service>) {
    this.#services = services;
  }

  static async start(relay: TestRelay): Promise<Services> {
    const start = async (make: (settings: Record<string, string>) => Promise<Pod>): Promise<Service> => {
      const port = String(await freePort());
      return { pod: await make({ METRICS_PORT: port }), metrics: `http://127.0.0.1:${port}/metrics` };
    };
    return new Services(
      new Map([
        ["gateway", await start((settings) => relay.startGateway(settings))],
        ["ws-connector", await start((settings) => relay.startWsConnector(settings))],
        ["ops-reporting", await start((settings) => relay.startOpsReporting(settings))],
      ]),
    );
  }

  pod(name: ServiceName): Pod {
    return (this.#services.get(name) as Service).pod;
  }

  /** Address of a service's metrics. */
  metricsOf(name: ServiceName): string {
    return (this.#services.get(name) as Service).metrics;
  }
}
