import { setTimeout as delay } from "node:timers/promises";
import { tally, type Violation, violations } from "../../../support/ledger.ts";
import { until } from "../../../support/until.ts";
import { restartRedis } from "../../faults.ts";
import { soakFromCommandLine } from "../command-line.ts";
import { processMemory, ROLES, ROLLED, type Role, SoakFleet, STEADY } from "../fleet.ts";
import { Callers, Pace } from "../traffic.ts";
import { Book } from "./book.ts";
import { type AgentOrders, Crowd, LANGUAGES, type Language } from "./crowd.ts";
import {
  GIVEN_UP_MS,
  type Kill,
  killEveryMs,
  killsOf,
  LOOKS,
  type Outcome,
  type Plan,
  type Sample,
  SEND_TIMEOUT_S,
  sectionsOf,
  VICTIMS,
  type Victim,
} from "./verdict.ts";

/** Runs it. @param say tells of progress. */
async function soakConnectors(plan: Plan, say: (text: string) => void): Promise<Outcome> {
  const stage = new Stage(plan);
  try {
    await stage.start();
    await untilBack(stage, performance.now());
    say(`${stage.names.length} agents are online, half of them Python; ${plan.minutes} minutes.`);
    const startedAt = performance.now();
    const samples: Sample[] = [];
    const kills: Kill[] = [];
    for (let n = 0; ; n += 1) {
      await delay(Math.max(0, startedAt + (n + 1) * killEveryMs(plan) - performance.now()));
      samples.push(await stage.sample());
      if (n === killsOf(plan)) break;
      kills.push(await kill(stage, VICTIMS[n % VICTIMS.length] as Victim));
      say(progress(kills.at(-1) as Kill, samples.at(-1) as Sample));
    }
    const seconds = (performance.now() - startedAt) / 1000;
    stage.hush();
    await until("all is settled", () => isSettled(stage), SEND_TIMEOUT_S * 1000).catch(() => {});
    await stage.end();
    return { seconds, kills, samples, ...outcomeOf(stage) };
  } finally {
    await stage.stop();
  }
}

async function kill(stage: Stage, victim: Victim): Promise<Kill> {
  const at = performance.now();
  await stage.strike(victim);
  const took = (await untilBack(stage, at)).sort((a, b) => a - b);
  return { victim, median: took[Math.floor(took.length / 2)] ?? 0, last: took.at(-1) ?? 0 };
}

/** How long each agent took, from then on, until something that it sent was answered. */
async function untilBack({ book, names }: Stage, then: number): Promise<number[]> {
  const back = book.backSince(then);
  await until("everybody is back", () => back.size === names.length, GIVEN_UP_MS).catch(() => {});
  return names.map((name) => back.get(`agent://${name}`) ?? Number.POSITIVE_INFINITY);
}

function isSettled({ book }: Stage): boolean {
  return book.unsettled === 0 && violations(book.content).length === 0;
}

function outcomeOf({ book, callers, unexpectedEnds }: Stage) {
  const broken = violations(book.content);
  const unexcused = violations({ ...book.content, gaps: [] });
  const lost = (kinds: readonly Violation[]) => kinds.filter(({ kind }) => kind === "promised and lost").length;
  return {
    ...tally(book.content),
    violations: broken.map(({ kind, id }) => `${kind}: ${id}`),
    lostWithTheDead: lost(unexcused) - lost(broken),
    heldByTheDead: book.heldByTheDead,
    unsettled: book.unsettled,
    repeated: book.repeated,
    failures: Object.fromEntries(book.failures),
    problems: Object.fromEntries(book.problems),
    failedLooks: callers.failures,
    unexpectedEnds,
  };
}

function progress({ victim, median, last }: Kill, sample: Sample): string {
  const back = [median, last].map((ms) => `${(ms / 1000).toFixed(1)} s`).join(", ");
  const held = Object.entries(sample).map(([what, bytes]) => `${what} ${Math.round(bytes / 2 ** 20)}`);
  return `${victim} killed; back after (median, last) ${back}; MiB before: ${held.join("; ")}`;
}

