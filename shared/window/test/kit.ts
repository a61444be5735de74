import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeEach, jest } from "@jest/globals";
import { Redis } from "ioredis";
import { type Envelope, kindOf } from "relay-protocol/wire/envelope.ts";
import { PRESENCE_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { createLogger, type Logger } from "relay-runtime/logging.ts";
import { TestRedis } from "../../../test/support/test-redis.ts";
import { until } from "../../../test/support/until.ts";
import { waitForAnswers } from "../../../test/support/use.ts";
import { countersOf, windowKeysIn } from "../../../test/support/window-view.ts";
import type {
  Acceptance,
  AcceptanceItem,
  DeliveryAcceptance,
  Prepared,
  PresenceAcceptance,
} from "../src/acceptance/acceptance.ts";
import { Acceptor } from "../src/acceptance/acceptor.ts";
import type { PodChannelEvents } from "../src/channel/pod-channel.ts";
import { principalOf } from "../src/limits/principals.ts";
import { type HeldRoute, KnownEpochs, RouteRestorer } from "../src/presence/held-routes.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import type { RedisCalls } from "../src/redis/redis-calls.ts";
import { RedisLink } from "../src/redis/redis-link.ts";
import { type Reply, SCRIPTS, type ScriptName } from "../src/redis/scripts.ts";
import type { PartitionKeys, WholeKeys } from "../src/redis/window-keys.ts";
import { ProcessWindow } from "../src/window/process-window.ts";
import { BOB, delivery, envelopeOf, presence, requestOf, textOf } from "./envelopes.ts";

export const LOGGER = createLogger({ service: "test", level: "silent" });

/** A private Redis, a client that looks into it, and whatever a test opens on it. */
export class Bench {
  readonly redis = new TestRedis();
  readonly #closers: (() => unknown)[] = [];
  #client: Redis | undefined;

  get client(): Redis {
    return this.#client as Redis;
  }

  /** An empty Redis, with nobody connected. */
  async open(): Promise<void> {
    await this.redis.start();
    this.#client = this.connect();
    await this.#client.flushall();
  }

  /** Closes what was opened since the last time, but not Redis. */
  async clear(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
  }

  later(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** A client with nothing of the relay's about it. */
  connect(): Redis {
    const client = new Redis({ path: this.redis.path, replyMapping: "legacy", disconnectTimeout: 10 });
    client.on("error", () => {});
    this.later(() => client.disconnect());
    return client;
  }

  async link(name = "test"): Promise<RedisLink> {
    const link = new RedisLink({ url: this.redis.url, name, logger: LOGGER });
    this.later(() => link.stop());
    await link.start();
    return link;
  }

  /** What a pod needs to accept envelopes, on a link of its own unless one is given. */
  async pod(options: PodOptions = {}): Promise<Pod> {
    const { pod = "pod-a", logger = LOGGER } = options;
    const link = options.link ?? new RedisLink({ url: this.redis.url, name: pod, logger });
    const made = podOn(link, options);
    this.later(() => link.stop());
    if (options.link === undefined) await link.start();
    else await made.window.adoptOpenWindow();
    return made;
  }

  /** Names of the keys of a partition, in the window that is open. */
  async keys(partition = 0): Promise<PartitionKeys> {
    return (await windowKeysIn(this.client, partition + 1)).partition(partition);
  }

  /** Names of the keys of what is counted for all partitions, in the window that is open. */
  async wholeKeys(): Promise<WholeKeys> {
    return (await windowKeysIn(this.client)).whole;
  }

  /** Listens where a connector pod would. */
  async ear(pod: string, partition = 0): Promise<Ear> {
    const ear = new Ear(this.connect(), this.client, partitionKeys.podChannel(partition, pod));
    await ear.listen();
    return ear;
  }

  /** Gives an agent a route (pod, connection, epoch), held since it was last seen, and that time. */
  async seed(agent: string, route: string, lastSeen: number, partition = 0): Promise<void> {
    await this.client.hset((await this.keys(partition)).route, agent, `${route} ${lastSeen} ${lastSeen}`);
    await this.client.zadd((await this.keys(partition)).presence, lastSeen, agent);
    await this.client.zadd((await this.keys(partition)).online, lastSeen, agent);
  }

  /** Agents and their routes: pod, connection, epoch. */
  async routes(partition = 0): Promise<Record<string, string>> {
    const routes = Object.entries(await this.client.hgetall((await this.keys(partition)).route));
    return Object.fromEntries(routes.map(([agent, route]) => [agent, route.split(" ").slice(0, 3).join(" ")]));
  }

  /** The counters that acceptance moves. */
  async counters(partition = 0): Promise<Record<string, number>> {
    return await countersOf(this.client, await this.keys(partition));
  }

  /** How often Redis carried out each command since the last `CONFIG RESETSTAT`. */
  async commandCalls(): Promise<Record<string, number>> {
    const stats = await this.client.info("commandstats");
    return Object.fromEntries([...stats.matchAll(/cmdstat_([a-z|]+):calls=(\d+)/g)].map((m) => [m[1], Number(m[2])]));
  }
}

/**
 * A bench for the tests of one file, each of which begins with an empty Redis and nobody connected. Links wait for every
 * answer, unless a test pauses Redis or the file says `giveUpCalls`.
 */
export function redisBench(): Bench {
  const bench = new Bench();
  waitForAnswers();
  beforeEach(() => bench.open());
  afterEach(async () => {
    jest.restoreAllMocks();
    await bench.clear();
  });
  afterAll(() => bench.redis.stop());
  return bench;
}

interface PodOptions {
  readonly pod?: string;
  readonly partitions?: number;
  readonly deployId?: string;
  readonly agentsPerKey?: number;
  readonly agentsPerIssuer?: number;
  readonly gatherMs?: number;
  readonly link?: RedisLink;
  /** Of the link. */
  readonly logger?: Logger;
}

/** What a pod needs to accept envelopes, on a link that somebody else starts and stops. */
export function podOn<Link extends RedisCalls>(
  link: Link,
  {
    pod = "pod-a",
    partitions = 1,
    deployId = "deploy-1",
    agentsPerKey = 0,
    agentsPerIssuer = 0,
    gatherMs = 0,
  }: PodOptions = {},
): Pod<Link> {
  const window = new ProcessWindow({ link, partitions, deployId, logger: LOGGER });
  const { offlineAfterMs } = PRESENCE_LIMITS;
  const { proofFreshnessMs } = SESSION_LIMITS;
  const limits = { offlineAfterMs, proofFreshnessMs, agentsPerKey, agentsPerIssuer, gatherMs };
  const epochs = new KnownEpochs(partitions);
  return new Pod(link, window, new Acceptor({ link, window, pod, epochs, ...limits, logger: LOGGER }), epochs);
}

/** What comes in with an envelope; the rest has values that do. */
export type Incoming = Partial<
  Pick<
    AcceptanceItem,
    | "origin"
    | "principal"
    | "hasNamespace"
    | "isWithinPrincipal"
    | "acceptFrom"
    | "credential"
    | "connection"
    | "isCongested"
    | "prepared"
    | "claim"
    | "abandoned"
  >
>;

/** One process that accepts. */
export class Pod<Link extends RedisCalls = RedisLink> {
  readonly link: Link;
  readonly window: ProcessWindow;
  readonly acceptor: Acceptor;
  readonly epochs: KnownEpochs;

  constructor(link: Link, window: ProcessWindow, acceptor: Acceptor, epochs = new KnownEpochs(window.partitions)) {
    this.link = link;
    this.window = window;
    this.acceptor = acceptor;
    this.epochs = epochs;
  }

  accept(envelope: Envelope, incoming: Incoming = {}): Promise<Acceptance> {
    const kind = kindOf(envelope.type);
    if (kind === undefined) throw new Error("no envelope type");
    const {
      origin = "websocket",
      principal = principalOf({ keyId: envelope.key_id }),
      connection = "c1",
      ...rest
    } = incoming;
    return new Promise((done) => {
      this.acceptor.accept({ envelope, kind, text: textOf(envelope), origin, principal, connection, ...rest, done });
    });
  }

  /** What comes before the acceptance of a `session.*` envelope. */
  async prepare(
    envelope: Envelope,
    { principal = principalOf({ keyId: envelope.key_id }), claim }: Pick<Incoming, "principal" | "claim"> = {},
  ): Promise<Prepared | Acceptance> {
    const kind = kindOf(envelope.type) as AcceptanceItem["kind"];
    return await this.acceptor.prepare({ envelope, kind, text: textOf(envelope), principal, claim });
  }

  /** Prepares and accepts, as services do. */
  async take(envelope: Envelope, incoming: Incoming = {}): Promise<Acceptance> {
    const kind = kindOf(envelope.type) as AcceptanceItem["kind"];
    if (!this.acceptor.needsPreparation({ ...incoming, kind })) return await this.accept(envelope, incoming);
    const prepared = await this.prepare(envelope, incoming);
    return "outcome" in prepared ? prepared : await this.accept(envelope, { ...incoming, prepared });
  }

  /** All in one call of the script accept, if they lie in one partition. */
  acceptAll(...envelopes: readonly Envelope[]): Promise<Acceptance[]> {
    return Promise.all(envelopes.map((envelope) => this.accept(envelope)));
  }

  async register(agent: string, connection = "c1"): Promise<PresenceAcceptance> {
    return presence(await this.accept(envelopeOf("agent.register", agent), { connection }));
  }

  async heartbeat(agent: string, connection = "c1"): Promise<Acceptance> {
    return await this.accept(envelopeOf("agent.heartbeat", agent), { connection });
  }

  async request(from: string, to: string, minutes = 60, incoming: Incoming = {}): Promise<DeliveryAcceptance> {
    return delivery(await this.take(requestOf(from, to, minutes), incoming));
  }
}

/** A link whose scripts are told the time: what depends on a millisecond is tested on that millisecond. */
export class ClockedLink extends RedisLink {
  /** Unix ms. */
  at = Date.now();

  /** One that is up, and ends with the bench. */
  static async of(bench: Bench): Promise<ClockedLink> {
    const link = new ClockedLink({ url: bench.redis.url, name: "clocked", logger: LOGGER });
    bench.later(() => link.stop());
    await link.start();
    return link;
  }

  override async run(
    script: ScriptName,
    keys: readonly string[],
    args: readonly (string | number)[] = [],
  ): Promise<Reply> {
    const time = `{ '${Math.floor(this.at / 1000)}', '${(this.at % 1000) * 1000}' }`;
    const lua = SCRIPTS[script].lua.replaceAll(/\b(?:redis\.)?call\('TIME'\)/g, time);
    return (await this.client.eval(lua, keys.length, ...keys, ...args)) as Reply;
  }
}

/** A subscriber to a pod's channel, with every line that arrived there. */
export class Ear {
  readonly #client: Redis;
  readonly #publisher: Redis;
  readonly #channel: string;
  readonly #messages: string[] = [];

  constructor(client: Redis, publisher: Redis, channel: string) {
    this.#client = client;
    this.#publisher = publisher;
    this.#channel = channel;
  }

  async listen(): Promise<void> {
    this.#client.on("smessage", (_channel: string, message: string) => this.#messages.push(message));
    await this.#client.ssubscribe(this.#channel);
  }

  /** Everything that was published before this call, one publish each; forgets it. */
  async messages(): Promise<string[]> {
    const mark = `mark ${randomUUID()}`;
    await this.#publisher.spublish(this.#channel, mark);
    await until("the mark arrives", () => this.#messages.includes(mark));
    return this.#messages.splice(0, this.#messages.indexOf(mark) + 1).slice(0, -1);
  }

  async lines(): Promise<string[]> {
    return (await this.messages()).flatMap((message) => message.split("\n"));
  }

  /** The pod dies: nobody listens any more. */
  async close(): Promise<void> {
    await this.#client.sunsubscribe(this.#channel);
  }
}

export const TEAM = { principal: "key:team", hasNamespace: true } as const;
/** Of the key of the team. */
export const AGENTS_PER_KEY = 2;

/** What a pod holds of BOB on its connection c1, heard just now. */
export function held(changes: Partial<HeldRoute> = {}): HeldRoute {
  const route = { agent: BOB, connection: "c1", epoch: 7, heardAt: performance.now(), isCongested: false };
  return { ...route, principal: "key:key-1", credentials: undefined, ...changes };
}

/** A pod restoring; of each route the epoch of the newer owner, or null. */
export async function restoreAs(
  name: string,
  { link, window }: Pod,
  routes: readonly HeldRoute[],
): Promise<(number | null)[]> {
  const { offlineAfterMs } = PRESENCE_LIMITS;
  const options = { link, window, pod: name, offlineAfterMs, agentsPerKey: AGENTS_PER_KEY };
  return await new RouteRestorer(options).restore(0, routes);
}

/**
 * What comes of what a pod does while Redis hangs: from now on, or from the first call of a script on. Redis goes on once
 * that is told, and carries out what it was sent.
 */
export async function whileRedisHangs<T>(bench: Bench, pod: Pod, act: () => Promise<T>, from?: ScriptName): Promise<T> {
  const connections = await connectionsOf(bench, pod);
  const run = pod.link.run.bind(pod.link);
  const calls = jest.spyOn(pod.link, "run").mockImplementation(async (script, keys, args) => {
    if (script === from) await bench.redis.pause();
    return await run(script, keys, args);
  });
  if (from === undefined) await bench.redis.pause();
  const outcome = await act();
  calls.mockRestore();
  await bench.redis.resume();
  const areGone = async () => (await connectionsOf(bench, pod)).every((id) => !connections.includes(id));
  await until("Redis has done with the connection that was given up", areGone);
  await until("the link is up", () => pod.link.up);
  return outcome;
}

/** Ids of the connections of a pod's link, as Redis has them. */
async function connectionsOf(bench: Bench, { link }: Pod): Promise<string[]> {
  const list = String(await bench.client.client("LIST"));
  const own = [...list.matchAll(/^id=(\d+) .*? name=(\S+) /gm)].filter(([, , name]) => name === link.name);
  return own.map(([, id]) => id as string);
}

/** For a listener that is after some of what comes in over a pod's channel. */
export const IGNORED: PodChannelEvents = {
  deliver: () => {},
  superseded: () => {},
  probe: () => {},
  disconnect: () => {},
  traced: () => {},
};
