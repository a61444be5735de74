import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "@jest/globals";
import { BROWSER_OPENS_WITHIN_MS, openBrowser, Visit } from "../support/browser.ts";
import { given, useRelay } from "../support/use-relay.ts";

const PREFIX = "/agents/relay";
const relay = useRelay();
/** Where the proxy passes requests on to: the relay has to know the address of the proxy before it has one itself. */
let upstream = "";
const proxy = given(async () => {
  const server = strippingProxy();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  relay.defer(async () => void server.close().closeAllConnections());
  return new URL(PREFIX, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
const pod = given(async () => {
  const whole = await relay.startWhole({ RELAY_BASE_URL: proxy.href });
  upstream = whole.url;
  return whole;
});
const browser = given(() => openBrowser(relay), BROWSER_OPENS_WITHIN_MS);

describe("A relay whose base address has a path prefix", () => {
  test.each([
    ["its home page", "below the prefix", () => `${proxy.href}/`],
    ["its home page", "at the prefix itself", () => proxy.href],
    ["its home page", "at a port of its own", () => `${pod.url}/`],
    ["its design page", "below the prefix", () => `${proxy.href}/product/design`],
    ["its design page", "at a port of its own", () => `${pod.url}/product/design`],
  ])("has all files, figures and links of %s, opened %s", async (page, _, addressOf) => {
    await using visit = await Visit.to(browser, addressOf());
    if (page === "its home page") await visit.drawn();
    expect(visit.faults).toEqual([]);
    const links = await visit.page.evaluate<string[]>(
      "[...document.querySelectorAll('a, link:not([rel=canonical])')].map((one) => one.href.split('#')[0])",
    );
    expect(links.length).toBeGreaterThan(8);
    for (const link of new Set(links)) {
      expect(link.startsWith(new URL(addressOf()).origin)).toBe(true);
      expect([link, (await fetch(link)).status]).toEqual([link, 200]);
    }
  });
});

/** Takes the prefix off before it passes a request on, and answers nothing beside the prefix. */
function strippingProxy(): Server {
  return createServer((req, res) => {
    const { url = "", method, headers } = req;
    if (!url.startsWith(PREFIX)) return void res.writeHead(404).end();
    const target = new URL(url.slice(PREFIX.length) || "/", upstream);
    const onward = request(target, { method, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    onward.on("error", () => res.destroy());
    req.pipe(onward);
  });
}
