import { constants, setPriority } from "node:os";
import { ATTACKS } from "../catalogue.ts";
import type { Order } from "../target.ts";

/**
 * The attacker's process: makes one attack ready, and launches it when it is told to. It has the lowest priority, so that the
 * machine that it shares with the relay does not count: it could be any other.
 */

setPriority(constants.priority.PRIORITY_LOW);
process.on("disconnect", () => process.exit(0));
process.once("message", async ({ name, target }: Order) => {
  const attack = ATTACKS.find((one) => one.name === name);
  const launch = await attack?.attacker?.(target);
  process.once("message", async () => {
    const before = process.cpuUsage();
    const attacked = await launch?.();
    const { user, system } = process.cpuUsage(before);
    process.send?.({ attacked, cpuSeconds: (user + system) / 1e6 });
  });
  process.send?.("ready");
});
