import { setTimeout as delay } from "node:timers/promises";
import type { SingleStage } from "../faults/support/single-stage.ts";
import type { Act } from "./actions.ts";
import type { RoamingFleet } from "./roaming-fleet.ts";

export type RedisFault = Extract<Act, { act: "hangRedis" | "restartRedis" }>;

/** For so long nobody may know that Redis has ended. */
const NOTICED_MS = 100;

export function isRedisFault(act: Act): act is RedisFault {
  return act.act === "hangRedis" || act.act === "restartRedis";
}

/** Begins a fault of the one Redis, and resolves when it is over. */
export async function injectIntoRedis(fleet: RoamingFleet, stage: SingleStage, fault: RedisFault): Promise<void> {
  const { redis } = stage.relay;
  if (fault.act === "hangRedis") {
    await redis.pause();
    await delay(fault.forMs);
    await redis.resume();
    return;
  }
  const alive = fleet.ledger.gap();
  await redis.kill();
  fleet.ledger.guardLost();
  await delay(NOTICED_MS);
  await redis.start();
  alive();
}
