import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HttpServer } from "@agent-relay/shared/http/server.ts";
import { createLogger, type Logger } from "@agent-relay/shared/logging.ts";
import { createWsConnector } from "@agent-relay/ws-connector/service.ts";
import { readWsConnectorSettings } from "@agent-relay/ws-connector/settings.ts";
import { makeApiKey, makeEd25519Key, makeHmacKey } from "../../deploy/keys/make.ts";
import { type AgentKey, AgentSocket, ed25519Key, type Frame, hmacKey, signed } from "./agent.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { TestRedis } from "./test-redis.ts";

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
  readonly file: object;
}

/** A private Redis, a keys file, and as many pods of each service as a test asks for. Everything ends with `stop`. */
export class TestRelay {
  readonly redis = new TestRedis();
  readonly log: string[] = [];
  readonly keys: Keys;
  readonly #pods: Pod[] = [];
  readonly #sockets: AgentSocket[] = [];
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
    await this.redis.stop();
    await this.#folder?.[Symbol.asyncDispose]();
  }

  get keysFile(): string {
    return join((this.#folder as { path: string }).path, "keys.json");
  }

  /** Settings that every service of this relay shares. */
  get environment(): Environment {
    return { REDIS_URL: this.redis.url, RELAY_KEYS_FILE: this.keysFile, PORT: "0", LOG_LEVEL: "debug" };
  }

  async writeKeys(file: object): Promise<void> {
    await writeFile(this.keysFile, JSON.stringify(file), { mode: 0o600 });
  }

  logger(service: string): Logger {
    return createLogger({ service, level: "debug" }, { write: (line: string) => void this.log.push(line) });
  }

  async startWsConnector(overrides: Environment = {}): Promise<Pod> {
    const logger = this.logger("ws-connector");
    const connector = createWsConnector(readWsConnectorSettings({ ...this.environment, ...overrides }), { logger });
    const { handler, upgrade } = connector;
    const server = new HttpServer({ handler, upgrade, host: "127.0.0.1", port: 0, logger });
    await connector.start();
    await server.start();
    return this.#add(server.port, async () => {
      await connector.stop();
      await server.stop();
    });
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

  #add(port: number, stop: () => Promise<void>): Pod {
    const pod = { port, url: `http://127.0.0.1:${port}`, stop };
    this.#pods.push(pod);
    return pod;
  }
}

function makeKeys(names: readonly string[]): Keys {
  const agents = new Map<string, AgentKey>();
  const apiKeys = new Map<string, string>();
  const file = { api_keys: [] as object[], signing_keys: [] as object[] };
  for (const name of names) {
    const terms = { id: `${name}-${randomBytes(2).toString("hex")}`, agents: [`agent://${name}`] };
    if (name.endsWith("-hmac")) {
      const { record, secret } = makeHmacKey(terms);
      file.signing_keys.push(record);
      agents.set(name, hmacKey(terms.id, secret));
    } else {
      const { record, privateKey } = makeEd25519Key(terms);
      file.signing_keys.push(record);
      agents.set(name, ed25519Key(terms.id, privateKey));
    }
    const { record, apiKey } = makeApiKey({ ...terms, id: `${terms.id}-gateway` });
    file.api_keys.push(record);
    apiKeys.set(name, apiKey);
  }
  return { agents, apiKeys, file };
}
