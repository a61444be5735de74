import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { tally } from "../../support/ledger.ts";
import { until } from "../../support/until.ts";
import { type Action, actionsOf, losesRedis } from "./actions.ts";
import { type Breach, breaches, earlyBreaches, miscounts } from "./checks.ts";
import { Player } from "./player.ts";
import { Stage } from "./stage.ts";

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
say(`seed ${seed}, ${seconds} s`);

const stage = new Stage();
const played: Action[] = [];
try {
  await stage.start();
  const gateway = await stage.addPod("gateway");
  const player = new Player(stage, gateway.url);
  const found = await playUntilBroken(player);
  await player.settle();
  report(found.length > 0 ? found : await judge(player));
} finally {
  await stage.stop();
}

/** Plays what the seed says. Returns as soon as something is broken. */
async function playUntilBroken(player: Player): Promise<Breach[]> {
  const startedAt = performance.now();
  let lookAt = LOOK_EVERY_MS;
  for (const action of actionsOf(seed)) {
    if (action.at > seconds * 1000) break;
    const waitMs = startedAt + action.at - performance.now();
    if (waitMs > 0) await delay(waitMs);
    played.push(action);
    await player.play(action);
    if (action.at < lookAt) continue;
    lookAt += LOOK_EVERY_MS;
    const found = [...earlyBreaches(stage.ledger.content, player.forged, performance.now()), ...ended()];
    if (found.length > 0) return found;
  }
  return [];
}

/** When all has come to rest. */
async function judge(player: Player): Promise<Breach[]> {
  const isBack = () => stage.agents.every(({ isOnline, unsettled }) => isOnline && unsettled === 0);
  await until("everybody is back", isBack, SETTLE_MS).catch(() => {});
  const away = stage.agents
    .filter(({ isOnline, unsettled }) => !isOnline || unsettled > 0)
    .map(({ id, closes }) => ({ what: `${id} is not back, or has no answers; last close ${closes.at(-1)}`, id: "" }));
  const open = new Set(stage.agents.map(({ connection }) => connection));
  const seen = () => breaches({ content: stage.ledger.content, forged: player.forged, open, now: performance.now() });
  await until("all is delivered", () => seen().length === 0).catch(() => {});
  const counters = losesRedis(seed) ? [] : miscounts(stage.ledger.content, player.forged, await stage.view.counters());
  return [...away, ...seen(), ...counters, ...ended()];
}

/** Processes that nobody ended. */
function ended(): Breach[] {
  return stage.pods
    .filter(({ process, isDismissed }) => process.hasEnded && !isDismissed)
    .map(({ service }) => ({ what: `a ${service} ended by itself`, id: "" }));
}

function report(found: readonly Breach[]): void {
  const counts = [...Map.groupBy(played, ({ act }) => act)].map(([act, all]) => `${act} ${all.length}`);
  say(`${played.length} actions: ${counts.sort().join(", ")}`);
  say(JSON.stringify(tally(stage.ledger.content)));
  if (found.length === 0) return;
  say(`BROKEN; again with: npm run test:random -- --seed ${seed} --seconds ${seconds}`);
  for (const { what, id } of found.slice(0, SHOWN_BREACHES)) {
    say(`${what} ${id}`);
    if (id !== "") say(JSON.stringify(stage.ledger.entry(id)));
  }
  say(`${found.length} in all; the last actions:`);
  for (const action of played.slice(-LAST_ACTIONS)) say(JSON.stringify(action));
  process.exitCode = 1;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
