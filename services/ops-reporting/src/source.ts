import type { PresenceBoard, PresenceCounts } from "@agent-relay/shared/window/presence.ts";
import type { RedisLink } from "@agent-relay/shared/window/redis-link.ts";
import { readSnapshot, type WindowSnapshot } from "@agent-relay/shared/window/snapshot.ts";
import type { OpsReportingSettings } from "./settings.ts";

/** What every report is computed from: the window and the presence in it. */
export interface ReportSource extends WindowSnapshot {
  readonly presence: PresenceCounts;
}

export interface SourceDeps {
  readonly link: RedisLink;
  readonly board: PresenceBoard;
  readonly settings: Pick<OpsReportingSettings, "partitions">;
}

/**
 * Reads the window once; bounded, whatever the traffic was.
 * @throws RelayError `unavailable`.
 */
export async function readSource({ link, board, settings }: SourceDeps): Promise<ReportSource> {
  const [snapshot, presence] = await Promise.all([readSnapshot(link, settings.partitions), board.count()]);
  return { ...snapshot, presence };
}
