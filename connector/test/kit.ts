import { makeApiKey, makeEd25519Key, makeHmacKey } from "../../deploy/keys/make.ts";
import { TcpProxy } from "../../test/support/redis-proxy.ts";
import { type Pod, serveWhole, TestRelay } from "../../test/support/relay.ts";
import { until } from "../../test/support/until.ts";
import { type AgentKey, Connector, type ConnectorOptions, type Delivery, type TrustedKey } from "../src/index.ts";
import { WireProxy } from "./wire-proxy.ts";

/** An agent with both halves of its key. */
export interface TestAgent {
  readonly agent: string;
  readonly keyId: string;
  readonly key: AgentKey;
  readonly trusted: TrustedKey;
  readonly record: object;
  readonly apiKey: string;
  readonly apiKeyRecord: object;
}

/** Ed25519, but HMAC for names that end in `-hmac`. */
export function testAgent(name: string): TestAgent {
  const agent = `agent://${name}`;
  const keyId = `${name}-1`;
  const terms = { id: keyId, agents: [agent] };
  const { record: apiKeyRecord, apiKey } = makeApiKey({ ...terms, id: `${name}-api` });
  const common = { agent, keyId, apiKey, apiKeyRecord };
  if (name.endsWith("-hmac")) {
    const { record, secret } = makeHmacKey(terms);
    const key = { keyId, alg: "hmac-sha256", secret } as const;
    return { ...common, record, key, trusted: key };
  }
  const { record, privateKey } = makeEd25519Key(terms);
  const { public_key: publicKey = "" } = record as { public_key?: string };
  const trusted = { keyId, alg: "ed25519", publicKey } as const;
  return { ...common, record, key: { keyId, alg: "ed25519", privateKey }, trusted };
}

/** A relay and the agents that it knows. Its pods start after `start`; all ends with `stop`. */
export class Stage {
  readonly relay = new TestRelay();
  readonly #agents: ReadonlyMap<string, TestAgent>;
  readonly #connectors: Connector[] = [];
  readonly #proxies: (WireProxy | TcpProxy)[] = [];

  constructor(...names: readonly string[]) {
    this.#agents = new Map(names.map((name) => [name, testAgent(name)]));
  }

  async start(): Promise<void> {
    await this.relay.start();
    await this.allow(...this.#agents.keys());
  }

  /** Writes the keys file with the keys of these agents, and no other. */
  async allow(...names: readonly string[]): Promise<void> {
    const agents = names.map((name) => this.agent(name));
    await this.relay.writeKeys({
      api_keys: agents.map(({ apiKeyRecord }) => apiKeyRecord),
      signing_keys: agents.map(({ record }) => record),
    });
  }

  agent(name: string): TestAgent {
    return this.#agents.get(name) as TestAgent;
  }

  /** Not started. */
  connector(name: string, url: string, options: Partial<ConnectorOptions> = {}): Connector {
    const { agent, key } = this.agent(name);
    const connector = new Connector({ url, agent, key, ...options });
    this.#connectors.push(connector);
    return connector;
  }

  /** Registered. */
  async online(name: string, url: string, options: Partial<ConnectorOptions> = {}): Promise<Connector> {
    const connector = this.connector(name, url, options);
    await named(connector, "starts", connector.start());
    return connector;
  }

  /** Stands in front of a pod. @param heartbeatIntervalMs what `hello` says instead of the pod's. */
  async proxy(target: string, heartbeatIntervalMs?: number): Promise<WireProxy> {
    const proxy = await new WireProxy(target, heartbeatIntervalMs).start();
    this.#proxies.push(proxy);
    return proxy;
  }

  /** Stands in front of a pod, and can cut it off. */
  async network(url: string): Promise<TcpProxy> {
    const { hostname: host, port } = new URL(url);
    const network = await new TcpProxy({ host, port: Number(port) }).start();
    this.#proxies.push(network);
    return network;
  }

  /** Ends the connectors and proxies of one test. */
  async clear(): Promise<void> {
    await Promise.all(this.#connectors.splice(0).map((connector) => connector.close()));
    await Promise.all(this.#proxies.splice(0).map((proxy) => proxy.stop()));
  }

  async stop(): Promise<void> {
    await this.clear();
    await this.relay.stop();
  }
}

/** A stage with one pod of ws-connector, which tells nobody over HTTP who is online: its agents take theirs over. */
export class PodStage extends Stage {
  #pod: Pod | undefined;

  get url(): string {
    return (this.#pod as Pod).url;
  }

  override async start(): Promise<void> {
    await super.start();
    this.#pod = await this.relay.startWsConnector();
  }

  override connector(name: string, url: string, options: Partial<ConnectorOptions> = {}): Connector {
    return super.connector(name, url, { takeOver: true, ...options });
  }
}

/** A stage with the three services behind one address. */
export class WholeStage extends Stage {
  #pod: Pod | undefined;

  get url(): string {
    return (this.#pod as Pod).url;
  }

  override async start(): Promise<void> {
    await super.start();
    this.#pod = await serveWhole(this.relay);
  }

  override async network(url = this.url): Promise<TcpProxy> {
    return await super.network(url);
  }

  override async stop(): Promise<void> {
    await this.clear();
    await this.#pod?.stop();
    await super.stop();
  }
}

/** What a connector's listeners were called with, by event. */
export function record(connector: Connector) {
  const heard = {
    states: [] as string[],
    deliveries: [] as Delivery[],
    notices: [] as { kind: string }[],
    errors: [] as { code: string; retry?: string; cause?: unknown }[],
    overflows: [] as number[],
  };
  connector.on("state", ({ status }) => heard.states.push(status));
  connector.on("delivery", (delivery) => heard.deliveries.push(delivery));
  connector.on("notice", (notice) => heard.notices.push(notice));
  connector.on("error", (error) => heard.errors.push(error));
  connector.on("overflow", ({ dropped }) => heard.overflows.push(dropped));
  return heard;
}

/** The next delivery. */
export async function next(connector: Connector): Promise<Delivery> {
  const { value } = await named(connector, "gets a delivery", connector[Symbol.asyncIterator]().next());
  return value as Delivery;
}

/** What is awaited of a connector. Where it never comes, the failure says what, and in which state the connector is. */
async function named<T>(connector: Connector, what: string, awaited: Promise<T>): Promise<T> {
  const states: string[] = [];
  const forget = connector.on("state", ({ status }) => states.push(status));
  let isOver = false;
  const over = awaited
    .then(() => {})
    .finally(() => {
      isOver = true;
      forget();
    });
  const late = until(`${connector.agent} ${what}`, () => isOver).catch((error) => {
    throw new Error(`${error.message}: ${JSON.stringify([connector.state, states])}`);
  });
  await Promise.race([over, late]);
  return await awaited;
}

/** Resolves also where the connector is in that state for a moment alone: it is back at once where nothing keeps it. */
export async function untilState(connector: Connector, status: string, withinMs?: number): Promise<void> {
  let wasSeen = connector.state.status === status;
  const forget = connector.on("state", (state) => {
    wasSeen ||= state.status === status;
  });
  await until(`${connector.agent} is ${status}`, () => wasSeen, withinMs).finally(forget);
}

/** The error that a promise rejects with. */
export async function errorOf(promise: Promise<unknown>) {
  return await promise.then(
    () => undefined,
    (error) => error,
  );
}

/** The whole lines that are JSON objects; a program that `--exec` started may write others between them. */
// biome-ignore lint/suspicious/noExplicitAny: what a program prints has no type yet.
export function jsonLines(text: string): any[] {
  const whole = text.slice(0, text.lastIndexOf("\n") + 1);
  return whole
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
}
