import type { TLSSocket } from "node:tls";
import type Koa from "koa";
import type { GuideQuery } from "relay-protocol/contract/reports/guides.ts";
import { createApp, healthHandler } from "relay-runtime/http/app.ts";
import { type Handlers, mountSurfaces, type SurfaceContext } from "relay-runtime/http/router.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { type Counters, countTraffic } from "relay-window/counters/counters.ts";
import type { AddressLimits } from "relay-window/limits/rate-limit.ts";
import type { PresenceStore } from "relay-window/presence/presence.ts";
import type { RedisCalls } from "relay-window/redis/redis-calls.ts";
import type { ProcessWindow } from "relay-window/window/process-window.ts";
import { readyHandler } from "relay-window/window/readiness.ts";
import { activationPlan } from "./guides/activation-plan.ts";
import { type GuideContext, type GuideId, guideContext } from "./guides/guide.ts";
import {
  ecosystemHandoff,
  marketplaceFirstJobHandoff,
  marketplaceHandoffStatus,
} from "./guides/marketplace-handoff.ts";
import { sessionRequestGuide, sessionRequestRefreshPacket } from "./guides/session-request-guide.ts";
import { activationFunnel } from "./reports/activation.ts";
import { diagnostics } from "./reports/diagnostics.ts";
import { domainRouting, type ObservedRequest } from "./reports/domain-routing.ts";
import { economicReadiness } from "./reports/economic-readiness.ts";
import { feedbackSummary } from "./reports/feedback.ts";
import { restartSurvivalCheck } from "./reports/restart-survival-check.ts";
import { sessionJourneys } from "./reports/session-journeys.ts";
import { sessionProofRetention } from "./reports/session-proof-retention.ts";
import { trafficDaily } from "./reports/traffic-daily.ts";
import type { OpsReportingSettings, ReportSettings } from "./settings.ts";
import { type ReportPart, type ReportSource, WindowReader } from "./window-reader.ts";

/** What the endpoints work with. */
export interface OpsReportingDeps {
  readonly settings: OpsReportingSettings;
  readonly logger: Logger;
  readonly link: RedisCalls;
  readonly window: ProcessWindow;
  readonly counters: Counters;
  readonly presenceStore: PresenceStore;
  readonly limits: AddressLimits;
}

/** Koa with every surface of ops-reporting mounted. */
export function createOpsReportingApp(deps: OpsReportingDeps): Koa {
  const { settings, logger, link, presenceStore, limits, counters, window } = deps;
  const reader = new WindowReader({ link, window, presenceStore, ...settings });
  const handlers = {
    ...reportEndpoints(reader, settings),
    ...guideEndpoints(reader, limits, settings),
    ...domainRoutingEndpoint(settings),
    health: healthHandler("ops-reporting"),
    ready: readyHandler("ops-reporting", deps),
  };
  const app = createApp({ logger, trustedProxyHops: settings.trustedProxyHops });
  return app.use(mountSurfaces("ops-reporting", handlers, countTraffic(counters, window)));
}

type Endpoints = Pick<
  Handlers<"ops-reporting">,
  | "trafficDaily"
  | "activationFunnel"
  | "sessionProofRetention"
  | "economicReadiness"
  | "feedbackSummary"
  | "restartSurvivalCheck"
  | "diagnostics"
  | "sessionJourneys"
>;

/** Every report is a pure function of the settings, the figures of the window, and the parts that are named here. */
export function reportEndpoints(reader: WindowReader, settings: OpsReportingSettings): Endpoints {
  const report =
    <Part extends ReportPart, Body>(
      compute: (source: ReportSource<NoInfer<Part>>, settings: ReportSettings) => Body,
      ...parts: readonly Part[]
    ) =>
    async () =>
      compute(await reader.read(...parts), settings);
  return {
    trafficDaily: report(trafficDaily, "presence", "journeys"),
    activationFunnel: report(activationFunnel, "presence"),
    sessionProofRetention: report(sessionProofRetention, "presence"),
    economicReadiness: report(economicReadiness, "presence"),
    feedbackSummary: report(feedbackSummary, "presence"),
    restartSurvivalCheck: report(restartSurvivalCheck, "presence"),
    diagnostics: report(diagnostics, "presence", "gatewayKeys", "connections"),
    sessionJourneys: report(sessionJourneys, "journeys"),
  };
}

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

/** The report that is computed from its own request, and reads nothing of the window. */
export function domainRoutingEndpoint(
  settings: OpsReportingSettings,
): Pick<Handlers<"ops-reporting">, "domainRouting"> {
  return { domainRouting: (ctx) => domainRouting(observe(ctx), settings) };
}

/** Reads the header fields themselves: Koa takes the leftmost entry, which the client writes. */
function observe({ req }: SurfaceContext): ObservedRequest {
  const field = (name: string) => [req.headers[name] ?? ""].flat().join(",");
  return {
    host: field("host"),
    encrypted: (req.socket as TLSSocket).encrypted === true,
    forwardedHost: field("x-forwarded-host"),
    forwardedProto: field("x-forwarded-proto"),
  };
}
