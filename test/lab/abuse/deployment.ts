import { generateKeyPairSync } from "node:crypto";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import { makeApiKey, makeEd25519Key } from "../../../deploy/keys/make.ts";
import { AgentSocket, type Frame } from "../../support/agent.ts";
import { freePort } from "../../support/free-port.ts";
import { GuardedRelay } from "../../support/guarded-redis.ts";
import { scrape } from "../../support/http.ts";
import { TestIssuer } from "../../support/issuer.ts";
import type { ProcessLimits } from "../../support/pod-process.ts";
import { instant, type Pids, residentBytes } from "../accounting.ts";
import { DirectStage, Fleet, type FleetPod } from "../fleet.ts";
import {
  API_KEY_AGENTS,
  ATTACKERS,
  type AttackerKey,
  BYSTANDERS,
  BYSTANDERS_ADDRESS,
  FEW_FILES,
  FORWARDED,
  ISSUER,
  RELAY_HOST,
  type Target,
} from "./target.ts";

/** As behind the edge, which says where clients come from. Limits are those that the relay has where nobody sets any. */
const SETTINGS = { LOG_LEVEL: "info", RELAY_TRUSTED_PROXY_HOPS: "1", RELAY_PUBLIC_HOSTS: RELAY_HOST };
/** 30 requests a minute each. */
const API_KEYS = 40;

/** What the relay has used so far. */
export interface Usage {
  /** Seconds of CPU by process. */
  readonly cpu: Readonly<Record<string, number>>;
  /** Bytes in RAM by process. */
  readonly resident: Readonly<Record<string, number>>;
  /** `used_memory` of Redis. */
  readonly redisBytes: number;
}

