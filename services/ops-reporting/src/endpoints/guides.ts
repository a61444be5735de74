import type { GuideQuery } from "relay-protocol/contract/reports/guides.ts";
import type { Handlers } from "relay-runtime/http/router.ts";
import type { AddressLimits } from "relay-window/limits/rate-limit.ts";
import { activationPlan } from "../guides/activation-plan.ts";
import { type GuideContext, guideContext } from "../guides/guide-context.ts";
import type { GuideId } from "../guides/links.ts";
import {
  ecosystemHandoff,
  marketplaceFirstJobHandoff,
  marketplaceHandoffStatus,
} from "../guides/marketplace-handoff.ts";
import { sessionRequestRefreshPacket } from "../guides/refresh-packet.ts";
import { sessionRequestGuide } from "../guides/session-request-guide.ts";
import type { OpsReportingSettings } from "../settings.ts";
import type { WindowReader } from "../window-reader.ts";

type Guides = { readonly [Guide in GuideId]: Handlers<"ops-reporting">[Guide] };
type GuideRequest = { readonly ip: string; readonly state: { readonly query: GuideQuery } };

/**
 * Every guide is a pure function of the window, the settings and what the client asks with; with a target, of that too. A
 * target is read from Redis, as for check-online, and counted as there.
 */
export function guideEndpoints(reader: WindowReader, limits: AddressLimits, settings: OpsReportingSettings): Guides {
  const guide =
    <Guide>(id: GuideId, write: (context: GuideContext) => Guide) =>
    async ({ ip, state: { query } }: GuideRequest) => {
      const { target_agent_id: agent, session_id: sessionId = null } = query;
      if (agent === undefined) return write(guideContext(id, await reader.read("presence"), settings, query));
      await limits.use("target_reads", ip);
      const { source, target } = await reader.readWithTarget({ agent, sessionId }, "presence");
      return write(guideContext(id, source, settings, query, target));
    };
  return {
    activationPlan: guide("activationPlan", activationPlan),
    sessionRequestGuide: guide("sessionRequestGuide", sessionRequestGuide),
    sessionRequestRefreshPacket: guide("sessionRequestRefreshPacket", sessionRequestRefreshPacket),
    ecosystemHandoff: guide("ecosystemHandoff", ecosystemHandoff),
    marketplaceFirstJobHandoff: guide("marketplaceFirstJobHandoff", marketplaceFirstJobHandoff),
    marketplaceHandoffStatus: guide("marketplaceHandoffStatus", marketplaceHandoffStatus),
  };
}
