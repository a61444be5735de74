import { expect, test } from "@jest/globals";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { use } from "../../support/use-relay.ts";
import { AGENTS } from "../faults/inject.ts";
import { exchanging, type Fault, survive } from "../faults/survive.ts";
import { Fleet, type FleetPod, type SingleFleet, SingleStage } from "../fleet.ts";
import { KeyedCallers, parties } from "../keyed-sends.ts";
import { RollingRelay } from "./previous-tree.ts";

const CONNECTORS = 2;
const PER_SECOND = 200;
const CALLERS = 2;
/** While services of both versions run: so that each pair of agents has exchanged over them. */
const WITHIN_MS = 30_000;

const relay = new RollingRelay(...AGENTS);
const stage = new SingleStage(relay);
const fleet = use(new Fleet(stage, { connectors: CONNECTORS }));
let gateway: FleetPod;
let reporting: FleetPod;

/** One pod after the other, as orchestrators replace them: the new one is ready before the old one is asked to end. */
function rollout(version: RollingRelay["version"]): Fault<SingleFleet> {
  return {
    name: `a rollout to the ${version} version`,
    times: 1,
    closes: [CLOSE_CODES.goingAway.code],
    inject: async () => {
      // They send over HTTP all the time.
      const calls = new KeyedCallers(
        fleet,
        CALLERS,
        () => [gateway],
        (caller, n) => parties(fleet, caller + n * CALLERS),
      );
      relay.version = version;
      for (const old of [...fleet.connectors]) {
        await fleet.replace(old);
        await old.end("SIGTERM");
        await allExchange();
        await calls.served();
      }
      const next = await Promise.all([fleet.addPod("gateway"), fleet.addPod("ops-reporting")]);
      const last = [gateway, reporting];
      [gateway, reporting] = next;
      await calls.served();
      await Promise.all(last.map((pod) => pod.end("SIGTERM")));
      await calls.stop();
      return { agents: fleet.agents, endedAt: performance.now() };
    },
  };
}

async function allExchange(): Promise<void> {
  await exchanging(fleet, fleet.agents, performance.now(), WITHIN_MS);
}

test("services of the version before are the first", async () => {
  [gateway, reporting] = await Promise.all([fleet.addPod("gateway"), fleet.addPod("ops-reporting")]);
});

test.each(["current", "previous"] as const)(
  "a rollout to the %s version loses nothing that was promised, delivers nothing twice, and keeps the window",
  async (version) => {
    const window = await stage.view.windowId();
    const outcome = await survive(fleet, rollout(version), { times: 1, perSecond: PER_SECOND, isAlone: true });
    process.stdout.write(`${JSON.stringify(outcome)}\n`);
    expect(outcome).toMatchObject({ violations: [], forgotten: 0 });
    expect(outcome.promised).toBeGreaterThan(PER_SECOND);
    expect(await stage.view.windowId()).toBe(window);
  },
);
