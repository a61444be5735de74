import type { Redis } from "ioredis";
import { residentBytes } from "../../accounting.ts";
import { Fleet, ROLES, ROLLED, type Role, STEADY } from "../fleet.ts";
import { Book } from "./book.ts";
import { Crowd, LANGUAGES, type Language } from "./crowd.ts";
import { Looks } from "./looks.ts";
import type { Sample } from "./memory.ts";
import type { Plan, Victim } from "./plan.ts";
import type { AgentOrders } from "./protocol.ts";

/** Of a process of agents: lives from start to end, or is killed. */
const FATES = ["steady", "killed"] as const;

/** The relay, and its agents: half of each language in a process that lives from start to end, half in one that is killed. */
export class Stage {
  readonly book = new Book();
  readonly fleet: Fleet;
  readonly #names: Readonly<Record<Language, readonly string[]>>;
  #looks: Looks | undefined;
  #redis: Redis | undefined;
  #crowds: readonly Crowd[] = [];

  constructor({ agents }: Plan) {
    const namesOf = (language: Language) =>
      Array.from({ length: agents }, (_, n) => `${language.toLowerCase()}-${n}${n % 8 < 4 ? "" : "-hmac"}`);
    this.#names = { TypeScript: namesOf("TypeScript"), Python: namesOf("Python") };
    this.fleet = new Fleet(this.names);
  }

  get names(): readonly string[] {
    return LANGUAGES.flatMap((language) => this.#names[language]);
  }

  /** What ended that nobody killed. */
  get unexpectedEnds(): readonly string[] {
    return [...this.fleet.unexpectedEnds, ...this.#crowds.flatMap(({ unexpectedEnds }) => unexpectedEnds)];
  }

  /** HTTP calls answered otherwise than due. */
  get failedLooks(): number {
    return this.#looks?.failed ?? 0;
  }

  async start(): Promise<void> {
    await this.fleet.start();
    this.#redis = this.fleet.relay.view().client;
    this.#crowds = LANGUAGES.flatMap((language) => FATES.map((fate) => this.#crowd(language, fate)));
    for (const crowd of this.#crowds) crowd.start();
    this.#looks = new Looks(this.fleet, this.names);
  }

  async stop(): Promise<void> {
    this.#looks?.stop();
    await Promise.all(this.#crowds.map((crowd) => crowd.kill()));
    await this.fleet.stop();
  }

  /** Nobody begins another send. */
  hush(): void {
    for (const crowd of this.#crowds) crowd.hush();
  }

  /** All ends as it should. */
  async end(): Promise<void> {
    this.#looks?.stop();
    await Promise.all(this.#crowds.map((crowd) => crowd.stop()));
    await this.fleet.stop();
  }

  /** Kills it, and starts it again. */
  async strike(victim: Victim): Promise<void> {
    if (victim === "Redis") await this.book.silence(() => this.fleet.relay.redis.restart());
    else if (victim === "websocket pod") await this.#killPod();
    else await this.#killCrowd(victim);
  }

  async sample(): Promise<Sample> {
    const pods = ROLES.map(async (role) => {
      const { process } = this.fleet.running(role) ?? {};
      await process?.held();
      return [role, process === undefined ? 0 : residentBytes(process.pid)] as const;
    });
    const crowds = this.#crowds.map(async (crowd) => [crowd.name, await crowd.resident()] as const);
    const used = Number(/used_memory:(\d+)/.exec((await this.#redis?.info("memory")) ?? "")?.[1]);
    return Object.fromEntries([...(await Promise.all([...pods, ...crowds])), ["Redis, used", used]]);
  }

  async #killPod(): Promise<void> {
    const everybody = this.#crowds.flatMap(({ agents }) => agents);
    const itsAgents = everybody.filter(({ url }) => url === this.fleet.url(ROLLED));
    this.book.away(itsAgents.map(({ agent }) => agent));
    await this.fleet.kill(ROLLED);
  }

  async #killCrowd(name: string): Promise<void> {
    const crowd = this.#crowds.find((each) => each.name === `${name}, killed`) as Crowd;
    this.book.away(crowd.agents.map(({ agent }) => agent));
    await crowd.kill();
    this.book.bury(crowd.life);
    crowd.start();
  }

  #crowd(language: Language, fate: (typeof FATES)[number]): Crowd {
    const orders = this.#names[language].map((_, n) => this.#orders(language, n));
    const agents = orders.filter((_, n) => FATES[Math.floor(n / 2) % FATES.length] === fate);
    return new Crowd(`${language} agents, ${fate}`, language, agents, (told, life) => this.book.hear(told, life));
  }

  /** Pods in turn; partners of both languages, on both pods, of processes of both fates. */
  #orders(language: Language, n: number): AgentOrders {
    const name = this.#names[language][n] as string;
    const role: Role = n % 2 === 0 ? STEADY : ROLLED;
    const { agent_id: agent, ...key } = this.fleet.relay.keys.keyFiles.get(name) as { readonly agent_id: string };
    const partners = [1, 2].flatMap((step) =>
      LANGUAGES.map((other) => `agent://${this.#names[other][(n + step) % this.#names[other].length]}`),
    );
    return { url: this.fleet.url(role), agent, key, partners };
  }
}
