import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Browser } from "playwright-core";
import { createRelay } from "../../deploy/local/relay.ts";
import { openBrowser, Visit } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { TestRelay } from "../support/relay.ts";

const PAGES = ["/", "/product/design"];
const relay = new TestRelay();
let browser: Browser;
let base: string;
let stop: () => Promise<void>;

beforeAll(async () => {
  await relay.start();
  const port = String(await freePort());
  const { service } = createRelay({ ...relay.environment, PORT: port, LOG_LEVEL: "silent" }, () => {});
  await service.start();
  base = `http://127.0.0.1:${port}`;
  stop = service.stop;
  browser = await openBrowser();
}, 60_000);
afterAll(async () => {
  await browser.close();
  await stop();
  await relay.stop();
});

describe.each(PAGES)("The page %s", (path) => {
  test.each([320, 375, 768, 1280])("fits a window %i pixels wide without scrolling sideways", async (width) => {
    await using visit = await Visit.to(browser, base + path, { viewport: { width, height: 800 } });
    if (path === "/") await visit.drawn();
    expect(await visit.page.evaluate("document.documentElement.scrollWidth")).toBe(width);
    expect(visit.faults).toEqual([]);
  });

  test.each(["light", "dark"] as const)("can be read in %s: text stands out from its ground", async (colorScheme) => {
    await using visit = await Visit.to(browser, base + path, { colorScheme });
    if (path === "/") await visit.drawn();
    const ground = await visit.page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
    expect(luminance(ground) > 0.5).toBe(colorScheme === "light");
    const colors = await visit.page.evaluate<string[]>(
      "[...document.querySelectorAll('h1, h2, p, dd, dt, a, li, th, td, figcaption')].map((one) => getComputedStyle(one).color)",
    );
    expect(colors.length).toBeGreaterThan(20);
    for (const color of new Set(colors)) expect(contrast(color, ground)).toBeGreaterThan(4.5);
  });

  test("has its text and its links without scripts", async () => {
    await using visit = await Visit.to(browser, base + path, { javaScriptEnabled: false });
    const text = await visit.page.locator("main").textContent();
    expect(text?.length).toBeGreaterThan(800);
    expect(await visit.page.locator("main a[href]").count()).toBeGreaterThan(1);
    expect(visit.faults).toEqual([]);
  });

  test("has one heading of the first order, landmarks, a language, and a name for every link and picture", async () => {
    await using visit = await Visit.to(browser, base + path);
    if (path === "/") await visit.drawn();
    const { page } = visit;
    expect(await page.locator("html").getAttribute("lang")).toBe("en");
    for (const role of ["banner", "main", "contentinfo"] as const) expect(await page.getByRole(role).count()).toBe(1);
    expect(await page.getByRole("heading", { level: 1 }).count()).toBe(1);
    const links = page.getByRole("link");
    expect(await links.count()).toBe(await page.getByRole("link", { name: /\w/ }).count());
    expect(await page.getByRole("img").count()).toBe(await page.getByRole("img", { name: /\w/ }).count());
    expect(await page.getByRole("img").count()).toBeGreaterThan(0);
  });

  test("leads the keyboard first to its content, then through every link in order, visibly", async () => {
    await using visit = await Visit.to(browser, base + path);
    const { page } = visit;
    await page.keyboard.press("Tab");
    const focused = "document.activeElement";
    expect(await page.evaluate(`${focused}.textContent`)).toBe("To the content");
    expect(await page.evaluate<number>(`${focused}.getBoundingClientRect().left`)).toBeGreaterThanOrEqual(0);
    const links = await page.evaluate<string[]>(
      "[...document.querySelectorAll('body > :not(.skip) a')].map((a) => a.href)",
    );
    const met: string[] = [];
    while (met.length < links.length) {
      await page.keyboard.press("Tab");
      const href = await page.evaluate<string | undefined>(`${focused}.href`);
      if (href === undefined) continue;
      expect(await page.evaluate(`getComputedStyle(${focused}).outlineStyle`)).toBe("solid");
      met.push(href);
    }
    expect(met).toEqual(links);
  });

  test("links to nothing that is not there", async () => {
    const html = await (await fetch(base + path)).text();
    const targets = [...html.matchAll(/ (?:href|src)="([^"#]+)/g)].map(([, target = ""]) => target);
    expect(targets.length).toBeGreaterThan(8);
    for (const target of new Set(targets)) {
      const { status } = await fetch(new URL(target, base));
      expect({ target, status }).toEqual({ target, status: 200 });
    }
    const anchors = [...html.matchAll(new RegExp(` href="(?:${path})?#([^"]+)`, "g"))].map(([, id = ""]) => id);
    for (const id of anchors) expect(html).toContain(` id="${id}"`);
  });
});

/** Relative luminance of `rgb(r, g, b)`. Source: WCAG 2.2. */
function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = (color.match(/[\d.]+/g) ?? []).map((part) => {
    const value = Number(part) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [light = 0, dark = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}