/** Of a process of agents: lives from start to end, or is killed. */
const FATES = ["steady", "killed"] as const;

/** The relay, and its agents: half of each language in a process that lives from start to end, half in one that is killed. */
class Stage {
  readonly book: Book;
  readonly fleet: SoakFleet;
  readonly callers: Callers;
  readonly #pace = new Pace();
  readonly #names: Readonly<Record<Language, readonly string[]>>;
  #crowds: readonly Crowd[] = [];

  constructor({ agents }: Plan) {
    const namesOf = (language: Language) =>
      Array.from({ length: agents }, (_, n) => `${language.toLowerCase()}-${n}${n % 8 < 4 ? "" : "-hmac"}`);
    this.#names = { TypeScript: namesOf("TypeScript"), Python: namesOf("Python") };
    this.fleet = new SoakFleet(this.names);
    this.book = new Book(this.fleet.ledger);
    this.callers = new Callers(this.fleet, this.names);
  }

  get names(): readonly string[] {
    return LANGUAGES.flatMap((language) => this.#names[language]);
  }

  /** What ended that nobody killed. */
  get unexpectedEnds(): readonly string[] {
    return [...this.fleet.unexpectedEnds, ...this.#crowds.flatMap(({ unexpectedEnds }) => unexpectedEnds)];
  }

  async start(): Promise<void> {
    await this.fleet.start();
    this.#crowds = LANGUAGES.flatMap((language) => FATES.map((fate) => this.#crowd(language, fate)));
    for (const crowd of this.#crowds) crowd.start();
    this.callers.start(this.#pace, LOOKS);
  }

  async stop(): Promise<void> {
    this.#pace.stop();
    await Promise.all(this.#crowds.map((crowd) => crowd.kill()));
    await this.fleet.stop();
  }

  /** Nobody begins another send. */
  hush(): void {
    for (const crowd of this.#crowds) crowd.hush();
  }

  /** All ends as it should. */
  async end(): Promise<void> {
    this.#pace.stop();
    await Promise.all(this.#crowds.map((crowd) => crowd.stop()));
    await this.fleet.stop();
  }

  /** Kills it, and starts it again. */
  async strike(victim: Victim): Promise<void> {
    if (victim === "Redis") await restartRedis(this.fleet);
    else if (victim === "websocket pod") await this.#killPod();
    else await this.#killCrowd(victim);
  }

  async sample(): Promise<Sample> {
    const pods = ROLES.map(async (role) => {
      return [role, (await processMemory(this.fleet, role))?.resident ?? 0] as const;
    });
    const crowds = this.#crowds.map(async (crowd) => [crowd.name, await crowd.resident()] as const);
    const used = Number(/used_memory:(\d+)/.exec(await this.fleet.stage.view.client.info("memory"))?.[1]);
    return Object.fromEntries([...(await Promise.all([...pods, ...crowds])), ["Redis, used", used]]);
  }

  async #killPod(): Promise<void> {
    const everybody = this.#crowds.flatMap(({ agents }) => agents);
    const itsAgents = everybody.filter(({ url }) => url === this.fleet.url(ROLLED));
    this.book.away(itsAgents.map(({ agent }) => agent));
    await this.fleet.restart(ROLLED, "SIGKILL");
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

/**
 * `npm run soak:connectors`: do agents of both languages keep their messages while everything around them is killed in turn?
 * Exit code 1 when something is lost, comes twice or out of order, or grows. Source: docs/reliability.md#soak-of-the-connectors.
 */
await soakFromCommandLine({
  name: "soak-connectors",
  command: "npm run soak:connectors",
  agents: ["100", "how many of each language (100)"],
  run: async (plan, say) => {
    const outcome = await soakConnectors(plan, say);
    return { sections: sectionsOf(plan, outcome), broken: [...outcome.violations, ...outcome.unexpectedEnds], outcome };
  },
});
