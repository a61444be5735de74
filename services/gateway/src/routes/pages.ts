import type { PAGE_SURFACES } from "@agent-relay/shared/contract/surfaces/pages.ts";
import type { Handlers } from "@agent-relay/shared/http/router.ts";
import { ASSETS, type PageSettings, renderPages } from "../pages/render.ts";

type PageRoutes = Pick<Handlers<"gateway">, keyof typeof PAGE_SURFACES>;

/**
 * Wider than that of all other answers by two words: scripts and reads, both of this origin only. A text that were to
 * become markup after all is refused by the browser (trusted types).
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
/** Scripts stay no-store as everything does. Source: protocol, section 9. */
const CACHED = "public, max-age=86400";

interface Answer {
  set(name: string, value: string): void;
}

/** The pages for people, and what they are drawn with. */
export function pageRoutes({ settings }: { readonly settings: PageSettings }): PageRoutes {
  const pages = renderPages(settings);
  const page = (html: string) => (ctx: Answer) => {
    ctx.set("Content-Security-Policy", PAGE_POLICY);
    return html;
  };
  const cached = (text: string) => (ctx: Answer) => {
    ctx.set("Cache-Control", CACHED);
    return text;
  };
  return {
    home: page(pages.home),
    productDesign: page(pages.productDesign),
    pageStyle: cached(ASSETS.pageStyle),
    homeStyle: cached(ASSETS.homeStyle),
    designStyle: cached(ASSETS.designStyle),
    favicon: cached(ASSETS.favicon),
    homeScript: () => ASSETS.homeScript,
    figuresScript: () => ASSETS.figuresScript,
  };
}