/** The relay as it is deployed: each service a process of its own, over the Redis that is deployed. */
export class Deployment extends Fleet<DirectStage<GuardedRelay>> {
  readonly #keys: Record<string, AttackerKey> = {};
  readonly #apiKeys: string[] = [];
  readonly #issuerKeys = generateKeyPairSync("ed25519");
  readonly #file = {
    api_keys: [] as object[],
    signing_keys: [] as object[],
    issuers: [new TestIssuer(ISSUER, this.#issuerKeys).record([`agent://${ISSUER}.*`])],
  };
  readonly #metricsPorts: number[] = [];
  readonly #services: FleetPod[] = [];
  #smallGateway: FleetPod | undefined;
  #attacks = 0;

  constructor() {
    super(new DirectStage(new GuardedRelay(...BYSTANDERS)), { connectors: 0, settings: SETTINGS });
  }

  /** Bystanders come on their own. */
  override async start(): Promise<this> {
    await this.relay.start();
    this.#makeKeys();
    await this.relay.writeKeys(this.#file);
    this.#smallGateway = await this.#add("gateway", { maxOpenFiles: FEW_FILES });
    for (const service of ["ws-connector", "ws-connector", "gateway", "ops-reporting"] as const)
      this.#services.push(await this.#add(service));
    return this;
  }

  /** One of each, to be asked whether it lives; two connectors. */
  get services(): readonly FleetPod[] {
    return this.#services;
  }

  override get connectors(): readonly [FleetPod, FleetPod] {
    return this.#services.slice(0, 2) as [FleetPod, FleetPod];
  }

  get gateway(): FleetPod {
    return this.#services[2] as FleetPod;
  }

  get reports(): FleetPod {
    return this.#services[3] as FleetPod;
  }

  /** A gateway that may open `FEW_FILES` only. */
  get smallGateway(): FleetPod {
    return this.#smallGateway as FleetPod;
  }

  /** For the next attacker, which comes from other addresses than those before it. */
  target(forMs: number): Target {
    this.#attacks += 1;
    const { connectors, gateway, smallGateway, reports } = this;
    return {
      connectors: [connectors[0].port, connectors[1].port],
      gateway: gateway.port,
      smallGateway: smallGateway.port,
      reports: reports.port,
      forMs,
      keys: this.#keys,
      issuerKey: this.#issuerKeys.privateKey.export({ format: "jwk" }),
      apiKeys: this.#apiKeys,
      network: this.#attacks,
    };
  }

  /** Puts another public key under the key id of a bystander. */
  async replaceKeyOf(name: string): Promise<void> {
    const keyId = this.relay.keys.agents.get(name)?.keyId as string;
    const { record } = makeEd25519Key({ id: keyId, agents: [`agent://${name}`] });
    const others = this.#file.signing_keys.filter((key) => !("key_id" in key && key.key_id === keyId));
    await this.relay.writeKeys({ ...this.#file, signing_keys: [...others, record] });
  }

  /** Puts back the key that was replaced. */
  async restoreKeys(): Promise<void> {
    await this.relay.writeKeys(this.#file);
  }

  /** Connects as a bystander does. */
  async connect(pod: FleetPod): Promise<AgentSocket> {
    return await AgentSocket.open(`ws://127.0.0.1:${pod.port}/ws`, { [FORWARDED]: BYSTANDERS_ADDRESS });
  }

  /** Connects and registers a bystander. */
  async online(pod: FleetPod, name: string): Promise<AgentSocket> {
    const socket = await this.connect(pod);
    const { code } = await socket.ask(this.envelope(name, "agent.register"));
    if (code !== undefined) throw new Error(`A register was refused with ${code}.`);
    return socket;
  }

  envelope(name: string, type: string, fields: { readonly [name: string]: unknown } = {}): Frame {
    return this.relay.envelope(name, type, fields);
  }

  /** Fields with which a bystander's requests come. */
  headers(name?: string): Record<string, string> {
    return { [FORWARDED]: BYSTANDERS_ADDRESS, ...(name === undefined ? {} : this.relay.credentials(name)) };
  }

  async usage(): Promise<Usage> {
    const pids = await this.#pids();
    const { cpu } = instant(pids);
    const info = await this.stage.view.client.info("memory");
    return {
      cpu: Object.fromEntries(Object.entries(cpu).map(([role, micros]) => [role, micros / 1e6])),
      resident: Object.fromEntries(Object.entries(pids).map(([role, pid]) => [role, residentBytes(pid)])),
      redisBytes: Number(/^used_memory:(\d+)/m.exec(info)?.[1]),
    };
  }

  /** How often each limit was reached so far, in any process. */
  async limitsReached(): Promise<(limit: LimitName) => number> {
    const all = await Promise.all(this.#metricsPorts.map((port) => scrape(`http://127.0.0.1:${port}/metrics`)));
    return (limit) => all.reduce((sum, one) => sum + (one.value("relay_limits_total", { limit }) ?? 0), 0);
  }

  async #add(service: ServiceName, limits: ProcessLimits = {}): Promise<FleetPod> {
    const port = await freePort();
    this.#metricsPorts.push(port);
    return await this.addPod(service, { settings: { METRICS_PORT: `${port}` }, limits });
  }

  async #pids(): Promise<Pids> {
    const [connector, other, gateway, reports] = this.#services.map(({ process }) => process.pid) as [
      number,
      number,
      number,
      number,
    ];
    return { connector, "other connector": other, gateway, reports, redis: await this.relay.redis.pid() };
  }

  #makeKeys(): void {
    const { api_keys, signing_keys } = this.relay.keys.file as Record<string, object[]>;
    this.#file.api_keys.push(...(api_keys ?? []));
    this.#file.signing_keys.push(...(signing_keys ?? []));
    for (const name of ATTACKERS) {
      const { record, privateKey } = makeEd25519Key({ id: `${name}-key`, agents: [`agent://${name}.*`] });
      this.#file.signing_keys.push(record);
      this.#keys[name] = { keyId: record.key_id, seed: privateKey };
    }
    for (let n = 0; n < API_KEYS; n += 1) {
      const { record, apiKey } = makeApiKey({ id: `attacker-${n}`, agents: [`agent://${API_KEY_AGENTS}.*`] });
      this.#file.api_keys.push(record);
      this.#apiKeys.push(apiKey);
    }
  }
}
