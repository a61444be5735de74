import type { LimitName } from "runtime/metrics/catalogue.ts";
import { freePort } from "../support/free-port.ts";
import { everythingIn } from "../support/redis-dump.ts";
import type { Pod, TestRelay } from "../support/relay.ts";
import { scrape } from "../support/scrape.ts";
import { Secrets } from "../support/secrets.ts";

/** A service behind a trusted proxy, which says where its clients are. */
export interface ProxiedService extends Pod {
  /** How often a limit was reached. */
  reached(limit: LimitName): Promise<number>;
  metrics(): Promise<string>;
}

export const CLIENT = "203.0.113.7";
export const OTHER_CLIENT = "203.0.113.8";
export const CROWD = Array.from({ length: 30 }, (_, n) => `198.51.100.${n + 1}`);
export const NEIGHBOURS = ["2001:db8:0:7::1", "2001:db8:0:7:a:b:c:d"] as const;
const PROXY = "192.0.2.1";
const ADDRESSES = [CLIENT, OTHER_CLIENT, ...CROWD, ...NEIGHBOURS, "2001:db8:0:7", PROXY];

/** How the proxy names the client. */
export const from = (address: string) => ({ "X-Forwarded-For": `${PROXY}, ${address}` });

/** The services of one test file, which are asked afterwards what they have kept of their clients' addresses. */
export class ProxiedServices {
  readonly #relay: TestRelay;
  readonly #services = new Set<ProxiedService>();
  /** Of the services that were stopped. */
  readonly #metrics: string[] = [];

  constructor(relay: TestRelay) {
    this.#relay = relay;
  }

  async start(
    service: "startWsConnector" | "startGateway" | "startOpsReporting",
    overrides: Record<string, string> = {},
  ): Promise<ProxiedService> {
    const metricsPort = String(await freePort());
    const settings = { RELAY_TRUSTED_PROXY_HOPS: "1", METRICS_PORT: metricsPort, ...overrides };
    const pod = await this.#relay[service](settings);
    const read = () => scrape(`http://127.0.0.1:${metricsPort}/metrics`);
    const served = {
      ...pod,
      reached: async (limit: LimitName) => (await read()).value("relay_limits_total", { limit }) ?? 0,
      metrics: async () => (await read()).text,
    };
    this.#services.add(served);
    return served;
  }

  /** A pod has a thread of its own, which takes about 50 MB. */
  async stop(served: ProxiedService): Promise<void> {
    this.#services.delete(served);
    this.#metrics.push(await served.metrics());
    await served.stop();
  }

  /** Addresses of clients that stand in Redis, in a log line or in a metric, also as a hash that could be guessed. */
  async addressesKept(): Promise<string[]> {
    const secrets = new Secrets(Object.fromEntries(ADDRESSES.map((address) => [address, address])));
    const servers = await this.#relay.view().servers();
    const kept = (await Promise.all(servers.map((server) => everythingIn(server)))).join();
    const metrics = await Promise.all([...this.#services].map((served) => served.metrics()));
    return [kept, this.#relay.log.join("\n"), ...this.#metrics, ...metrics].flatMap((text) => secrets.in(text));
  }
}
