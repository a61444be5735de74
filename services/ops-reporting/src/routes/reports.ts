import type { Handlers } from "@agent-relay/shared/http/router.ts";
import type { RedisLink } from "@agent-relay/shared/window/redis-link.ts";
import { readSnapshot } from "@agent-relay/shared/window/snapshot.ts";
import { trafficDaily } from "../reports/traffic-daily.ts";
import type { OpsReportingSettings } from "../settings.ts";

interface Deps {
  readonly link: RedisLink;
  readonly settings: Pick<OpsReportingSettings, "partitions" | "proofFreshnessMs">;
}

/** Every report is a pure function of one snapshot of the window. */
export function reportRoutes({ link, settings }: Deps): Pick<Handlers<"ops-reporting">, "trafficDaily"> {
  const { partitions, proofFreshnessMs } = settings;
  return {
    trafficDaily: async () => trafficDaily(await readSnapshot(link, partitions), proofFreshnessMs),
  };
}
