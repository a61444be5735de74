import { randomBytes } from "node:crypto";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Redis } from "ioredis";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import { createLogger, type Logger } from "relay-runtime/logging.ts";
import { redisAt } from "relay-window/redis/connect.ts";
import type { RedisCalls } from "relay-window/redis/redis-calls.ts";
import { makeApiKey, makeEd25519Key, makeHmacKey } from "../../deploy/keys/make.ts";
import { type RelayOptions, startRelay } from "../../deploy/local/relay.ts";
import { type AgentKey, AgentSocket, ed25519Key, type Frame, hmacKey, signed } from "./agent.ts";
import { freePort } from "./free-port.ts";
import { PodProcess, type ProcessLimits } from "./pod-process.ts";
import { RedisProxy } from "./redis-proxy.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { type RedisUser, TestRedis } from "./test-redis.ts";
import { until } from "./until.ts";
import { WindowView } from "./window-view.ts";

type Environment = Record<string, string>;

/** Services on a port of their own. */
export interface Pod {
  readonly port: number;
  readonly url: string;
  stop(): Promise<void>;
}

/** A pod that can die. */
export interface MortalPod extends Pod {
  end(signal: "SIGKILL"): Promise<unknown>;
}

/** Keys of agents `agent://<name>`: Ed25519, but HMAC for names that end in `-hmac`. */
interface Keys {
  readonly agents: ReadonlyMap<string, AgentKey>;
  readonly apiKeys: ReadonlyMap<string, string>;
  /** What each agent is handed: the content of its key file. */
  readonly keyFiles: ReadonlyMap<string, object>;
  readonly file: object;
}

/** A private Redis, a keys file, and as many pods of each service as a test asks for. Everything ends with `stop`. */
export class TestRelay {
  readonly redis: TestRedis = new TestRedis();
  readonly log: string[] = [];
  readonly keys: Keys;
  readonly #sockets: AgentSocket[] = [];
  readonly #ends: (() => unknown)[] = [];
  /** Pods that have been ready. */
  readonly #started = new WeakSet<Pod>();
  #folder: Awaited<ReturnType<typeof temporaryFolder>> | undefined;

  constructor(...names: readonly string[]) {
    this.keys = makeKeys(names);
  }

