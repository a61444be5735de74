import type { Surface } from "relay-protocol/contract/surface.ts";
import { FEEDBACK_REACH } from "../api/feedback.ts";
import { contactOf } from "../settings.ts";
import type { DiscoverySettings } from "./relay-description.ts";
import { CATALOGUE, isPlainRead, urlOf } from "./relay-description.ts";

const DAY_MS = 86_400_000;
const SECURITY_TEXT_LIFE_MS = 180 * DAY_MS;

/** These two are for crawlers only; probes are left out because they are not counted as traffic. */
const NOT_IN_SITEMAP: readonly string[] = ["robots", "sitemap"];

/**
 * RFC 9116 requires a Contact: without RELAY_CONTACT it is the feedback, and the text says what that reaches.
 * @param now Unix ms; the text expires half a year later.
 */
export function securityText({ baseUrl, contact }: DiscoverySettings, now: number): string {
  const expires = new Date(now + SECURITY_TEXT_LIFE_MS).toISOString().replace(/\.\d{3}Z$/, "Z");
  return [
    `# ${contactOf(contact).note}`,
    `# POST ${urlOf(baseUrl, "submitFeedback")}: ${FEEDBACK_REACH}`,
    "# Secrets must not be submitted there: no API keys, private keys, signatures, tokens or personal data.",
    ...(contact === undefined ? ["# RFC 9116 requires a Contact. This one is that counter, and no person:"] : []),
    `Contact: ${contact ?? urlOf(baseUrl, "submitFeedback")}`,
    `Expires: ${expires}`,
    "Preferred-Languages: en",
    `Canonical: ${urlOf(baseUrl, "securityText")}`,
    "",
  ].join("\n");
}

/** Everything may be read; the sitemap lists what to index. Source: RFC 9309. */
export function robotsText({ baseUrl }: DiscoverySettings): string {
  return `User-agent: *\nAllow: /\n\nSitemap: ${urlOf(baseUrl, "sitemap")}\n`;
}

/** Surfaces that count as traffic, and the list of packages, which does not count but is for people. */
function isListed(id: string, { traffic }: Surface): boolean {
  return (traffic || id === "connectors") && !NOT_IN_SITEMAP.includes(id);
}

/** Every page and document that can be read without parameters. Source: sitemaps.org, protocol 0.9. */
export function sitemapXml({ baseUrl }: DiscoverySettings): string {
  const listed = CATALOGUE.filter(([id, surface]) => isPlainRead(surface) && isListed(id, surface));
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
