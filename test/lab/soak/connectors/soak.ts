import { setTimeout as delay } from "node:timers/promises";
import { type Tally, tally, type Violation, violations } from "../../../support/ledger.ts";
import { until } from "../../../support/until.ts";
import type { Sample } from "./memory.ts";
import { monotonicMs } from "./monotonic.ts";
import { GIVEN_UP_MS, killEveryMs, killsOf, type Plan, SEND_TIMEOUT_S, VICTIMS, type Victim } from "./plan.ts";
import { Stage } from "./stage.ts";

export interface Kill {
  readonly victim: Victim;
  /** Milliseconds until half of the agents, and until all, were back; infinite when somebody was not. */
  readonly median: number;
  readonly last: number;
}

export interface Outcome extends Tally {
  readonly seconds: number;
  readonly kills: readonly Kill[];
  readonly samples: readonly Sample[];
  /** Broken promises, in words. */
  readonly violations: readonly string[];
  /** Promised, and lost with an end or a bus that died. */
  readonly lostWithTheDead: number;
  /** Sent, and without an answer when the sender was killed. */
  readonly heldByTheDead: number;
  readonly unsettled: number;
  readonly repeated: number;
  readonly failures: Readonly<Record<string, number>>;
  readonly problems: Readonly<Record<string, number>>;
  readonly failedLooks: number;
  readonly unexpectedEnds: readonly string[];
}

/** Runs it. @param say tells of progress. */
export async function soakConnectors(plan: Plan, say: (text: string) => void): Promise<Outcome> {
  const stage = new Stage(plan);
  try {
    await stage.start();
    await untilBack(stage, monotonicMs());
    say(`${stage.names.length} agents are online, half of them Python; ${plan.minutes} minutes.`);
    const startedAt = monotonicMs();
    const samples: Sample[] = [];
    const kills: Kill[] = [];
    for (let n = 0; ; n += 1) {
      await delay(Math.max(0, startedAt + (n + 1) * killEveryMs(plan) - monotonicMs()));
      samples.push(await stage.sample());
      if (n === killsOf(plan)) break;
      kills.push(await kill(stage, VICTIMS[n % VICTIMS.length] as Victim));
      say(progress(kills.at(-1) as Kill, samples.at(-1) as Sample));
    }
    const seconds = (monotonicMs() - startedAt) / 1000;
    stage.hush();
    await until("all is settled", () => isSettled(stage), SEND_TIMEOUT_S * 1000).catch(() => {});
    await stage.end();
    return { seconds, kills, samples, ...outcomeOf(stage) };
  } finally {
    await stage.stop();
  }
}

async function kill(stage: Stage, victim: Victim): Promise<Kill> {
  const at = monotonicMs();
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

function outcomeOf({ book, failedLooks, unexpectedEnds }: Stage) {
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
    failedLooks,
    unexpectedEnds,
  };
}

function progress({ victim, median, last }: Kill, sample: Sample): string {
  const back = [median, last].map((ms) => `${(ms / 1000).toFixed(1)} s`).join(", ");
  const held = Object.entries(sample).map(([what, bytes]) => `${what} ${Math.round(bytes / 2 ** 20)}`);
  return `${victim} killed; back after (median, last) ${back}; MiB before: ${held.join("; ")}`;
}
