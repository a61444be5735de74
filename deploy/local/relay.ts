import type { IncomingMessage } from "node:http";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import { serviceOf, WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import { type Certificate, certificateOf, observeCertificate } from "relay-runtime/http/certificate.ts";
import { connectionBounds, withinOpenFiles } from "relay-runtime/http/connections.ts";
import { type HttpService, metricsServer } from "relay-runtime/http/http-service.ts";
import { HttpServer } from "relay-runtime/http/server.ts";
import type { Service } from "relay-runtime/lifecycle.ts";
import { createLogger, type Logger } from "relay-runtime/logging.ts";
import { checkSettings, type Environment, settingsReader } from "relay-runtime/settings.ts";
import { ALL_SERVICES, COMPONENTS } from "./components.ts";
import type { DevelopmentAgents } from "./dev-agents.ts";
import { type Provisions, provide } from "./provisions.ts";
import { podLabel, RunningServices } from "./running-services.ts";

/** How a relay differs from the three services over a private Redis, with development keys, on a free port. */
export interface RelayOverrides extends RelayOptions {
  /** Variables of README.md#settings. Unset, PORT is 0 (any free port) and LOG_LEVEL is silent. */
  readonly environment?: Environment;
}

export interface RelayOptions {
  /** The services that share the port; all of them by default. */
  readonly services?: readonly ServiceName[];
  /** Over a Redis Cluster, a private one unless REDIS_URL names one, with two pods of ws-connector. */
  readonly cluster?: boolean;
  /** By default JSON lines on stdout, from LOG_LEVEL on. */
  readonly logger?: Logger;
}

/** A relay that serves. */
export interface Relay {
  /** The port that it listens on. */
  readonly port: number;
  /** Base address of the HTTP surfaces, without a slash at its end: RELAY_BASE_URL. */
  readonly url: string;
  /** Full address of the websocket, path included. */
  readonly websocketUrl: string;
  /** agent://alice and agent://bob with their secrets; undefined when RELAY_KEYS_FILE was given. */
  readonly agents: DevelopmentAgents | undefined;
  /** Ends the relay and what was made for it. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Starts a relay in this process; it serves when the promise resolves.
 * @throws {SettingsError} that lists every invalid setting.
 */
export async function startRelay({ environment, ...options }: RelayOverrides = {}): Promise<Relay> {
  const provisions = await provide({ PORT: "0", LOG_LEVEL: "silent", ...environment }, options);
  let ends: { stop(): Promise<void> } = provisions;
  try {
    const relay = new LocalRelay(provisions, options);
    ends = relay;
    await relay.start();
    return relay;
  } catch (error) {
    await ends.stop();
    throw error;
  }
}

const readServerSettings = settingsReader(
  "HOST",
  "PORT",
  "RELAY_TLS_CERT_FILE",
  "RELAY_TLS_KEY_FILE",
  "RELAY_BASE_URL",
  "RELAY_WS_URL",
  "RELAY_ALTERNATE_WS_PATH",
  "RELAY_TRUSTED_PROXY_HOPS",
  "RELAY_MAX_CONNECTIONS",
  "RELAY_HTTP_CONNECTIONS",
  "RELAY_CONNECTIONS_PER_ADDRESS",
  "METRICS_PORT",
  "ADMIN_PORT",
  "LOG_LEVEL",
);

/** Pods of ws-connector, by whether the relay is on a Redis Cluster: two show that any of them serves any agent. */
const PODS = { onOneRedis: 1, onCluster: 2 } as const;

/** Services in one process on one port: what compose and Kubernetes run apart, behind one address. */
export class LocalRelay implements Service, Relay {
  readonly logger: Logger;
  readonly #provisions: Provisions;
  readonly #names: readonly ServiceName[];
  readonly #pods: number;
  readonly #certificate: Certificate | undefined;
  readonly #server: HttpServer;
  readonly #services = new RunningServices();
  readonly #started = Promise.withResolvers<void>();
  #settings: ReturnType<typeof readServerSettings>;
  #metrics: Service | undefined;
  #listening: Promise<void> = Promise.resolve();
  #serves = false;
  #stopped: Promise<void> | undefined;

  /** @throws {SettingsError} that lists every invalid setting. */
  constructor(provisions: Provisions, { services = ALL_SERVICES, cluster = false, logger }: RelayOptions = {}) {
    const { environment } = provisions;
    this.#provisions = provisions;
    this.#names = ALL_SERVICES.filter((name) => services.includes(name));
    this.#pods = cluster ? PODS.onCluster : PODS.onOneRedis;
    checkSettings([readServerSettings, ...this.#names.map((name) => COMPONENTS[name].check)], environment);
    const asked = readServerSettings(environment);
    const { host, port, logLevel: level } = asked;
    this.logger = logger ?? createLogger({ service: "agent-relay", level });
    this.#settings = withinOpenFiles(asked, this.logger, "info");
    this.#certificate = certificateOf(asked, this.logger);
    this.#server = new HttpServer({
      handler: (req, res) => this.#onceStarted(() => this.#serviceFor(req)?.handler(req, res)),
      ...(services.includes("ws-connector") && {
        upgrade: (req, socket, head) => {
          this.#onceStarted(() => this.#services.next("ws-connector")?.upgrade?.(req, socket, head));
        },
      }),
      host,
      port,
      certificate: this.#certificate,
      bounds: connectionBounds(this.#settings),
      trustedProxyHops: this.#settings.trustedProxyHops,
      // The services share the server: the first one counts for all.
      limitReached: (limit) => this.#services.all[0]?.limitReached(limit),
      logger: this.logger,
    });
  }

  get agents(): DevelopmentAgents | undefined {
    return this.#provisions.agents;
  }

  /** 0 until it listens, when any free port was asked for. */
  get port(): number {
    return this.#settings.port;
  }

  get url(): string {
    return this.#settings.baseUrl;
  }

  get websocketUrl(): string {
    return `${this.#settings.wsUrl}${WEBSOCKET_PATH}`;
  }

  /** Listens first: services name their own address in what they publish, and have to know the port. */
  async start(): Promise<void> {
    this.#listening = this.#server.start();
    await this.#listening;
    const environment = {
      // All of its pods stop together: no client can go to another one.
      RELAY_DRAIN_MS: "0",
      ...this.#provisions.environment,
      PORT: String(this.#server.port),
      RELAY_MAX_CONNECTIONS: String(Math.ceil(this.#settings.maxConnections / this.#pods)),
    };
    this.#settings = readServerSettings(environment);
    for (const name of this.#names.flatMap((name) => Array<ServiceName>(this.#instancesOf(name)).fill(name))) {
      if (this.#stopped !== undefined) return;
      const options = { logger: this.#loggerOfNext(name) };
      const service = COMPONENTS[name].create({ ...environment, ...this.#adminPortOfNext(name) }, options);
      observeCertificate(service.metrics, this.#certificate);
      this.#services.add(name, service);
      await service.start();
    }
    if (this.#stopped !== undefined) return;
    this.#metrics = metricsServer(this.#services.metrics, { ...this.#settings, logger: this.logger });
    await this.#metrics?.start();
    this.#serves = true;
    this.#started.resolve();
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /** Websockets end first, so that the server can; Redis goes last: what the services write at their stop is written. */
  async #stop(): Promise<void> {
    await this.#listening.catch(() => {});
    const pods = this.#services.of("ws-connector");
    await Promise.all(pods.map((pod) => pod.stop()));
    await this.#server.stop();
    const others = this.#services.all.filter((service) => !pods.includes(service));
    await Promise.all(others.map((service) => service.stop()));
    await this.#metrics?.stop();
    await this.#provisions.stop();
  }

  #instancesOf(name: ServiceName): number {
    return name === "ws-connector" ? this.#pods : 1;
  }

  /** Instances of one service are told apart by `pod`, as in the metrics. */
  #loggerOfNext(name: ServiceName): Logger {
    if (this.#instancesOf(name) === 1) return this.logger;
    return this.logger.child({ pod: podLabel(this.#services.of(name).length) });
  }

  /** Each pod answers its operator on a port of its own: the second one on the port after that of the first. */
  #adminPortOfNext(name: ServiceName): Environment {
    const { adminPort } = this.#settings;
    return adminPort === undefined ? {} : { ADMIN_PORT: String(adminPort + this.#services.of(name).length) };
  }

  /** What comes in before the services have started waits for them. */
  #onceStarted(answer: () => void): void {
    if (this.#serves) answer();
    else void this.#started.promise.then(answer);
  }

  /** A path of a service that does not run here is answered by one that does: 404. */
  #serviceFor(req: IncomingMessage): HttpService | undefined {
    const path = (req.url ?? "").split("?", 1)[0] ?? "";
    const isWebsocketPath = path === WEBSOCKET_PATH || path === this.#settings.alternateWsPath;
    const service = isWebsocketPath ? "ws-connector" : serviceOf(req.method ?? "GET", path);
    return this.#services.next(service) ?? this.#services.all[0];
  }
}
