import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { until, watchLeaks } from "../../support/until.ts";
import { OrderedProcess } from "../ordered-process.ts";
import { writeJson } from "../report.ts";
import { ask, Bystanders } from "./bystanders.ts";
import { ATTACKS } from "./catalogue.ts";
import { Deployment } from "./deployment.ts";
import { brokenBy, figuresOf, type Outcome, tableOf } from "./figures.ts";
import type { Launched, Order } from "./target.ts";
import type { Attack } from "./witnesses.ts";

const relay = new Deployment();
const bystanders = new Bystanders(relay);
const noLeaks = watchLeaks();
const outcomes: Outcome[] = [];

beforeAll(async () => {
  await relay.start();
});
afterAll(async () => {
  process.stdout.write(`\n${tableOf(ATTACKS, outcomes)}\n`);
  await writeJson("abuse.json", { at: new Date().toISOString(), outcomes });
  await bystanders.leave();
  await relay.stop();
  await noLeaks();
});

test.each(ATTACKS)("bystanders notice nothing of: $name", async (attack) => {
  const outcome = await endure(relay, bystanders, attack);
  outcomes.push(outcome);
  expect(brokenBy(outcome, attack.allows)).toEqual([]);
});

const ATTACK_MS = 4000;
const AFTERWARDS_MS = 1500;
/** A relay that answers so soon has the last attack behind it. */
const AT_REST_MS = 100;
const AT_REST_WITHIN_MS = 15_000;
const PROGRAM = new URL("attackers/program.ts", import.meta.url);
/** An attack that takes so much longer than it was told to has failed. */
const PATIENCE_MS = 20_000;
const NOT_AN_ATTACKER: Launched = { attacked: { connections: 0, frames: 0, bytes: 0, faults: [] }, cpuSeconds: 0 };

/** Launches an attack while bystanders go about their business, and tells what they noticed. */
async function endure(relay: Deployment, bystanders: Bystanders, attack: Attack): Promise<Outcome> {
  const target = relay.target(attack.forMs ?? ATTACK_MS);
  await using stack = new AsyncDisposableStack();
  const attacker = attack.attacker && stack.use(new OrderedProcess<Order>(PROGRAM, PATIENCE_MS));
  await attacker?.carryOut({ order: "prepare", name: attack.name, target });
  const endsBefore = relay.unexpectedEnds.length;
  try {
    await atRest(relay);
    const [before, reachedBefore] = [await relay.usage(), await relay.limitsReached()];
    const testify = await attack.witness?.(relay);
    await bystanders.start();
    const launched = ((await attacker?.carryOut({ order: "launch" })) as Launched | undefined) ?? NOT_AN_ATTACKER;
    const testimony = await testify?.();
    const endedAt = performance.now();
    await attacker?.[Symbol.asyncDispose]();
    await delay(AFTERWARDS_MS);
    const [end, reached] = [await relay.usage(), await relay.limitsReached()];
    const untouched = attack.reaches?.filter((limit) => reached(limit) === reachedBefore(limit)) ?? [];
    const { samples, violations } = await bystanders.stop();
    return {
      attack: attack.name,
      ...launched,
      before,
      end,
      during: figuresOf(samples.filter(({ at }) => at < endedAt)),
      after: figuresOf(samples.filter(({ at }) => at >= endedAt)),
      violations,
      faults: [
        ...launched.attacked.faults,
        ...(testimony?.faults ?? []),
        ...relay.unexpectedEnds.slice(endsBefore),
        ...untouched.map((limit) => `the limit ${limit} was not reached`),
      ],
      notes: testimony?.notes ?? [],
    };
  } finally {
    await bystanders.stop();
  }
}

/** What one attack left to do is no part of the next one. */
async function atRest(relay: Deployment): Promise<void> {
  const answersAtOnce = async () => {
    const since = performance.now();
    const answers = Promise.all(relay.services.map(({ port }) => ask(port, "/ready", relay.headers())));
    const areAll = await answers.then(
      () => true,
      () => false,
    );
    return areAll && performance.now() - since < AT_REST_MS;
  };
  await until("the relay is at rest", answersAtOnce, AT_REST_WITHIN_MS);
}
