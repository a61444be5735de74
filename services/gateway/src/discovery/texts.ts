import type { DiscoverySettings } from "./about.ts";
import { CATALOGUE, isPlainRead, urlOf } from "./links.ts";

const DAY_MS = 86_400_000;
const SECURITY_TEXT_LIFE_MS = 180 * DAY_MS;

/** What is no page: probes change by the second, and robots.txt and the map itself are for crawlers only. */
const NOT_IN_SITEMAP: readonly string[] = ["robots", "sitemap"];

/** Source: RFC 9116. @param now epoch ms; the text expires half a year later. */
export function securityText({ baseUrl }: DiscoverySettings, now: number): string {
  const expires = new Date(now + SECURITY_TEXT_LIFE_MS).toISOString().replace(/\.\d{3}Z$/, "Z");
  return [
    "# Reports that hold nothing sensitive: POST them as JSON to the contact below. Only counts of categories are kept,",
    "# so name a category; the text itself is never stored.",
    "# Secrets must not be submitted: no API keys, private keys, signatures, tokens or personal data.",
    `Contact: ${urlOf(baseUrl, "submitFeedback")}`,
    `Expires: ${expires}`,
    "Preferred-Languages: en",
    `Canonical: ${urlOf(baseUrl, "securityText")}`,
    "",
  ].join("\n");
}

/** Everything may be read; what crawlers should come for is in the map. Source: RFC 9309. */
export function robotsText({ baseUrl }: DiscoverySettings): string {
  return `User-agent: *\nAllow: /\n\nSitemap: ${urlOf(baseUrl, "sitemap")}\n`;
}

/** Every page and document that can be read by its address. Source: sitemaps.org, protocol 0.9. */
export function sitemapXml({ baseUrl }: DiscoverySettings): string {
  const listed = CATALOGUE.filter(
    ([id, surface]) => isPlainRead(surface) && surface.traffic && !NOT_IN_SITEMAP.includes(id),
  );
  const urls = listed.map(([, { path }]) => `  <url><loc>${escapeXml(baseUrl + path)}</loc></url>`);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
    ...urls,
    "</urlset>",
    "",
  ].join("\n");
}

function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
