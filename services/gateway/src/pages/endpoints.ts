import type { PAGE_SURFACES } from "relay-protocol/contract/surfaces.ts";
import type { Handlers } from "relay-runtime/http/router.ts";
import { ASSETS, type PageId, type PageSettings, renderPages } from "./render.ts";

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
 * Whether the client asked at that address. Only how links are written depends on it, never where they lead: the base address
 * may have a path prefix without a slash at its end, and the relay's own port has no prefix. Some proxies drop the port.
 */
function isSentTo({ host, hostname }: URL, ctx: Exchange): boolean {
  const named = [ctx.get("Host"), ...ctx.get("X-Forwarded-Host").split(",")];
  return named.some((name) => [host, hostname].includes(name.trim().toLowerCase()));
}
