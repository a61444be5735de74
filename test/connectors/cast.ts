import { ACME, GLOBEX, type Party, party } from "../../connector/test/credentials/parties.ts";
import { type TestAgent, testAgent } from "../../connector/test/kit.ts";
import { WireProxy } from "../../connector/test/wire-proxy.ts";
import type { Frame } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import type { MortalPod } from "../support/relay.ts";
import type { DriverProcess, Language } from "./driver-process.ts";
import type { AgentEntry, Run } from "./scenario.ts";

/** Whom the relay of all runs believes, by name. */
export const ISSUERS: Readonly<Record<string, object>> = { acme: ACME, globex: GLOBEX };

/** An agent of a run. */
export interface Actor {
  readonly options: Frame;
  readonly driver: DriverProcess;
  readonly proxy: WireProxy | undefined;
}

/** What all runs share. */
export interface Surroundings {
  readonly url: string;
  /** The signing manifest. */
  manifest(): Promise<Frame>;
  driver(language: Language): DriverProcess;
  /** The relay knows these keys, too, once it has read its file again. */
  list(agents: readonly TestAgent[]): Promise<void>;
  startPod(): Promise<MortalPod>;
}

/** The agents of one run, with their names in the table. */
export class Cast {
  readonly actors = new Map<string, Actor>();
  readonly #keys = new Map<string, TestAgent>();
  readonly #surroundings: Surroundings;
  readonly #run: Run;
  readonly #parties = new Map<string, Party>();
  #pod: MortalPod | undefined;

  constructor(surroundings: Surroundings, run: Run) {
    this.#surroundings = surroundings;
    this.#run = run;
  }

  get #entries(): [string, AgentEntry][] {
    return Object.entries(this.#run.scenario.agents);
  }

  /** Makes keys and credentials; the relay is to know the keys afterwards. @returns those that it is to know at once. */
  async makeKeys(): Promise<readonly TestAgent[]> {
    for (const [name, { key = "ed25519", is }] of this.#entries) {
      if (is !== undefined) continue;
      const suffix = `${name}-${this.#run.number}`;
      if (key in ISSUERS) this.#parties.set(name, await party(`agent://${key}.${suffix}`));
      else this.#keys.set(name, testAgent(key === "hmac" ? `${suffix}-hmac` : suffix));
    }
    const isListed = (name: string) => this.#run.scenario.agents[name]?.listed !== false;
    return [...this.#keys].filter(([name]) => isListed(name)).map(([, agent]) => agent);
  }

  async start(): Promise<void> {
    for (const [name, entry] of this.#entries) {
      const proxy = entry.wire && (await this.#proxy(entry.wire));
      const url = (proxy?.url ?? this.#surroundings.url).replace(/^http/, entry.scheme ?? "http");
      const identity = await this.#identity(entry.is ?? name);
      const { listens = true } = entry;
      this.actors.set(name, {
        driver: this.#surroundings.driver(this.#languageOf(entry)),
        options: { url, listens, ...identity, ...(await this.#options(entry.options ?? {})) },
        proxy,
      });
    }
  }

  async stop(): Promise<void> {
    await Promise.allSettled([...this.actors.keys()].map((name) => this.call(name, "close", {})));
    for (const { proxy } of this.actors.values()) await proxy?.stop();
    await this.#pod?.stop();
  }

  idOf(name: string): string {
    return this.#parties.get(name)?.agent ?? this.#keys.get(name)?.agent ?? `agent://${name}-${this.#run.number}`;
  }

  actor(name: string): Actor {
    const actor = this.actors.get(name);
    if (actor === undefined) throw new Error(`The scenario has no agent ${name}.`);
    return actor;
  }

  proxyOf(name: string): WireProxy {
    const { proxy } = this.actor(name);
    if (proxy === undefined) throw new Error(`${name} dials the relay itself.`);
    return proxy;
  }

  async call(name: string, does: string, given: Frame): Promise<Frame> {
    const { driver, options } = this.actor(name);
    return await driver.call(this.nameOf(name), does, given, options);
  }

  /** What its driver calls it. */
  nameOf(name: string): string {
    return `${name} ${this.#run.number}`;
  }

  /** The relay is told of keys that it did not know. */
  async list(names: readonly string[]): Promise<void> {
    await this.#surroundings.list(names.map((name) => this.#keys.get(name) as TestAgent));
  }

  /** A gateway sends in the place of an agent, which need not be online. */
  async sendByGateway(message: Frame): Promise<void> {
    const { apiKey } = [...this.#keys.values()].find(({ agent }) => agent === message.from) as TestAgent;
    const url = `${this.#surroundings.url}/v1/messages/send`;
    const { status } = await new HttpClient().post(url, message, { "x-api-key": apiKey });
    if (status !== 202) throw new Error(`A gateway answered with ${status}.`);
  }

  /** Those who dialled the pod find another one. */
  async killPod(): Promise<void> {
    const ended = this.#pod?.end("SIGKILL");
    for (const { proxy } of this.actors.values()) proxy?.lead(this.#surroundings.url);
    await ended;
  }

  #languageOf({ side }: AgentEntry): Language {
    return this.#run.languages[side === "other" ? 1 : 0];
  }

  async #identity(name: string): Promise<Frame> {
    const party = this.#parties.get(name);
    if (party === undefined) {
      const { agent, key } = this.#keys.get(name) as TestAgent;
      return { agent, key: onTheWire(key) };
    }
    const sealing_keys = party.sealingKeys.map(onTheWire);
    return { agent: party.agent, key: onTheWire(party.key), credential: await party.token(), sealing_keys };
  }

  async #options({ trust, accept_from, ...others }: Frame): Promise<Frame> {
    const ids = (accept_from ?? []).map(
      (entry: string) => this.#keys.get(entry.replace("agent://", ""))?.agent ?? entry,
    );
    const rest = { ...others, ...(accept_from && { accept_from: ids }) };
    if (trust === undefined) return rest;
    const keyOf = (name: string) => [this.idOf(name), [onTheWire((this.#keys.get(name) as TestAgent).trusted)]];
    const keys = Object.fromEntries((trust.keys ?? []).map(keyOf));
    const { gateway_keys } = trust.gateways === "all" ? await this.#surroundings.manifest() : { gateway_keys: [] };
    const gateways = gateway_keys.map(({ key_id }: Frame) => key_id);
    const issuers = (trust.issuers ?? []).map((name: string) => ISSUERS[name] ?? {});
    return { ...rest, trust: { keys, issuers, gateways } };
  }

  async #proxy({ clock_ms = 0, pod, manifest }: NonNullable<AgentEntry["wire"]>): Promise<WireProxy> {
    if (pod === "own") this.#pod ??= await this.#surroundings.startPod();
    const target = pod === "own" ? (this.#pod as MortalPod).url : this.#surroundings.url;
    const proxy = await new WireProxy(target).start();
    const listed = JSON.stringify(manifest ? await this.#surroundings.manifest() : {});
    proxy.manifest = async () => listed;
    proxy.presence = async (path) => await (await fetch(`${this.#surroundings.url}${path}`)).text();
    proxy.toAgent = ({ server_time, ...frame }) =>
      server_time === undefined ? frame : { ...frame, server_time: server_time + clock_ms };
    return proxy;
  }
}

/** With the names of a keys file. */
function onTheWire(keys: object): Frame {
  const { keyId, privateKey, publicKey, ...rest } = keys as Frame;
  return { ...rest, ...(keyId && { key_id: keyId }), private_key: privateKey, public_key: publicKey };
}