  async start(): Promise<this> {
    this.#folder = await temporaryFolder();
    await this.writeKeys(this.keys.file);
    await this.startRedis();
    return this;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.socket.terminate();
    for (const end of this.#ends.splice(0).reverse()) await end();
    await this.stopRedis();
    await this.#folder?.[Symbol.asyncDispose]();
  }

  /** Ends something with the relay: before all that was there before it. */
  defer(end: () => unknown): void {
    this.#ends.push(end);
  }

  /** Every connection that was made through `connect` or `online`. */
  get sockets(): readonly AgentSocket[] {
    return this.#sockets;
  }

  get keysFile(): string {
    return join((this.#folder as { path: string }).path, "keys.json");
  }

  /** How many partitions the window has, unless a test gives another number. */
  get partitions(): number {
    return 1;
  }

  /** `REDIS_URL` of one user. */
  urlFor(user: RedisUser): string {
    return this.redis.urlFor(user);
  }

  /** Redis dies, and comes back empty. */
  async loseWindow(): Promise<void> {
    await this.redis.restart();
  }

  /** Settings that every service of this relay shares. */
  get environment(): Environment {
    return { REDIS_URL: this.redis.url, RELAY_KEYS_FILE: this.keysFile, PORT: "0", LOG_LEVEL: "debug" };
  }

  /** Settings of one service, which reaches Redis as its own user. */
  environmentOf(user: RedisUser, overrides: Environment = {}): Environment {
    return { ...this.environment, REDIS_URL: this.urlFor(user), ...overrides };
  }

  /** Replaces the file whole: a pod that starts meanwhile must not read half of it. */
  async writeKeys(file: object): Promise<void> {
    const written = `${this.keysFile}.new`;
    await writeFile(written, JSON.stringify(file), { mode: this.keysFileMode });
    await rename(written, this.keysFile);
  }

  protected get keysFileMode(): number {
    return 0o600;
  }

  logger(service: string): Logger {
    return createLogger({ service, level: "debug" }, { write: (line: string) => void this.log.push(line) });
  }

  /** The three services behind one address. */
  async startWhole(overrides: Environment = {}): Promise<Pod> {
    return await this.#start({ ...this.environment, LOG_LEVEL: "silent", ...overrides });
  }

  /** A service in this process. */
  async startService(service: ServiceName, overrides: Environment = {}): Promise<Pod> {
    const options = { services: [service], logger: this.logger(service) };
    return await this.#start(this.environmentOf(service, overrides), options);
  }

  async startWsConnector(overrides: Environment = {}): Promise<Pod> {
    return await this.startService("ws-connector", overrides);
  }

  /**
   * The websocket side of the relay, for tests that are not about single pods: one here, as `npm start` has it; on
   * containers two, and connections go to them in turn.
   */
  async startWsConnectors(overrides: Environment = {}): Promise<Pod> {
    return await this.startWsConnector(overrides);
  }

  async startGateway(overrides: Environment = {}): Promise<Pod> {
    return await this.startService("gateway", overrides);
  }

  async startOpsReporting(overrides: Environment = {}): Promise<Pod> {
    return await this.startService("ops-reporting", overrides);
  }

  /** A service as it is deployed, a process of its own: one that can die. @param nodeArguments arguments of Node itself. */
  async startProcess(
    service: ServiceName,
    overrides: Environment = {},
    nodeArguments: readonly string[] = [],
    limits: ProcessLimits = {},
  ): Promise<PodProcess> {
    const environment = this.environmentOf(service, overrides);
    const pod = await PodProcess.start(this.programOf(service), environment, nodeArguments, limits);
    this.defer(() => pod.stop());
    return pod;
  }

  async startWsConnectorProcess(overrides: Environment = {}): Promise<PodProcess> {
    return await this.startProcess("ws-connector", overrides);
  }

  /** A pod of ws-connector that is no part of this process. */
  async startMortalWsConnector(overrides: Environment = {}): Promise<MortalPod> {
    return await this.startWsConnectorProcess(overrides);
  }

  /** A look into Redis. */
  view(partitions = this.partitions): WindowView {
    const view = new WindowView(this.adminClient(), partitions);
    this.defer(() => view.stop());
    return view;
  }

  /** A link to Redis as the services have them, under a user's name and rights. */
  async link(user: RedisUser = "gateway"): Promise<RedisCalls> {
    const link = redisAt({ url: this.urlFor(user), name: "test", logger: this.logger("test") });
    this.defer(() => link.stop());
    await link.start();
    return link;
  }

  /** A proxy in front of Redis, for the pod of ws-connector that is given its `url`. */
  async proxy(): Promise<RedisProxy> {
    const proxy = await new RedisProxy(this.redis.url).start();
    this.defer(() => proxy.stop());
    return proxy;
  }

  /** Connects to a pod. @param headers go out with the upgrade. */
  async connect(pod: Pod, path = "/ws", headers: Record<string, string> = {}): Promise<AgentSocket> {
    const socket = await AgentSocket.open(`${pod.url.replace("http", "ws")}${path}`, headers);
    this.#sockets.push(socket);
    return socket;
  }

  /** Connects to a pod and registers an agent there, once the pod has been ready. */
  async online(pod: Pod, name: string): Promise<AgentSocket> {
    await this.#untilStarted(pod);
    const socket = await this.connect(pod);
    const ack = await socket.ask(this.envelope(name, "agent.register"));
    if (ack.frame !== "ack") throw new Error(`agent.register was refused: ${ack.code}`);
    return socket;
  }

  /** Registers agents on these pods in turn; by name. */
  async allOnline(pods: readonly Pod[], names: readonly string[]): Promise<Map<string, AgentSocket>> {
    const online = names.map(async (name, n) => [name, await this.online(pods[n % pods.length] as Pod, name)] as const);
    return new Map(await Promise.all(online));
  }

  /** A signed envelope of agent://<name>. */
  envelope(name: string, type: string, fields: { readonly [name: string]: unknown } = {}): Frame {
    return signed(this.keys.agents.get(name) as AgentKey, { type, from: `agent://${name}`, ...fields });
  }

  /** The field with which requests to the gateway authenticate as agent://<name>. */
  credentials(name: string): { readonly "x-api-key": string } {
    return { "x-api-key": this.keys.apiKeys.get(name) as string };
  }

  /** A client that may do everything. */
  protected adminClient(): Redis {
    return this.redis.adminClient();
  }

  protected async startRedis(): Promise<void> {
    await this.redis.start();
  }

  protected async stopRedis(): Promise<void> {
    await this.redis.stop();
  }

  /** What a process of a service runs: a path from the repository on, or a whole one. */
  protected programOf(service: ServiceName): string {
    return `services/${service}/src/main.ts`;
  }

  /** A pod that has just started may not hear Redis yet. One that lost it later is not waited for. */
  async #untilStarted(pod: Pod): Promise<void> {
    if (this.#started.has(pod)) return;
    await until("the pod is ready", async () => (await fetch(`${pod.url}/ready`)).ok);
    this.#started.add(pod);
  }

  async #start(environment: Environment, options: RelayOptions = {}): Promise<Pod> {
    const relay = await startRelay({ environment, ...options });
    const stop = () => relay.stop();
    this.defer(stop);
    return { port: relay.port, url: `http://127.0.0.1:${relay.port}`, stop };
  }
}

function makeKeys(names: readonly string[]): Keys {
  const agents = new Map<string, AgentKey>();
  const apiKeys = new Map<string, string>();
  const keyFiles = new Map<string, object>();
  const file = { api_keys: [] as object[], signing_keys: [] as object[] };
  for (const name of names) {
    const terms = { id: `${name}-${randomBytes(2).toString("hex")}`, agents: [`agent://${name}`] };
    const keyFile = { agent_id: `agent://${name}`, key_id: terms.id };
    if (name.endsWith("-hmac")) {
      const { record, secret } = makeHmacKey(terms);
      file.signing_keys.push(record);
      agents.set(name, hmacKey(terms.id, secret));
      keyFiles.set(name, { ...keyFile, alg: record.alg, secret });
    } else {
      const { record, privateKey } = makeEd25519Key(terms);
      file.signing_keys.push(record);
      agents.set(name, ed25519Key(terms.id, privateKey));
      keyFiles.set(name, { ...keyFile, alg: record.alg, private_key: privateKey });
    }
    const { record, apiKey } = makeApiKey({ ...terms, id: `${terms.id}-gateway` });
    file.api_keys.push(record);
    apiKeys.set(name, apiKey);
  }
  return { agents, apiKeys, keyFiles, file };
}

/** The three services behind one address, as `npm start` serves them; they end with the relay at the latest. */
export async function serveWhole(relay: TestRelay, overrides: Record<string, string> = {}): Promise<Pod> {
  return await relay.startWhole(overrides);
}

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

const TEXT = "x".repeat(30_000);
/** Sent before their acks: far fewer than close a connection that is congested. */
const AT_ONCE = 4;

/** Numbers of messages. */
export interface Congested {
  /** Those that were acked in realtime. */
  readonly promised: readonly number[];
  /** Those that were `unavailable`, since Redis was late: nobody knows whether they arrive. */
  readonly unknown: ReadonlySet<number>;
}

/** Has a client read no more, and sends numbered messages of `agent://alice` to its agent until it is congested. */
export async function congest(
  relay: TestRelay,
  alice: AgentSocket,
  client: AgentSocket,
  name: string,
): Promise<Congested> {
  client.socket.pause();
  const [promised, unknown] = [[] as number[], new Set<number>()];
  const send = async (n: number): Promise<boolean> => {
    const message = { to: `agent://${name}`, payload: { n, text: TEXT } };
    const { target_delivery } = await alice.ask(relay.envelope("alice", "message.send", message));
    if (target_delivery === undefined) unknown.add(n);
    else if (target_delivery.can_deliver_realtime) promised.push(n);
    return target_delivery?.can_deliver_realtime === false;
  };
  for (let n = 0; ; n += AT_ONCE) {
    const refused = await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => send(n + index)));
    // Each ack is looked for by itself: they are found in any order.
    if (refused.includes(true)) return { promised: promised.toSorted((a, b) => a - b), unknown };
  }
}
