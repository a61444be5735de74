import { describe, expect, test } from "@jest/globals";
import { BROWSER_OPENS_WITHIN_MS, openBrowser, Visit } from "../support/browser.ts";
import { given, useRelay } from "../support/use-relay.ts";

const PAGES = ["/", "/product/design"];
const relay = useRelay();
const pod = given(() => relay.startWhole());
const browser = given(() => openBrowser(relay), BROWSER_OPENS_WITHIN_MS);

describe.each(PAGES)("The page %s", (path) => {
  test.each([320, 375, 768, 1280])("fits a window %i pixels wide without scrolling sideways", async (width) => {
    await using visit = await Visit.to(browser, pod.url + path, { viewport: { width, height: 800 } });
    if (path === "/") await visit.drawn();
    expect(await visit.page.evaluate("document.documentElement.scrollWidth")).toBe(width);
    expect(visit.faults).toEqual([]);
  });

  test.each(["light", "dark"] as const)("can be read in %s: text stands out from its ground", async (colorScheme) => {
    await using visit = await Visit.to(browser, pod.url + path, { colorScheme });
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
    await using visit = await Visit.to(browser, pod.url + path, { javaScriptEnabled: false });
    const text = await visit.page.locator("main").textContent();
    expect(text?.length).toBeGreaterThan(800);
    expect(await visit.page.locator("main a[href]").count()).toBeGreaterThan(1);
    expect(visit.faults).toEqual([]);
  });

  test("has one heading of the first order, landmarks, a language, and a name for every link and picture", async () => {
    await using visit = await Visit.to(browser, pod.url + path);
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
    await using visit = await Visit.to(browser, pod.url + path);
    const { page } = visit;
    await page.keyboard.press("Tab");
    const focused = "document.activeElement";
    expect(await page.evaluate(`${focused}.className`)).toBe("skip");
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
    const html = await (await fetch(pod.url + path)).text();
    const targets = [...html.matchAll(/ (?:href|src)="([^"#]+)/g)].map(([, target = ""]) => target);
    expect(targets.length).toBeGreaterThan(8);
    for (const target of new Set(targets)) {
      const { status } = await fetch(new URL(target, pod.url));
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
