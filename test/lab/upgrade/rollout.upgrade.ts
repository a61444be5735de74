import { expect, test } from "@jest/globals";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { until } from "../../support/until.ts";
import { use } from "../../support/use-relay.ts";
import { AGENTS } from "../faults/catalogue.ts";
import type { Fault } from "../faults/support/fault.ts";
import { Fleet, type FleetPod } from "../fleet.ts";
import { parties, sendUntilAccepted } from "../keyed-sends.ts";
import { type SingleFleet, SingleStage } from "../faults/support/single-stage.ts";
import { exchanging, survive } from "../faults/survive.ts";
import { RollingRelay } from "./support/rolling-relay.ts";

const CONNECTORS = 2;
const PER_SECOND = 200;
const CALLERS = 2;
/** While services of both versions run: so that each pair of agents has exchanged over them. */
const WITHIN_MS = 30_000;

const relay = new RollingRelay(...AGENTS);
const stage = new SingleStage(relay, PER_SECOND);
const fleet = use(new Fleet(stage, CONNECTORS));
let gateway: FleetPod;
let reporting: FleetPod;

/** One pod after the other, as orchestrators replace them: the new one is ready before the old one is asked to end. */
function rollout(version: RollingRelay["version"]): Fault<SingleFleet> {
  return {
    name: `a rollout to the ${version} version`,
    times: 1,
    closes: [CLOSE_CODES.goingAway.code],
    inject: async () => {
      const calls = startCallers();
      relay.version = version;
      for (const old of [...fleet.connectors]) {
        await fleet.replace(old);
        await end(old);
        await allExchange();
        await calls.served();
      }
      const next = await Promise.all([fleet.addPod("gateway"), fleet.addPod("ops-reporting")]);
      const last = [gateway, reporting];
      [gateway, reporting] = next;
      await calls.served();
      await Promise.all(last.map(end));
      await calls.stop();
      return { agents: fleet.agents, endedAt: performance.now() };
    },
  };
}

async function end(pod: FleetPod): Promise<void> {
  const code = await pod.end("SIGTERM");
  if (code !== 0) throw new Error(`A ${pod.service} ended with ${code}.`);
}

async function allExchange(): Promise<void> {
  await exchanging(fleet, fleet.agents, performance.now(), WITHIN_MS);
}

/** They send over HTTP all the time, each message under an Idempotency-Key, and once more after it was accepted. */
function startCallers(): { served(): Promise<void>; stop(): Promise<void> } {
  const servedAt: number[] = Array(CALLERS).fill(0);
  let isOver = false;
  const calls = servedAt.map(async (_, caller) => {
    for (let n = caller; !isOver; n += CALLERS) {
      await sendUntilAccepted(fleet, parties(fleet, n), () => [gateway], { andAgain: true });
      servedAt[caller] = performance.now();
    }
  });
  const all = Promise.all(calls);
  return {
    served: async () => {
      const since = performance.now();
      const served = until("callers are served", () => servedAt.every((at) => at > since), WITHIN_MS);
      await Promise.race([served, all]);
    },
    stop: async () => {
      isOver = true;
      await all;
    },
  };
}

test("services of the version before are the first", async () => {
  [gateway, reporting] = await Promise.all([fleet.addPod("gateway"), fleet.addPod("ops-reporting")]);
});

test.each(["current", "previous"] as const)(
  "a rollout to the %s version loses nothing that was promised, delivers nothing twice, and keeps the window",
  async (version) => {
    const window = await stage.view.windowId();
    const outcome = await survive(fleet, rollout(version), { times: 1, isAlone: true });
    process.stdout.write(`${JSON.stringify(outcome)}\n`);
    expect(outcome).toMatchObject({ violations: [], forgotten: 0 });
    expect(outcome.promised).toBeGreaterThan(PER_SECOND);
    expect(await stage.view.windowId()).toBe(window);
  },
);
