import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { browserProgram } from "../../deploy/local/browser-program.mjs";
import type { TestRelay } from "./relay.ts";

const ARGUMENTS = [
  ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
];

export const BROWSER_OPENS_WITHIN_MS = 60_000;

/** A browser that closes with the relay whose pages it shows. */
export async function openBrowser(relay: TestRelay): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: browserProgram(), args: ARGUMENTS });
  relay.defer(() => browser.close());
  return browser;
}

/** A page with all that went wrong on it: console errors (violations of the policy are such), exceptions, bad answers. */
export class Visit implements AsyncDisposable {
  readonly page: Page;
  readonly faults: string[] = [];
  readonly requested: string[] = [];

  private constructor(page: Page) {
    this.page = page;
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") this.faults.push(message.text());
    });
    page.on("pageerror", (error) => this.faults.push(error.message));
    page.on("requestfailed", (request) => this.faults.push(`${request.url()}: ${request.failure()?.errorText}`));
    page.on("request", (request) => this.requested.push(request.url()));
  }

  /** @param prepare is done before anything is loaded. */
  static async to(
    browser: Browser,
    url: string,
    options: BrowserContextOptions = {},
    prepare: (page: Page) => Promise<unknown> = async () => {},
  ): Promise<Visit> {
    const context = await browser.newContext(options);
    const visit = new Visit(await context.newPage());
    await visit.page.clock.install();
    await prepare(visit.page);
    await visit.page.goto(url);
    return visit;
  }

  /** Resolves when all four figures are drawn. */
  async drawn(): Promise<void> {
    for (const id of ["agents", "minutes", "funnel", "freshness"]) await this.figure(id).first().waitFor();
  }

  /** Lets the time pass after which the home page reads the reports again. */
  async readsAgain(): Promise<void> {
    await this.page.clock.fastForward(5000);
  }

  /** The picture of a figure. */
  figure(id: string) {
    return this.page.locator(`#${id} .picture svg[role=img]:not([aria-hidden])`);
  }

  /** Resolves when a figure's description matches. */
  async says(id: string, pattern: RegExp): Promise<void> {
    await this.page.locator(`#${id}`).getByRole("img", { name: pattern }).waitFor({ timeout: 12_000 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.page.context().close();
  }
}
