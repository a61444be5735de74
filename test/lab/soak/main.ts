import { setTimeout as delay } from "node:timers/promises";
import { type Ledger, tally, violations } from "../../support/ledger.ts";
import { until } from "../../support/until.ts";
import { shown } from "../report.ts";
import { soakFromCommandLine } from "./command-line.ts";
import { ROLLED, type Sample, SoakFleet, takeSample } from "./fleet.ts";
import { Callers, Pace, Population } from "./traffic.ts";
import {
  CALLS,
  type Outcome,
  type Plan,
  RATES,
  ROLL_EVERY_MS,
  SAMPLE_EVERY_MS,
  STAY_MS,
  sectionsOf,
} from "./verdict.ts";

const SETTLE_MS = 30_000;
const MIB = 2 ** 20;

interface Soaked {
  readonly samples: readonly Sample[];
  readonly outcome: Outcome;
}

/** Runs it, and says what was seen. */
async function soak(plan: Plan): Promise<Soaked> {
  const names = Array.from({ length: plan.agents }, (_, n) => `agent-${n}${n % 4 < 2 ? "" : "-hmac"}`);
  const fleet = new SoakFleet(names);
  const { ledger } = fleet;
  const population = new Population(fleet, names);
  const callers = new Callers(fleet, names);
  const pace = new Pace();
  try {
    await fleet.start();
    await population.start();
    plan.say(`${plan.agents} agents are online; ${plan.minutes} minutes.`);
    const startedAt = performance.now();
    startTraffic(plan, pace, population);
    callers.start(pace, CALLS);
    const { samples, rolls } = await watch(plan, fleet, population, startedAt);
    pace.stop();
    const seconds = (performance.now() - startedAt) / 1000;
    await population.settle();
    await until("all is delivered and everybody is online", () => isSettled(ledger, population, plan), SETTLE_MS).catch(
      () => {},
    );
    const agentsOnline = population.online;
    await fleet.stop();
    return { samples, outcome: { seconds, agentsOnline, ...outcomeOf(fleet, population, callers, rolls) } };
  } finally {
    pace.stop();
    await fleet.stop();
  }
}

function startTraffic({ agents }: Plan, pace: Pace, population: Population): void {
  pace.every(RATES.messages, () => population.sendOne("message.send", { payload: { message: "soaked" } }));
  pace.every(RATES.sessionRequests, () => population.sendOne("session.request", { payload: { purpose: "soak" } }));
  pace.every((agents * 1000) / STAY_MS, () => population.moveOne());
}

/** Samples, for as long as the plan says, while one connector is replaced again and again. */
async function watch(plan: Plan, fleet: SoakFleet, population: Population, startedAt: number) {
  const over = new AbortController();
  const sampling = sampleOnAndOn(plan, fleet, population, startedAt).finally(() => over.abort());
  const [samples, rolls] = await Promise.all([sampling, rollOnAndOn(fleet, over.signal)]);
  return { samples, rolls };
}

async function sampleOnAndOn(
  plan: Plan,
  fleet: SoakFleet,
  population: Population,
  startedAt: number,
): Promise<Sample[]> {
  const redis = fleet.stage.view.client;
  const samples: Sample[] = [];
  for (let due = SAMPLE_EVERY_MS; due <= plan.minutes * 60_000; due += SAMPLE_EVERY_MS) {
    await delay(startedAt + due - performance.now());
    const sample = await takeSample(fleet, redis, { ms: due, agentsOnline: population.online });
    samples.push(sample);
    plan.say(progress(sample));
  }
  return samples;
}

/** Resolves with how often, when it is over. */
async function rollOnAndOn(fleet: SoakFleet, signal: AbortSignal): Promise<number> {
  for (let rolls = 0; ; rolls += 1) {
    await delay(ROLL_EVERY_MS, undefined, { signal }).catch(() => {});
    if (signal.aborted) return rolls;
    await fleet.restart(ROLLED, "SIGTERM");
  }
}

function isSettled(ledger: Ledger, population: Population, { agents }: Plan): boolean {
  return population.online === agents && violations(ledger.content).length === 0;
}

function outcomeOf(fleet: SoakFleet, population: Population, callers: Callers, rolls: number) {
  const { ledger } = fleet;
  return {
    ...tally(ledger.content),
    refusals: refusalsOf(ledger),
    violations: violations(ledger.content).map(({ kind, id }) => `${kind}: ${id}`),
    calls: Object.fromEntries(callers.answers),
    failedCalls: callers.failures,
    unavailableShare: callers.unavailable / Math.max(1, callers.calls),
    moves: population.moved,
    rolls,
    unexpectedEnds: fleet.unexpectedEnds,
    errorLines: fleet.errorLines,
  };
}

/** Refusals of envelopes between agents, by code. */
function refusalsOf(ledger: Ledger): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { attempts } of ledger.content.entries) {
    for (const { answer } of attempts) {
      if (answer?.accepted === false) counts[answer.code] = (counts[answer.code] ?? 0) + 1;
    }
  }
  return counts;
}

function progress({ ms, agentsOnline, processes, redis }: Sample): string {
  const heaps = Object.entries(processes).map(([role, { heap }]) => `${role} ${shown(heap / MIB)}`);
  const seconds = `${Math.round(ms / 1000)} s`.padStart(6);
  return `${seconds}  ${agentsOnline} online, heap MiB: ${heaps.join("; ")}; Redis ${shown(redis.used / MIB)}, ${redis.keys} keys`;
}

/**
 * `npm run soak`: does the relay hold level? Agents by the thousand, steady traffic, connections that come and go,
 * connectors that are replaced; exit code 1 when something grows, is lost, or ends. Source: docs/reliability.md.
 */
await soakFromCommandLine({
  name: "soak",
  command: "npm run soak",
  agents: ["2000", "how many (2000)"],
  run: async (plan, say) => {
    const { samples, outcome } = await soak({ ...plan, say });
    const { violations, unexpectedEnds, errorLines } = outcome;
    const broken = [...violations, ...unexpectedEnds, ...errorLines];
    return { sections: sectionsOf(plan, samples, outcome), broken, outcome: { samples, ...outcome } };
  },
});
