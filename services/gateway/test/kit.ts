import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll } from "@jest/globals";
import type { KeysFile } from "relay-protocol/contract/keys-file.ts";
import type { Problem } from "relay-protocol/contract/responses.ts";
import { generateApiKey } from "relay-protocol/signing/api-key.ts";
import { connectionBounds } from "relay-runtime/http/connections.ts";
import { HttpServer } from "relay-runtime/http/server.ts";
import { createLogger, type Logger } from "relay-runtime/logging.ts";
import type { KeptCredential } from "relay-window/acceptance/acceptance.ts";
import { Acceptor } from "relay-window/acceptance/acceptor.ts";
import { readSnapshot, type WindowSnapshot } from "relay-window/counters/snapshot.ts";
import { CONGESTED } from "relay-window/presence/presence.ts";
import { partitionKeys } from "relay-window/redis/keys.ts";
import { partitionOf } from "relay-window/redis/partitions.ts";
import { RedisLink } from "relay-window/redis/redis-link.ts";
import { ProcessWindow } from "relay-window/window/process-window.ts";
import { makeEd25519Key } from "../../../deploy/keys/make.ts";
import { ISSUER_WITH_TERMS, RECORD } from "../../../shared/protocol/test/signing/issuing.ts";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { TestRedis } from "../../../test/support/test-redis.ts";
import { waitForAnswers } from "../../../test/support/use.ts";
import { readingWindow, windowKeysIn } from "../../../test/support/window-view.ts";
import { createGateway } from "../src/service.ts";
import { readGatewaySettings } from "../src/settings.ts";

const SPARE_KEYS = 60;

/** A running gateway. */
export interface Running {
  readonly url: string;
  stop(): Promise<void>;
}

/** A private Redis, a keys file, and gateways behind ports of their own. Everything ends with `stop`. */
export class GatewayKit {
  readonly redis = new TestRedis();
  readonly log: string[] = [];
  readonly logger: Logger = createLogger({ service: "test", level: "debug" }, { write: (line) => this.log.push(line) });
  readonly agentKey = makeEd25519Key({ id: "alice-1", agents: ["agent://alice"] });
  readonly #unused: string[] = Array.from({ length: SPARE_KEYS }, generateApiKey);
  readonly #closers: (() => Promise<unknown>)[] = [];
  readonly #partitions: number;
  #keysFile = "";

  constructor(partitions = 1) {
    this.#partitions = partitions;
  }

