import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { tally } from "../../support/ledger.ts";
import { until } from "../../support/until.ts";
import { type Action, actionsOf, isOnCluster, losesRedis } from "./actions.ts";
import { type Breach, breaches, earlyBreaches, miscounts } from "./checks.ts";
import { Driver, RoamingFleet } from "./driver.ts";

/**
 * `npm run test:random [-- --seed n --seconds n]`: agents, envelopes, forgeries and faults mixed by chance. The same seed
 * is the same sequence of actions; how they meet in time is not. Exit code 1 when a promise is broken.
 */

const LOOK_EVERY_MS = 1000;
const SETTLE_MS = 20_000;
const LAST_ACTIONS = 40;
const SHOWN_BREACHES = 10;

const { values } = parseArgs({ options: { seed: { type: "string" }, seconds: { type: "string", default: "60" } } });
const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed);
const seconds = Number(values.seconds);
say(`seed ${seed}, ${seconds} s, on ${isOnCluster(seed) ? "a Redis Cluster" : "one Redis"}`);

const fleet = new RoamingFleet(isOnCluster(seed));
const done: Action[] = [];
try {
  await fleet.start();
  const gateway = await fleet.addPod("gateway");
  const driver = new Driver(fleet, gateway);
  const found = await driveUntilBroken(driver);
  await driver.settle();
  report(found.length > 0 ? found : await judge(driver));
} finally {
  await fleet.stop();
}

/** Plays what the seed says. Returns as soon as something is broken. */
async function driveUntilBroken(driver: Driver): Promise<Breach[]> {
  const startedAt = performance.now();
  let lookAt = LOOK_EVERY_MS;
  for (const action of actionsOf(seed)) {
    if (action.at > seconds * 1000) break;
    const waitMs = startedAt + action.at - performance.now();
    if (waitMs > 0) await delay(waitMs);
    done.push(action);
    await driver.do(action);
    if (action.at < lookAt) continue;
    lookAt += LOOK_EVERY_MS;
    const found = [...earlyBreaches(fleet.ledger.content, driver.forged, performance.now()), ...ended()];
    if (found.length > 0) return found;
  }
  return [];
}

/** When all has come to rest. */
async function judge(driver: Driver): Promise<Breach[]> {
  const isBack = () => fleet.agents.every(({ isOnline, unsettled }) => isOnline && unsettled === 0);
  await until("everybody is back", isBack, SETTLE_MS).catch(() => {});
  const away = fleet.agents
    .filter(({ isOnline, unsettled }) => !isOnline || unsettled > 0)
    .map(({ id, closes }) => ({ what: `${id} is not back, or has no answers; last close ${closes.at(-1)}`, id: "" }));
  const open = new Set(fleet.agents.map(({ connection }) => connection));
  const seen = () => breaches({ content: fleet.ledger.content, forged: driver.forged, open, now: performance.now() });
  await until("all is delivered", () => seen().length === 0).catch(() => {});
  const counters = losesRedis(seed) ? [] : miscounts(fleet.ledger.content, driver.forged, await fleet.stage.counters());
  return [...away, ...seen(), ...counters, ...ended()];
}

function ended(): Breach[] {
  return fleet.unexpectedEnds.map((what) => ({ what, id: "" }));
}

function report(found: readonly Breach[]): void {
  const counts = [...Map.groupBy(done, ({ act }) => act)].map(([act, all]) => `${act} ${all.length}`);
  say(`${done.length} actions: ${counts.sort().join(", ")}`);
  say(JSON.stringify(tally(fleet.ledger.content)));
  if (found.length === 0) return;
  say(`BROKEN; again with: npm run test:random -- --seed ${seed} --seconds ${seconds}`);
  for (const { what, id } of found.slice(0, SHOWN_BREACHES)) {
    say(`${what} ${id}`);
    if (id !== "") say(JSON.stringify(fleet.ledger.entry(id)));
  }
  say(`${found.length} in all; the last actions:`);
  for (const action of done.slice(-LAST_ACTIONS)) say(JSON.stringify(action));
  process.exitCode = 1;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
