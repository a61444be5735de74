import { partitionKeys } from "../redis/keys.ts";
import { partitionOf } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { ProcessWindow } from "../window/process-window.ts";

/**
 * Has the pod that has an agent close its connection, whichever pod that is.
 * @returns false when no pod has it. @throws ServiceError `unavailable`: nothing was done, or it is not known.
 */
export async function disconnect(link: RedisCalls, window: ProcessWindow, agent: string): Promise<boolean> {
  const p = partitionOf(agent, window.partitions);
  const [, heard] = await window.inWindow(async ({ id, keys }) => {
    const names = [partitionKeys.window(p), keys.partition(p).route];
    const reply = await link.runByDeadline("disconnect", names, [id, partitionKeys.podChannelPrefix(p), agent]);
    return reply[0] === "window" ? null : reply;
  });
  return heard !== 0;
}