  async start(): Promise<this> {
    const folder = await temporaryFolder();
    this.#closers.push(async () => await folder[Symbol.asyncDispose]());
    this.#keysFile = join(folder.path, "keys.json");
    const api_keys = this.#unused.map((text, index) => ({
      id: `alice-${index}`,
      sha256: createHash("sha256").update(text).digest("hex"),
      agents: ["agent://alice"],
    }));
    await writeFile(
      this.#keysFile,
      JSON.stringify({ api_keys, signing_keys: [this.agentKey.record], issuers: [RECORD, ISSUER_WITH_TERMS] }),
    );
    await this.redis.start();
    this.#closers.push(() => this.redis.stop());
    return this;
  }

  async stop(): Promise<void> {
    for (const close of this.#closers.toReversed()) await close();
  }

  /** The gateways take the change within some seconds. */
  async editKeys(edit: (keys: KeysFile) => KeysFile): Promise<void> {
    const keys: KeysFile = JSON.parse(await readFile(this.#keysFile, "utf8"));
    await writeFile(this.#keysFile, JSON.stringify(edit(keys)));
  }

  /** An API key of agent://alice that nobody has used, so that no test meets another's rate. */
  freshKey(): string {
    return this.#unused.pop() as string;
  }

  environment(overrides: Record<string, string> = {}): Record<string, string> {
    return {
      REDIS_URL: this.redis.url,
      RELAY_KEYS_FILE: this.#keysFile,
      RELAY_BASE_URL: "https://relay.example",
      RELAY_PARTITIONS: String(this.#partitions),
      ...overrides,
    };
  }

  async gateway(overrides: Record<string, string> = {}): Promise<Running> {
    const { logger } = this;
    const settings = readGatewaySettings(this.environment(overrides));
    const gateway = createGateway(settings, { logger });
    const bounds = connectionBounds(settings);
    const server = new HttpServer({ handler: gateway.handler, host: "127.0.0.1", port: 0, bounds, logger });
    await gateway.start();
    await server.start();
    const stop = async () => {
      await server.stop();
      await gateway.stop();
    };
    this.#closers.push(stop);
    return { url: `http://127.0.0.1:${server.port}`, stop };
  }

  /** A link to the window, and what a connector would hold of it. */
  async link(): Promise<{ link: RedisLink; window: ProcessWindow }> {
    const { logger } = this;
    const link = new RedisLink({ url: this.redis.url, name: "test", logger });
    const window = new ProcessWindow({ link, partitions: this.#partitions, deployId: "local", logger });
    await link.start();
    this.#closers.push(() => link.stop());
    return { link, window };
  }

  /** Brings an agent online on a pod of its own; resolves with what is delivered to it, as it comes. */
  async online(agent: string, credential?: KeptCredential): Promise<string[]> {
    const { link, window } = await this.link();
    const pod = `pod-${agent.slice("agent://".length)}`;
    const delivered: string[] = [];
    const subscriber = link.client.duplicate({ lazyConnect: true });
    this.#closers.push(async () => subscriber.disconnect());
    await subscriber.connect();
    await subscriber.ssubscribe(partitionKeys.podChannel(this.partitionOf(agent), pod));
    subscriber.on("smessage", (_channel: string, lines: string) => delivered.push(...lines.split("\n")));
    const acceptor = new Acceptor({
      link,
      window,
      pod,
      offlineAfterMs: 300_000,
      proofFreshnessMs: 10_800_000,
      logger: this.logger,
    });
    const now = Date.now();
    const envelope = { id: `reg-${now}`, type: "agent.register", from: agent, payload: {}, ts: now, key_id: "test" };
    const { outcome } = await new Promise<{ outcome: string }>((done) => {
      acceptor.accept({
        envelope,
        kind: "register",
        text: "",
        origin: "websocket",
        principal: "key:k",
        credential,
        connection: "con",
        done,
      });
    });
    if (outcome !== "accepted") throw new Error(`register: ${outcome}`);
    return delivered;
  }

  /** Gives an agent the presence of one that a connection has held for `heldMs`, and that was silent for `silentMs`. */
  async held(
    agent: string,
    { heldMs, silentMs = 0, isCongested = false }: { heldMs: number; silentMs?: number; isCongested?: boolean },
  ) {
    const { link } = await this.link();
    const keys = (await windowKeysIn(link.client, this.#partitions)).partition(this.partitionOf(agent));
    const lastSeen = Date.now() - silentMs;
    await link.client.hset(
      keys.route,
      agent,
      `pod con 1 ${lastSeen} ${Date.now() - heldMs}${isCongested ? CONGESTED : ""}`,
    );
    await link.client.zadd(keys.presence, lastSeen, agent);
    await link.client.zadd(keys.online, lastSeen, agent);
  }

  partitionOf(agent: string): number {
    return partitionOf(agent, this.#partitions);
  }

  async snapshot(): Promise<WindowSnapshot> {
    const { link } = await this.link();
    return await readSnapshot(link, readingWindow(link, this.#partitions));
  }
}

/** A kit for the tests of a file, or of a describe block: started before the first of them, stopped after the last. */
export function useGatewayKit(partitions = 1): GatewayKit {
  const kit = new GatewayKit(partitions);
  waitForAnswers();
  beforeAll(() => kit.start());
  afterAll(() => kit.stop());
  return kit;
}

/** A gateway of the kit, for the same tests. */
export function useGateway(kit: GatewayKit, overrides: Record<string, string> = {}): Running {
  let running: Running;
  beforeAll(async () => {
    running = await kit.gateway(overrides);
  });
  return {
    get url() {
      return running.url;
    },
    stop: () => running.stop(),
  };
}

export type Headers = Record<string, string>;

export function post(url: string, body: unknown, headers: Headers = {}): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

/** `429 rate_limited`, for a refusal. */
export async function codeOf(answer: Promise<Response> | Response): Promise<string> {
  const response = await answer;
  return `${response.status} ${((await response.json()) as Problem).code}`;
}
