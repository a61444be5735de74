import { describe, expect, test } from "@jest/globals";
import type { Page } from "playwright-core";
import { BROWSER_OPENS_WITHIN_MS, openBrowser, Visit } from "../support/browser.ts";
import { HttpClient } from "../support/http.ts";
import { given, useRelay } from "../support/use-relay.ts";

const HOSTILE = `<img src=x onerror="globalThis.hit=1"><script>globalThis.hit=1</script>"'>`;
const relay = useRelay("alice", "bob");
const http = new HttpClient();
const pod = given(() => relay.startWhole());
const browser = given(() => openBrowser(relay), BROWSER_OPENS_WITHIN_MS);

/** Answers of one report, in place of the relay's. */
async function report(page: Page, path: string, change: (body: Record<string, unknown>) => unknown): Promise<void> {
  await page.route(`**${path}`, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: change(await response.json()) });
  });
}

describe("The live window", () => {
  test("is drawn without an error or a violation of the policy, and asks nobody but the relay", async () => {
    await using visit = await Visit.to(browser, `${pod.url}/`);
    await visit.drawn();
    expect(visit.faults).toEqual([]);
    expect(visit.requested.filter((url) => new URL(url).origin !== pod.url)).toEqual([]);
    expect(await visit.page.locator("#state").textContent()).toMatch(/^Live: everything since \d{4}-.* UTC$/);
  });

  test("follows an agent that registers, a message and a session request, by itself", async () => {
    await using visit = await Visit.to(browser, `${pod.url}/`);
    await visit.says("agents", /^Agents: 0 online/);
    await visit.says("freshness", /no proof yet/);
    const alice = await relay.online(pod, "alice");
    await relay.online(pod, "bob");
    await alice.ask(relay.envelope("alice", "message.send", { to: "agent://bob" }));
    await alice.ask(relay.envelope("alice", "session.request", { to: "agent://bob", payload: { purpose: "talk" } }));
    const request = { from: "agent://alice", to: "agent://bob", purpose: "to see it on a page" };
    const answer = await http.post(`${pod.url}/v1/sessions/request`, request, relay.credentials("alice"));
    expect(answer.body.target_delivery.status).toBe("online");
    await visit.readsAgain();
    await visit.says("agents", /^Agents: 2 online, 0 stale/);
    await visit.says("minutes", /: 3 in the last hour/);
    await visit.says("funnel", /connector onboarding 2, message delivery 1, session negotiation 2/);
    await visit.says("freshness", /^Session proof: 2:59:\d\d until it is due/);
    const totals = await visit.page.locator("#totals dd").allTextContents();
    // Published, accepted from websockets, sessions requested, of them to online targets.
    expect(totals.slice(0, 4)).toEqual(["3", expect.any(String), "2", "2"]);
    expect(visit.faults).toEqual([]);
  }, 40_000);

  test("runs the proof down second by second, and says when it is overdue", async () => {
    const nearlyDue = (body: object) => ({ ...body, proof_freshness: "fresh", ms_until_refresh_due: 1500 });
    await using visit = await Visit.to(browser, `${pod.url}/`, {}, (page) =>
      report(page, "/api/ops/session-proof-retention", nearlyDue),
    );
    await visit.says("freshness", /0:00:01 until it is due/);
    await visit.says("freshness", /overdue/);
  });

  test("keeps and dims what no longer answers, says so, and takes it up again", async () => {
    await using visit = await Visit.to(browser, `${pod.url}/`);
    await visit.drawn();
    await visit.page.route("**/api/ops/activation-funnel", (route) => route.fulfill({ status: 503 }));
    await visit.readsAgain();
    const late = visit.page.locator("#state.late", { hasText: "1 of 4" });
    await late.waitFor({ timeout: 12_000 });
    expect(await visit.figure("funnel").count()).toBe(1);
    await visit.page.unrouteAll();
    await visit.readsAgain();
    await visit.page.locator("#state:not(.late)").waitFor();
    expect(await visit.page.locator("#funnel.late").count()).toBe(0);
  });
});

describe("A report that is not complete", () => {
  test.each([
    ["while partitions are missing", { missing: [3, 4], may_lack: [] }, /2 of 12/],
    ["once something was lost", { missing: [], may_lack: [3] }, /2026-01-31 14:05 UTC$/],
  ])("%s is said to be in a sentence", async (_, lacks, sentence) => {
    const changes = {
      complete: false,
      may_lack_since: Date.UTC(2026, 0, 31, 14, 5),
      partitions: { total: 12, control_may_lack: false, ...lacks },
    };
    await using visit = await Visit.to(browser, `${pod.url}/`, {}, async (page) => {
      await report(page, "/api/ops/traffic-daily", (body) => ({ ...body, ...changes }));
    });
    await visit.page.locator("#state", { hasText: sentence }).waitFor();
  });
});

describe("What others wrote", () => {
  test("is never taken for markup, whatever a report says", async () => {
    const paths = [
      "onboarding/online-agents",
      "ops/traffic-daily",
      "ops/activation-funnel",
      "ops/session-proof-retention",
    ];
    await using visit = await Visit.to(browser, `${pod.url}/`, {}, async (page) => {
      for (const path of paths) await report(page, `/api/${path}`, hostile);
    });
    await visit.page.locator("#agents figcaption", { hasText: "<img src=x" }).waitFor();
    await visit.page.locator("#freshness figcaption", { hasText: "<script>" }).waitFor();
    await visit.page.locator("#funnel text", { hasText: "<script>" }).first().waitFor();
    expect(await visit.page.evaluate("globalThis.hit")).toBeUndefined();
    expect(await visit.page.locator("main img, main script").count()).toBe(0);
  });

  test("in feedback labels and agent ids does not reach the page", async () => {
    const labels = { surface: HOSTILE, sentiment: HOSTILE, category: HOSTILE, message: HOSTILE };
    expect((await http.post(`${pod.url}/api/public/feedback`, labels)).status).toBe(202);
    const alice = await relay.online(pod, "alice");
    expect((await alice.ask(relay.envelope("alice", "message.send", { to: `agent://${HOSTILE}` }))).frame).toBe(
      "error",
    );
    await using visit = await Visit.to(browser, `${pod.url}/`);
    await visit.says("funnel", /feedback 1\.$/);
    expect(await visit.page.evaluate("globalThis.hit")).toBeUndefined();
    expect(await visit.page.content()).not.toContain("onerror");
  });

  test("could not be made markup by mistake: the policy forbids it", async () => {
    await using visit = await Visit.to(browser, `${pod.url}/`);
    const refused = await visit.page.evaluate(
      "(() => { try { document.body.innerHTML = '<p>x</p>'; return false; } catch (error) { return error.name; } })()",
    );
    expect(refused).toBe("TypeError");
  });
});

/** Every text of a report made hostile; numbers stay. */
function hostile(value: unknown): unknown {
  if (typeof value === "string") return HOSTILE;
  if (Array.isArray(value)) return value.map(hostile);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, hostile(member)]));
}
