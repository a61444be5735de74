import type { TestAgent } from "../../connector/test/kit.ts";
import type { Frame } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import { type MortalPod, serveWhole } from "../support/relay.ts";
import { TestRelay } from "../support/relay-under-test.ts";
import { Cast, ISSUERS, type Surroundings } from "./cast.ts";
import { DriverProcess, LANGUAGES, type Language } from "./driver-process.ts";
import type { Run } from "./scenario.ts";

/** All agents come from one address. */
const NO_LIMITS_OF_AN_ADDRESS = { RELAY_PUBLIC_REQUESTS_PER_MINUTE: "0", RELAY_CONNECTIONS_PER_ADDRESS: "0" };

/** One relay, and one process of each language, for all runs. */
export class BehaviourStage implements Surroundings {
  readonly #relay = new TestRelay();
  readonly casts: ReadonlyMap<Run, Cast>;
  readonly #drivers = new Map<Language, DriverProcess>();
  readonly #listed: TestAgent[] = [];
  #written: Promise<void> = Promise.resolve();
  #url = "";

  constructor(runs: readonly Run[]) {
    this.casts = new Map(runs.map((run) => [run, new Cast(this, run)]));
  }

  get url(): string {
    return this.#url;
  }

  async start(): Promise<void> {
    for (const language of LANGUAGES) this.#drivers.set(language, new DriverProcess(language));
    await this.#relay.start();
    const keys = await Promise.all([...this.casts.values()].map((cast) => cast.makeKeys()));
    await this.list(keys.flat());
    this.#url = (await serveWhole(this.#relay, NO_LIMITS_OF_AN_ADDRESS)).url;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#drivers.values()].map((driver) => driver.stop()));
    await this.#relay.stop();
  }

  async list(agents: readonly TestAgent[]): Promise<void> {
    this.#listed.push(...agents);
    const signing_keys = this.#listed.map(({ record }) => record);
    const api_keys = this.#listed.map(({ apiKeyRecord }) => apiKeyRecord);
    const file = { api_keys, signing_keys, issuers: Object.values(ISSUERS) };
    this.#written = this.#written.then(() => this.#relay.writeKeys(file));
    await this.#written;
  }

  async manifest(): Promise<Frame> {
    return (await new HttpClient().get(`${this.#url}/.well-known/signing-manifest.json`)).body;
  }

  driver(language: Language): DriverProcess {
    return this.#drivers.get(language) as DriverProcess;
  }

  async startPod(): Promise<MortalPod> {
    return await this.#relay.startMortalWsConnector();
  }
}
