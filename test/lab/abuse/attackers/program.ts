import { constants, setPriority } from "node:os";
import { takeOrders } from "../../ordered-process.ts";
import { ATTACKS } from "../catalogue.ts";
import type { Launch, Order } from "../target.ts";

/**
 * The attacker's process: makes one attack ready, and launches it when it is told to. Its connections stay until it is ended.
 * It has the lowest priority, so that the machine that it shares with the relay does not count: it could be any other.
 */

let launch: Launch | undefined;
setPriority(constants.priority.PRIORITY_LOW);
takeOrders(async (order: Order) => {
  if (order.order === "prepare") {
    launch = await ATTACKS.find(({ name }) => name === order.name)?.attacker?.(order.target);
    return undefined;
  }
  const before = process.cpuUsage();
  const attacked = await launch?.();
  const { user, system } = process.cpuUsage(before);
  return { attacked, cpuSeconds: (user + system) / 1e6 };
});
