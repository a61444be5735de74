import type { Registry } from "prom-client";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import type { HttpService } from "relay-runtime/http/http-service.ts";

/** What the log and the metrics call one of several instances of a service. @param n how many were there before. */
export function podLabel(n: number): string {
  return String(n + 1);
}

/** The services that run behind one address: of each one instance, or several that take turns. */
export class RunningServices {
  readonly #instances = new Map<ServiceName, readonly HttpService[]>();
  #turns = 0;

  add(name: ServiceName, instance: HttpService): void {
    this.#instances.set(name, [...this.of(name), instance]);
  }

  of(name: ServiceName): readonly HttpService[] {
    return this.#instances.get(name) ?? [];
  }

  get all(): readonly HttpService[] {
    return [...this.#instances.values()].flat();
  }

  /** Whose turn it is; undefined when the service does not run here. */
  next(name: ServiceName): HttpService | undefined {
    const instances = this.of(name);
    return instances[this.#turns++ % instances.length];
  }

  /** Instances of one service are told apart by the label `pod`. */
  get metrics(): Registry[] {
    for (const [service, instances] of this.#instances) {
      if (instances.length === 1) continue;
      for (const [n, { metrics }] of instances.entries()) {
        metrics.registry.setDefaultLabels({ service, pod: podLabel(n) });
      }
    }
    return this.all.map(({ metrics }) => metrics.registry);
  }
}
