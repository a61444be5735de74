import { setTimeout as delay } from "node:timers/promises";
import { until } from "../../support/until.ts";
import { AttackerProcess } from "./attackers/process.ts";
import { ask } from "./support/ask.ts";
import type { Attack } from "./support/attack.ts";
import type { Bystanders } from "./bystanders.ts";
import type { Deployment } from "./deployment.ts";
import type { Outcome } from "./support/outcome.ts";
import { figuresOf } from "./samples.ts";

const ATTACK_MS = 4000;
const AFTERWARDS_MS = 1500;
/** A relay that answers so soon has the last attack behind it. */
const AT_REST_MS = 100;
const AT_REST_WITHIN_MS = 15_000;
const NOT_AN_ATTACKER = { attacked: { connections: 0, frames: 0, bytes: 0, faults: [] }, cpuSeconds: 0 };

/** Launches an attack while bystanders go about their business, and tells what they noticed. */
export async function endure(relay: Deployment, bystanders: Bystanders, attack: Attack): Promise<Outcome> {
  const target = relay.target(attack.forMs ?? ATTACK_MS);
  const attacker =
    attack.attacker === undefined ? undefined : await AttackerProcess.start({ name: attack.name, target });
  try {
    await atRest(relay);
    const [before, reachedBefore] = [await relay.usage(), await relay.limitsReached()];
    const testify = await attack.witness?.(relay);
    await bystanders.start();
    const launched = (await attacker?.launch()) ?? NOT_AN_ATTACKER;
    const testimony = await testify?.();
    const endedAt = performance.now();
    await attacker?.stop();
    await delay(AFTERWARDS_MS);
    const [end, reached] = [await relay.usage(), await relay.limitsReached()];
    const untouched = attack.reaches?.filter((limit) => reached(limit) === reachedBefore(limit)) ?? [];
    const { samples, lost } = await bystanders.stop();
    return {
      attack: attack.name,
      ...launched,
      before,
      end,
      during: figuresOf(samples.filter(({ at }) => at < endedAt)),
      after: figuresOf(samples.filter(({ at }) => at >= endedAt)),
      lost,
      faults: [
        ...launched.attacked.faults,
        ...(testimony?.faults ?? []),
        ...untouched.map((limit) => `the limit ${limit} was not reached`),
      ],
      notes: testimony?.notes ?? [],
    };
  } finally {
    await bystanders.stop();
    await attacker?.stop();
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
