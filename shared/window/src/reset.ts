import { newWindowId } from "./process-window.ts";
import { controlKeys, KEY_PREFIX, partitionKeys, REPLAY_GUARD_PATTERN } from "./redis/keys.ts";
import type { RedisLink } from "./redis/redis-link.ts";

/** What a reset did. `foreign`: the database holds keys that are not the relay's, and nothing was touched. */
export type ResetOutcome =
  | { readonly outcome: "kept"; readonly windowId: string }
  | { readonly outcome: "opened"; readonly windowId: string; readonly deletedKeys: number }
  | { readonly outcome: "foreign"; readonly foreignKeys: number };

/**
 * Opens a new window when `deployId` or `partitions` differ from the window's, or with `force`; safe to race. Every key of
 * the relay is deleted but the replay guard. Source: docs/redis.md#the-process-window.
 * @throws ServiceError `unavailable`.
 */
export async function resetWindow(
  link: RedisLink,
  options: { readonly partitions: number; readonly deployId: string; readonly force: boolean },
): Promise<ResetOutcome> {
  const windows = Array.from({ length: options.partitions }, (_, p) => partitionKeys.window(p));
  const args = [newWindowId(), options.deployId, options.force ? 1 : 0, KEY_PREFIX, REPLAY_GUARD_PATTERN];
  const [outcome, detail, deleted] = (await link.run("reset_window", [controlKeys.window, ...windows], args)) as [
    string,
    string,
    number,
  ];
  if (outcome === "foreign") return { outcome, foreignKeys: Number(detail) };
  if (outcome === "kept") return { outcome, windowId: detail };
  return { outcome: "opened", windowId: detail, deletedKeys: deleted };
}
