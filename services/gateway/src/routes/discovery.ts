import { type ReadinessSources, readReadiness } from "@agent-relay/shared/http/readiness.ts";
import type { Handlers, SurfaceContext } from "@agent-relay/shared/http/router.ts";
import { agentReadableHealth } from "../discovery/agent-readable-health.ts";
import { asyncApiDocument } from "../discovery/asyncapi.ts";
import { instructions } from "../discovery/instructions.ts";
import {
  agentManifestExtras,
  discoveryIndex,
  relayManifest,
  signingManifest,
  simpleCapabilities,
} from "../discovery/manifests.ts";
import { openApiDocument } from "../discovery/openapi.ts";
import { robotsText, securityText, sitemapXml } from "../discovery/texts.ts";
import type { GatewayKey } from "../gateway-key.ts";
import type { GatewaySettings } from "../settings.ts";

interface Deps extends ReadinessSources {
  readonly gatewayKey: GatewayKey;
  readonly settings: GatewaySettings;
}

type Routes = Pick<
  Handlers<"gateway">,
  | "signingManifest"
  | "agentManifest"
  | "relayManifest"
  | "openapi"
  | "asyncapi"
  | "instructions"
  | "discoveryIndex"
  | "simpleCapabilities"
  | "agentReadableHealth"
  | "securityText"
  | "robots"
  | "sitemap"
>;

/** The documents. What does not change while the gateway runs is made once, here. */
export function discoveryRoutes(deps: Deps): Routes {
  const { gatewayKey, settings } = deps;
  const signing = signingManifest(settings);
  const agentExtras = agentManifestExtras(settings);
  const relay = relayManifest(settings);
  const openapi = openApiDocument(settings);
  const asyncapi = asyncApiDocument(settings);
  const index = discoveryIndex(settings);
  const capabilities = simpleCapabilities(settings);
  const text = instructions(settings);
  const robots = robotsText(settings);
  const sitemap = sitemapXml(settings);
  return {
    signingManifest: async () => ({ ...signing, gateway_keys: await listedKeys(gatewayKey) }),
    agentManifest: async () => ({ ...signing, gateway_keys: await listedKeys(gatewayKey), ...agentExtras }),
    relayManifest: () => relay,
    openapi: () => openapi,
    asyncapi: () => asyncapi,
    instructions: () => text,
    discoveryIndex: () => index,
    simpleCapabilities: () => capabilities,
    agentReadableHealth: async () => agentReadableHealth(await readReadiness("gateway", deps), settings.baseUrl),
    securityText: () => securityText(settings, Date.now()),
    robots: (ctx) => cacheable(ctx, robots),
    sitemap: (ctx) => cacheable(ctx, sitemap),
  };
}

async function listedKeys(gatewayKey: GatewayKey) {
  const listed = await gatewayKey.listed();
  return listed.map(({ keyId, publicKey }) => ({ key_id: keyId, alg: "ed25519" as const, public_key: publicKey }));
}

/** For crawlers; everything else is no-store. Source: protocol, section 9. */
function cacheable(ctx: SurfaceContext, text: string): string {
  ctx.set("Cache-Control", "public, max-age=3600");
  return text;
}
