import { describe, expect, test } from "@jest/globals";
import { PAGE_SURFACES, SURFACES } from "relay-protocol/contract/surfaces.ts";
import { renderPages } from "../src/pages/pages.ts";
import { useGateway, useGatewayKit } from "./kit.ts";

const PATHS = Object.values(SURFACES).map(({ path }): string => path);
const SETTINGS = {
  baseUrl: "https://relay.example",
  wsUrl: "wss://relay.example",
  alternateWsPath: "/relay",
  offlineAfterMs: 300_000,
};

describe("The pages", () => {
  test("are filled in to the last name", () => {
    for (const page of Object.values(renderPages(SETTINGS))) expect(page).not.toMatch(/\{\{|undefined|NaN/);
  });

  test("show the relay's own addresses, and its limits", () => {
    const { home } = renderPages(SETTINGS);
    expect(home).toContain("wss://relay.example/ws\nwss://relay.example/relay");
    expect(home).toContain("curl -X POST https://relay.example/v1/messages/send");
    expect(home).toContain("15&nbsp;s");
  });

  test("tell of credentials: who vouches, what recipients check, what is sealed, what proves a session, and what ends them", () => {
    const { productDesign } = renderPages(SETTINGS);
    const sectionOf = (id: string) => productDesign.split(`<h2 id="${id}">`)[1]?.split("</section>")[0] ?? "";
    expect(productDesign).toContain('<a href="#credentials">');
    for (const word of [
      "issuer",
      "90&nbsp;days",
      "recipient",
      "HPKE",
      "receipt",
      "/.well-known/signing-manifest.json",
    ]) {
      expect(sectionOf("credentials")).toContain(word);
    }
    expect(sectionOf("faults")).toContain("A credential ends or is revoked");
    expect(sectionOf("privacy")).toContain("credentials of an agent");
  });

  test("claim of signatures what is so: none of an envelope is kept, that of a credential is", () => {
    const pages = Object.values(renderPages(SETTINGS)).join();
    expect(pages).toMatch(/API key, envelope signature or feedback text is kept/);
    expect(pages).toMatch(/<li>API keys and envelope signatures<\/li>/);
  });

  test("lead people to the packages that the relay hands out", () => {
    for (const page of Object.values(renderPages(SETTINGS))) expect(page).toContain('href="/connectors"');
  });

  test("escape what the settings say", () => {
    const { home } = renderPages({ ...SETTINGS, baseUrl: "https://relay.example/a<script>b\"'&" });
    expect(home).not.toContain("a<script>");
    expect(home).toContain("https://relay.example/a&#60;script&#62;b&#34;&#39;&#38;/v1/messages/send");
  });

  test("link within the site without a host, below the path of the base address", () => {
    const { home, productDesign } = renderPages({ ...SETTINGS, baseUrl: "https://relay.example/below" });
    for (const page of [home, productDesign]) {
      const targets = [...page.matchAll(/ (?:href|src)="([^"]+)"/g)].map(([, target = ""]) => target);
      const local = targets.filter((target) => !target.startsWith("#") && !target.startsWith("https://relay.example/"));
      expect(local.length).toBeGreaterThan(8);
      expect(local.filter((target) => !target.startsWith("/below/"))).toEqual([]);
    }
  });
});

describe("Below a path prefix", () => {
  const gateway = useGateway(useGatewayKit(), { RELAY_BASE_URL: "https://relay.example:8443/below" });

  test.each(["/", "/product/design"])("the links of %s lead to the relay, opened at its own port too", async (path) => {
    for (const link of await linksOf(gateway.url + path)) {
      const { origin, pathname } = new URL(link, gateway.url + path);
      expect([link, origin, PATHS.includes(pathname)]).toEqual([link, gateway.url, true]);
    }
  });

  test.each(["relay.example:8443", "relay.example", "Relay.example:8443, inner:8080"])(
    "the links go by the prefix, which may have no slash at its end, where a proxy says that the client asked at %s",
    async (host) => {
      const links = await linksOf(`${gateway.url}/`, { "X-Forwarded-Host": host });
      expect(links.filter((link) => !link.startsWith("/below/"))).toEqual([]);
    },
  );

  /** Those within the site. */
  async function linksOf(url: string, headers: Record<string, string> = {}): Promise<string[]> {
    const html = await (await fetch(url, { headers })).text();
    const targets = [...html.matchAll(/ (?:href|src)="([^"#]+)/g)].map(([, target = ""]) => target);
    const links = targets.filter((target) => !target.startsWith("https://relay.example:8443/"));
    expect(links.length).toBeGreaterThan(8);
    return links;
  }
});

describe("Over HTTP", () => {
  const gateway = useGateway(useGatewayKit());

  test("pages and their files have the type that they declare", async () => {
    for (const { path, media } of Object.values(PAGE_SURFACES)) {
      const { status, headers } = await fetch(gateway.url + path);
      expect({ path, status, type: headers.get("content-type")?.split(";")[0] }).toEqual({
        path,
        status: 200,
        type: media,
      });
    }
  });

  test("styles and the icon may be kept, pages and scripts may not", async () => {
    const cacheOf = async (path: string) => (await fetch(gateway.url + path)).headers.get("cache-control");
    for (const { path, media } of Object.values(PAGE_SURFACES)) {
      const mayBeKept = media === "text/css" || media === "image/svg+xml";
      expect([path, await cacheOf(path)]).toEqual([path, mayBeKept ? "public, max-age=86400" : "no-store"]);
    }
  });

  test("pages may run scripts and read from their own origin only, and nothing inline; other answers may do neither", async () => {
    const policyOf = async (path: string) => (await fetch(gateway.url + path)).headers.get("content-security-policy");
    for (const path of ["/", "/product/design"]) {
      const policy = await policyOf(path);
      expect(policy).toContain("default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self';");
      expect(policy).toContain("require-trusted-types-for 'script'");
      expect(policy).not.toMatch(/unsafe|nonce|sha256/);
      const html = await (await fetch(gateway.url + path)).text();
      expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/);
    }
    expect(await policyOf("/health")).not.toContain("script-src");
  });
});
