import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type PAGE_SURFACES, SURFACES, WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import {
  CONNECTION_LIMITS,
  CREDENTIAL_LIMITS,
  ENVELOPE_LIMITS,
  HTTP_LIMITS,
  PRESENCE_LIMITS,
  SESSION_LIMITS,
  WINDOW_LIMITS,
} from "relay-protocol/wire/limits.ts";
import type { Handlers } from "relay-runtime/http/router.ts";
import type { GatewaySettings } from "../settings.ts";

type PageHandlers = Pick<Handlers<"gateway">, keyof typeof PAGE_SURFACES>;

/**
 * Like the policy of every other answer, and two directives more: scripts and reads, both from this origin only. Trusted
 * types: the browser refuses text that a script would turn into markup.
 */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "connect-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");
/** For styles and the icon; pages and scripts stay no-store. Source: docs/protocol.md#http. */
const CACHED = "public, max-age=86400";

interface Exchange {
  get(field: string): string;
  set(field: string, value: string): void;
}

/** The pages for people, with their styles, scripts and icon. */
export function pageEndpoints({ settings }: { readonly settings: PageSettings }): PageHandlers {
  const atBaseAddress = renderPages(settings);
  const elsewhere = renderPages(settings, "relative");
  const baseUrl = new URL(settings.baseUrl);
  const page = (id: PageId) => (ctx: Exchange) => {
    ctx.set("Content-Security-Policy", PAGE_POLICY);
    return (isSentTo(baseUrl, ctx) ? atBaseAddress : elsewhere)[id];
  };
  const cached = (text: string) => (ctx: Exchange) => {
    ctx.set("Cache-Control", CACHED);
    return text;
  };
  return {
    home: page("home"),
    productDesign: page("productDesign"),
    pageStyle: cached(ASSETS.pageStyle),
    homeStyle: cached(ASSETS.homeStyle),
    designStyle: cached(ASSETS.designStyle),
    favicon: cached(ASSETS.favicon),
    homeScript: () => ASSETS.homeScript,
    figuresScript: () => ASSETS.figuresScript,
  };
}

/**
 * Whether the client asked at the base address. This decides how links are written, never where they lead: the base
 * address may have a path prefix without a slash at its end, and the relay's own port has no prefix. Some proxies drop
 * the port.
 */
function isSentTo({ host, hostname }: URL, ctx: Exchange): boolean {
  const named = [ctx.get("Host"), ...ctx.get("X-Forwarded-Host").split(",")];
  return named.some((name) => [host, hostname].includes(name.trim().toLowerCase()));
}

const fileOf = (name: string) => readFileSync(new URL(name, import.meta.url), "utf8").replaceAll("\r\n", "\n");

/** Files that are served unchanged. */
const ASSETS = {
  pageStyle: fileOf("relay.css"),
  homeStyle: fileOf("home.css"),
  designStyle: fileOf("design.css"),
  homeScript: fileOf("home.js"),
  figuresScript: fileOf("figures.js"),
  favicon: fileOf("favicon.svg"),
};
const HOME = fileOf("home.html");
const DESIGN = fileOf("design.html");

type PageSettings = Pick<GatewaySettings, "baseUrl" | "wsUrl" | "alternateWsPath" | "offlineAfterMs">;

type PageId = "home" | "productDesign";

/**
 * The two pages, with the relay's addresses and limits filled in. The browser fetches the counts.
 * @param links how they link within the site: below the path of the base address, or relative to the page.
 * @throws Error for an unknown placeholder.
 */
export function renderPages(
  settings: PageSettings,
  links: "below the base address" | "relative" = "below the base address",
): Readonly<Record<PageId, string>> {
  const values = valuesOf(settings);
  const prefix = new URL(settings.baseUrl).pathname.replace(/\/$/, "");
  const fill = (page: string, pageId: PageId): string => {
    const root = links === "relative" ? `.${"/..".repeat(SURFACES[pageId].path.split("/").length - 2)}` : prefix;
    const textOf = (name: string): string => {
      const [, kind, id = ""] = /^(path|plain):(\w+)$/.exec(name) ?? [];
      const surface = Object.hasOwn(SURFACES, id) ? SURFACES[id as keyof typeof SURFACES] : undefined;
      // Links within the site have no host, so that a page opened under another host name still finds its files.
      const value = surface === undefined ? values[name] : kind === "path" ? root + surface.path : surface.path;
      if (value === undefined) throw new Error(`Unknown placeholder {{${name}}} in a page.`);
      return value;
    };
    return page.replace(/\{\{([\w:]+)\}\}/g, (_, name: string) => escapeHtml(textOf(name)));
  };
  return { home: fill(HOME, "home"), productDesign: fill(DESIGN, "productDesign") };
}

function valuesOf({ baseUrl, wsUrl, alternateWsPath, offlineAfterMs }: PageSettings): Readonly<Record<string, string>> {
  const seconds = (ms: number) => String(ms / 1000);
  const minutes = (ms: number) => String(ms / 60_000);
  return {
    baseUrl,
    wsUrl,
    alternateWsPath,
    websocketPath: WEBSOCKET_PATH,
    styleVersion: hash("sha256", ASSETS.pageStyle + ASSETS.homeStyle + ASSETS.designStyle).slice(0, 12),
    staleAfterSeconds: seconds(PRESENCE_LIMITS.staleAfterMs),
    offlineAfterMinutes: minutes(offlineAfterMs),
    stabilityHoldSeconds: seconds(PRESENCE_LIMITS.stabilityHoldMs),
    registerWithinSeconds: seconds(CONNECTION_LIMITS.registerWithinMs),
    heartbeatSeconds: seconds(CONNECTION_LIMITS.heartbeatIntervalMs),
    clockSkewMinutes: minutes(ENVELOPE_LIMITS.maxClockSkewMs),
    credentialDays: String(CREDENTIAL_LIMITS.maxLifeMs / (24 * 3_600_000)),
    frameKilobytes: String(ENVELOPE_LIMITS.maxFrameBytes / 1024),
    gatewayPerMinute: String(HTTP_LIMITS.gatewayRequestsPerMinute),
    ttlMinutesDefault: String(SESSION_LIMITS.ttlMinutesDefault),
    ttlMinutesMin: String(SESSION_LIMITS.ttlMinutesMin),
    ttlMinutesMax: String(SESSION_LIMITS.ttlMinutesMax),
    retainedProofs: String(SESSION_LIMITS.retainedProofs),
    journeys: String(WINDOW_LIMITS.journeys),
  };
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
