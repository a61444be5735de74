import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createGateway } from "@agent-relay/gateway/service.ts";
import { readGatewaySettings } from "@agent-relay/gateway/settings.ts";
import { createOpsReporting } from "@agent-relay/ops-reporting/service.ts";
import { readOpsReportingSettings } from "@agent-relay/ops-reporting/settings.ts";
import { HttpServer } from "@agent-relay/shared/http/server.ts";
import type { HttpService } from "@agent-relay/shared/http/serving.ts";
import { createLogger, type Logger } from "@agent-relay/shared/logging.ts";
import { createWsConnector } from "@agent-relay/ws-connector/service.ts";
import { readWsConnectorSettings } from "@agent-relay/ws-connector/settings.ts";
import { makeApiKey, makeEd25519Key, makeHmacKey } from "../../deploy/keys/make.ts";
import { type AgentKey, AgentSocket, ed25519Key, type Frame, hmacKey, signed } from "./agent.ts";
import { PodProcess } from "./pod-process.ts";
import { RedisProxy } from "./redis-proxy.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { type RedisUser, TestRedis } from "./test-redis.ts";
import { WindowView } from "./window-view.ts";

type Environment = Record<string, string>;

/** One service on a port of its own. */
export interface Pod {
  readonly port: number;
  readonly url: string;
  stop(): Promise<void>;
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
  readonly #pods: Pod[] = [];
  readonly #sockets: AgentSocket[] = [];
  readonly #tools: { stop(): Promise<void> | void }[] = [];
  #folder: Awaited<ReturnType<typeof temporaryFolder>> | undefined;

  constructor(...names: readonly string[]) {
    this.keys = makeKeys(names);
  }

  async start(): Promise<this> {
    this.#folder = await temporaryFolder();
    await this.writeKeys(this.keys.file);
    await this.redis.start();
    return this;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.socket.terminate();
    await Promise.all(this.#pods.map((pod) => pod.stop()));
    for (const tool of this.#tools) await tool.stop();
    await this.redis.stop();
    await this.#folder?.[Symbol.asyncDispose]();
  }

  /** Every connection that was made through `connect` or `online`. */
  get sockets(): readonly AgentSocket[] {
    return this.#sockets;
  }

  get keysFile(): string {
    return join((this.#folder as { path: string }).path, "keys.json");
  }

  /** Settings that every service of this relay shares. */
  get environment(): Environment {
    return { REDIS_URL: this.redis.url, RELAY_KEYS_FILE: this.keysFile, PORT: "0", LOG_LEVEL: "debug" };
  }

  /** Settings of one service, which reaches Redis as its own user. */
  environmentOf(user: RedisUser, overrides: Environment = {}): Environment {
    return { ...this.environment, REDIS_URL: this.redis.urlFor(user), ...overrides };
  }

  async writeKeys(file: object): Promise<void> {
    await writeFile(this.keysFile, JSON.stringify(file), { mode: 0o600 });
  }

  logger(service: string): Logger {
    return createLogger({ service, level: "debug" }, { write: (line: string) => void this.log.push(line) });
  }

  async startWsConnector(overrides: Environment = {}): Promise<Pod> {
    const logger = this.logger("ws-connector");
    const connector = createWsConnector(readWsConnectorSettings(this.environmentOf("ws-connector", overrides)), {
      logger,
    });
    const { handler, upgrade } = connector;
    const server = new HttpServer({ handler, upgrade, host: "127.0.0.1", port: 0, logger });
    await connector.start();
    await server.start();
    return this.#add(server.port, async () => {
      await connector.stop();
      await server.stop();
    });
  }

  /**
   * The websocket side of the relay, for tests that are not about single pods: one here, as `npm start` has it; on
   * containers two, and connections go to them in turn.
   */
  async startWsConnectors(overrides: Environment = {}): Promise<Pod> {
    return await this.startWsConnector(overrides);
  }

  async startGateway(overrides: Environment = {}): Promise<Pod> {
    const logger = this.logger("gateway");
    const settings = readGatewaySettings(this.environmentOf("gateway", overrides));
    return await this.#serve(createGateway(settings, { logger }), logger);
  }

  async startOpsReporting(overrides: Environment = {}): Promise<Pod> {
    const logger = this.logger("ops-reporting");
    const settings = readOpsReportingSettings(this.environmentOf("ops-reporting", overrides));
    return await this.#serve(createOpsReporting(settings, { logger }), logger);
  }

  /** A ws-connector that is a process of its own: one that can die. */
  async startWsConnectorProcess(overrides: Environment = {}): Promise<PodProcess> {
    const environment = this.environmentOf("ws-connector", overrides);
    const pod = await PodProcess.start("services/ws-connector/src/main.ts", environment);
    this.#pods.push(pod);
    return pod;
  }

  /** A look into Redis; ends with the relay. */
  view(partitions = 1): WindowView {
    const view = new WindowView(this.redis.adminAddress, partitions);
    this.#tools.push(view);
    return view;
  }

  /** A proxy in front of Redis, for the pod that is given its `url`; ends with the relay. */
  async proxy(): Promise<RedisProxy> {
    const proxy = await new RedisProxy(this.redis.url).start();
    this.#tools.push(proxy);
    return proxy;
  }

  /** Connects to a pod. */
  async connect(pod: Pod, path = "/ws"): Promise<AgentSocket> {
    const socket = await AgentSocket.open(`${pod.url.replace("http", "ws")}${path}`);
    this.#sockets.push(socket);
    return socket;
  }

  /** Connects to a pod and registers an agent there. */
  async online(pod: Pod, name: string): Promise<AgentSocket> {
    const socket = await this.connect(pod);
    const ack = await socket.ask(this.envelope(name, "agent.register"));
    if (ack.frame !== "ack") throw new Error(`agent.register was refused: ${ack.code}`);
    return socket;
  }

  /** A signed envelope of agent://<name>. */
  envelope(name: string, type: string, fields: { readonly [name: string]: unknown } = {}): Frame {
    return signed(this.keys.agents.get(name) as AgentKey, { type, from: `agent://${name}`, ...fields });
  }

  /** Without websockets the server stops first, so that what its last answers counted is written. */
  async #serve(service: HttpService, logger: Logger): Promise<Pod> {
    const server = new HttpServer({ handler: service.handler, host: "127.0.0.1", port: 0, logger });
    await service.start();
    await server.start();
    return this.#add(server.port, async () => {
      await server.stop();
      await service.stop();
    });
  }

  #add(port: number, stop: () => Promise<void>): Pod {
    const pod = { port, url: `http://127.0.0.1:${port}`, stop };
    this.#pods.push(pod);
    return pod;
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
