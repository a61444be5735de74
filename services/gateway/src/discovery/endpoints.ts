import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { brotliCompress, gzip, constants as zlib } from "node:zlib";
import { type Encoding, encodingFor } from "relay-runtime/http/compression.ts";
import type { Handlers, SurfaceContext } from "relay-runtime/http/router.ts";
import type { KeyStore } from "relay-runtime/key-store.ts";
import { type ReadinessSources, readReadiness } from "relay-window/window/readiness.ts";
import type { GatewayKey } from "../api/gateway-key.ts";
import type { GatewaySettings } from "../settings.ts";
import { asyncApiDocument } from "./asyncapi.ts";
import { instructions } from "./instructions.ts";
import {
  agentManifestExtras,
  agentReadableHealth,
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

/** A document as it is sent in one encoding. */
interface Representation {
  readonly bytes: Buffer;
  /** A strong entity tag: the digest of these very bytes, so that no two encodings share one. */
  readonly etag: string;
}

/** Well below the best level: that takes half a second for the longest document, which its first reader would wait for. */
const BROTLI = { params: { [zlib.BROTLI_PARAM_QUALITY]: 9 } };
const CODERS: Readonly<Record<Encoding, (content: Buffer) => Promise<Buffer>>> = {
  br: (content) => promisify(brotliCompress)(content, BROTLI),
  gzip: (content) => promisify(gzip)(content, { level: 9 }),
  identity: async (content) => content,
};

/**
 * Answers with a document that stays the same while the process runs. It is compressed when an encoding is first asked
 * for, and kept. Caches ask again each time, and get 304 while it is the same. Never for a document that shows the
 * window, keys or presence. Source: docs/protocol.md#discovery.
 */
function keptDocument(document: string | object): (ctx: SurfaceContext) => Promise<Buffer> {
  const content = Buffer.from(typeof document === "string" ? document : JSON.stringify(document));
  const kept = new Map<Encoding, Promise<Representation>>();
  const keep = (encoding: Encoding) => {
    const made = CODERS[encoding](content).then((bytes) => ({ bytes, etag: tagOf(bytes) }));
    kept.set(encoding, made);
    return made;
  };
  return async (ctx) => {
    const encoding = encodingFor(ctx.get("Accept-Encoding"));
    const { bytes, etag } = await (kept.get(encoding) ?? keep(encoding));
    ctx.vary("Accept-Encoding");
    ctx.set({ "Cache-Control": "no-cache", ETag: etag });
    if (names(ctx.get("If-None-Match"), etag)) ctx.status = 304;
    else if (encoding !== "identity") ctx.set("Content-Encoding", encoding);
    return bytes;
  };
}

function tagOf(bytes: Buffer): string {
  return `"${createHash("sha256").update(bytes).digest("base64url")}"`;
}

/** Whether If-None-Match names the tag: `*`, or a list of tags that are compared weakly. Source: RFC 9110, section 13.1.2. */
function names(ifNoneMatch: string, etag: string): boolean {
  const tags = ifNoneMatch.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || ifNoneMatch.trim() === "*";
}

/** GET /examples/agent.mjs: the program of llms.txt, as it is run. */
const AGENT_PROGRAM = readFileSync(new URL("worked-agent.mjs", import.meta.url), "utf8").replaceAll("\r\n", "\n");
