import type { Handlers, SurfaceContext } from "relay-runtime/http/router.ts";
import type { KeyStore } from "relay-runtime/key-store.ts";
import { type ReadinessSources, readReadiness } from "relay-window/window/readiness.ts";
import type { GatewayKey } from "../api/gateway-key.ts";
import type { GatewaySettings } from "../settings.ts";
import { AGENT_PROGRAM } from "./agent-program.ts";
import { agentReadableHealth } from "./agent-readable-health.ts";
import { asyncApiDocument } from "./asyncapi.ts";
import { instructions } from "./instructions.ts";
import { keptDocument } from "./kept-document.ts";
import {
  agentManifestExtras,
  discoveryIndex,
  relayManifest,
  signingManifest,
  simpleCapabilities,
} from "./manifests.ts";
import { openApiDocument } from "./openapi.ts";
import type { Packages } from "./packages.ts";
import { robotsText, securityText, sitemapXml } from "./site-files.ts";

interface Parts extends ReadinessSources {
  readonly gatewayKey: GatewayKey;
  readonly keys: KeyStore;
  readonly settings: GatewaySettings;
  readonly packages: Packages;
}

type DiscoveryHandlers = Pick<
  Handlers<"gateway">,
  | "signingManifest"
  | "agentManifest"
  | "relayManifest"
  | "openapi"
  | "asyncapi"
  | "instructions"
  | "agentProgram"
  | "discoveryIndex"
  | "simpleCapabilities"
  | "agentReadableHealth"
  | "securityText"
  | "robots"
  | "sitemap"
>;

/** The documents of discovery. What does not change while the gateway runs is made once. */
export function discoveryEndpoints(parts: Parts): DiscoveryHandlers {
  const { settings, packages } = parts;
  const signing = signingManifest(settings);
  const agentExtras = agentManifestExtras(settings);
  const index = discoveryIndex(settings);
  const capabilities = simpleCapabilities(settings);
  const robots = robotsText(settings);
  const sitemap = sitemapXml(settings);
  return {
    signingManifest: async () => ({ ...signing, ...(await presentKeys(parts)) }),
    agentManifest: async () => ({ ...signing, ...(await presentKeys(parts)), ...agentExtras }),
    relayManifest: keptDocument(relayManifest(settings)),
    openapi: keptDocument(openApiDocument(settings)),
    asyncapi: keptDocument(asyncApiDocument(settings)),
    instructions: keptDocument(instructions(settings, packages)),
    agentProgram: () => AGENT_PROGRAM,
    discoveryIndex: () => index,
    simpleCapabilities: () => capabilities,
    agentReadableHealth: async () => agentReadableHealth(await readReadiness("gateway", parts), settings.baseUrl),
    securityText: () => securityText(settings, Date.now()),
    robots: (ctx) => cacheable(ctx, robots),
    sitemap: (ctx) => cacheable(ctx, sitemap),
  };
}

/** The keys of live gateways, and the issuers of the keys file, which change while the gateway runs. */
async function presentKeys({ gatewayKey, keys }: Pick<Parts, "gatewayKey" | "keys">) {
  const listed = await gatewayKey.listed();
  return {
    gateway_keys: listed.map(({ keyId, publicKey }) => ({
      key_id: keyId,
      alg: "ed25519" as const,
      public_key: publicKey,
    })),
    issuers: [...keys.ring.issuers.records],
  };
}

/** For crawlers. Source: docs/protocol.md#http. */
function cacheable(ctx: SurfaceContext, text: string): string {
  ctx.set("Cache-Control", "public, max-age=3600");
  return text;
}
