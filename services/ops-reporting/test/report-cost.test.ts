import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { CATEGORIES, SENTIMENTS } from "relay-protocol/contract/requests.ts";
import { SURFACES, type SurfaceId } from "relay-protocol/contract/surfaces.ts";
import { PRESENCE_LIMITS, REPORT_LIMITS, SESSION_LIMITS, WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import { surfacesOf } from "relay-runtime/http/router.ts";
import { HttpServer } from "relay-runtime/http/server.ts";
import { createLogger } from "relay-runtime/logging.ts";
import { Acceptor } from "relay-window/acceptance/acceptor.ts";
import { addFeedback, Counters } from "relay-window/counters/counters.ts";
import { JourneysCopy } from "relay-window/counters/journeys.ts";
import { readSnapshot } from "relay-window/counters/snapshot.ts";
import { PresenceStore } from "relay-window/presence/presence.ts";
import { RedisLink } from "relay-window/redis/redis-link.ts";
import { ProcessWindow } from "relay-window/window/process-window.ts";
import { type Link, RedisProxy } from "../../../test/support/redis-proxy.ts";
import { TestRedis } from "../../../test/support/test-redis.ts";
import { waitForAnswers } from "../../../test/support/use.ts";
import { WindowView, windowKeysIn } from "../../../test/support/window-view.ts";
import { createOpsReporting } from "../src/service.ts";
import { readOpsReportingSettings } from "../src/settings.ts";

/** What Redis sends at most for a report; the journeys of a full window, which a service reads once, are far more. */
const FIGURES_BYTES = 20_000;
const WITH_JOURNEYS: readonly SurfaceId[] = ["trafficDaily", "sessionJourneys"];
const LONGEST_NAME = "x".repeat(61);
const FEW = 1000;
const MANY = 100_000;
const GROWTH = 1.2;
/** What two medians of the same read differ by on a busy machine. */
const NOISE_MS = 0.2;
const ROUNDS = 21;
/** A neighbour's load passes; growth with the rows does not. */
const ATTEMPTS = 5;

const { offlineAfterMs } = PRESENCE_LIMITS;
const { proofFreshnessMs } = SESSION_LIMITS;
const logger = createLogger({ service: "test", level: "silent" });
const reports = surfacesOf("ops-reporting").filter((id) => SURFACES[id].group !== "probes");

waitForAnswers();

/** Counts the bytes that Redis sends. */
class MeteredProxy extends RedisProxy {
  bytes = 0;

  protected override said(link: Link, chunk: Buffer): void {
    this.bytes += chunk.length;
    super.said(link, chunk);
  }
}

/** A Redis with a window in it. */
class FilledRedis {
  readonly redis = new TestRedis();
  link!: RedisLink;
  window!: ProcessWindow;

  async start(): Promise<void> {
    await this.redis.start();
    this.link = new RedisLink({ url: this.redis.url, name: "test", logger });
    this.window = new ProcessWindow({ link: this.link, partitions: 1, deployId: "local", logger });
    await this.link.start();
  }

  async stop(): Promise<void> {
    await this.link.stop();
    await this.redis.stop();
  }

  /** Agents last seen over the last day, a tenth of them connected. Over a client that waits: the link fails after 450 ms. */
  async seeAgents(agents: number): Promise<void> {
    const view = new WindowView(this.redis.adminClient());
    const { presence, online } = await view.keys();
    const now = Date.now();
    for (let from = 0; from < agents; from += 1000) {
      const rows = Array.from({ length: 1000 }, (_, n) => [
        now - (from + n) * (80_000_000 / agents),
        `agent://a${from + n}`,
      ]);
      await view.client.zadd(presence, ...rows.flat());
      await view.client.zadd(online, ...rows.slice(0, 100).flat());
    }
    view.stop();
  }
}

describe("a report of a full window", () => {
  const full = new FilledRedis();
  let proxy: MeteredProxy;

  beforeAll(async () => {
    await full.start();
    await fillWindow(full);
    proxy = (await new MeteredProxy(full.redis.url).start()) as MeteredProxy;
  });
  afterAll(async () => {
    await proxy.stop();
    await full.stop();
  });

  test("is of a window that holds no more than this one", async () => {
    const { proofs, surfaces, minutes } = await readSnapshot(full.link, full.window);
    expect({ proofs: proofs.length, minutes: minutes.size }).toEqual({
      proofs: SESSION_LIMITS.retainedProofs,
      minutes: WINDOW_LIMITS.minutes,
    });
    expect(surfaces.size).toBe(Object.keys(SURFACES).length);
    const journeys = await new JourneysCopy(full.link, full.window).read();
    expect(journeys.length).toBe(WINDOW_LIMITS.journeys);
    expect(journeys.every(({ actions }) => actions.length === WINDOW_LIMITS.actionsPerJourney)).toBe(true);
  });

  test.each(reports)("%s has Redis send what it needs, and only then the journeys", async (id) => {
    const [bytes] = await bytesFor(id, proxy);
    if (WITH_JOURNEYS.includes(id)) expect(bytes).toBeGreaterThan(10 * FIGURES_BYTES);
    else expect(bytes).toBeLessThan(FIGURES_BYTES);
  });

  test.each(WITH_JOURNEYS)("%s has Redis send the journeys once, and then what was added to them", async (id) => {
    for (const bytes of (await bytesFor(id, proxy, 4)).slice(1)) expect(bytes).toBeLessThan(FIGURES_BYTES);
  });
});

describe("what reports read", () => {
  const few = new FilledRedis();
  const many = new FilledRedis();

  beforeAll(async () => {
    await Promise.all([few.start(), many.start()]);
    await Promise.all([few.seeAgents(FEW), many.seeAgents(MANY)]);
    expect(await many.link.command("ZCARD", many.window.current.keys.partition(0).presence)).toBe(MANY);
  });
  afterAll(() => Promise.all([few.stop(), many.stop()]));

  test("takes no longer with 100,000 agents than with 1,000", async () => {
    let [ofFew, ofMany] = await medians(few, many);
    for (let attempt = 1; attempt < ATTEMPTS && ofMany > ofFew * GROWTH + NOISE_MS; attempt += 1) {
      [ofFew, ofMany] = await medians(few, many);
    }
    expect(ofMany).toBeLessThanOrEqual(ofFew * GROWTH + NOISE_MS);
  });
});

/** Bytes that Redis sends for each of so many reports of a service that has just started, each of them read anew. */
async function bytesFor(id: SurfaceId, proxy: MeteredProxy, reports = 1): Promise<number[]> {
  const service = createOpsReporting(readOpsReportingSettings({ REDIS_URL: proxy.url }), { logger });
  const server = new HttpServer({ handler: service.handler, host: "127.0.0.1", port: 0, logger });
  await service.start();
  await server.start();
  try {
    const sent: number[] = [];
    for (let n = 0; n < reports; n += 1) {
      if (n > 0) await delay(REPORT_LIMITS.keptReadMs);
      const before = proxy.bytes;
      const answer = await fetch(`http://127.0.0.1:${server.port}${SURFACES[id].path}`);
      expect(answer.status).toBe(200);
      sent.push(proxy.bytes - before);
    }
    return sent;
  } finally {
    await server.stop();
    await service.stop();
  }
}

/** A window in which every bound is reached, with the longest agent ids that there are. */
async function fillWindow({ link, window }: FilledRedis): Promise<void> {
  const counters = new Counters({ link, window });
  for (const surface of Object.keys(SURFACES) as SurfaceId[]) counters.view(surface, "visitor-0");
  for (let visitor = 0; visitor < WINDOW_LIMITS.journeys; visitor += 1) {
    for (let n = 0; n < WINDOW_LIMITS.actionsPerJourney; n += 1) counters.view("checkOnline", `visitor-${visitor}`);
  }
  await counters.flush();
  for (const surface of Object.keys(SURFACES)) await addFeedback(link, window, { surface, message: "text" });
  for (const category of CATEGORIES) await addFeedback(link, window, { category });
  for (const sentiment of SENTIMENTS) await addFeedback(link, window, { sentiment });
  const minute = Math.floor(Date.now() / 60_000);
  const minutes = Array.from({ length: WINDOW_LIMITS.minutes }, (_, n) => [
    `${minute - n + 1} websocket_accepted`,
    1_000_000,
  ]);
  await link.command("HSET", (await windowKeysIn(link.client)).partition(0).published, ...minutes.flat());
  const acceptor = new Acceptor({ link, window, pod: "test", offlineAfterMs, proofFreshnessMs, logger });
  for (let n = 0; n < SESSION_LIMITS.retainedProofs; n += 1) await requestSession(acceptor, n);
}

async function requestSession(acceptor: Acceptor, n: number): Promise<void> {
  const envelope = {
    id: `request-${n}`,
    type: "session.request",
    from: `agent://a${LONGEST_NAME}b`,
    to: `agent://b${LONGEST_NAME}c`,
    payload: { purpose: "p" },
    ts: Date.now(),
    key_id: "gateway-test",
  };
  const about = {
    kind: "session_request",
    text: "{}",
    origin: "gateway",
    principal: "api:test",
    connection: "",
  } as const;
  const item = { envelope, ...about };
  await new Promise((done) => acceptor.accept({ ...item, done }));
}

/** Milliseconds of the reads that reports make, with few agents and with many by turns: both meet the same load. */
async function medians(few: FilledRedis, many: FilledRedis): Promise<[few: number, many: number]> {
  const times = { few: [] as number[], many: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    times.few.push(await timeReads(few));
    times.many.push(await timeReads(many));
  }
  return [median(times.few), median(times.many)];
}

async function timeReads({ link, window }: FilledRedis): Promise<number> {
  const presenceStore = new PresenceStore({ link, window, offlineAfterMs });
  const startedAt = performance.now();
  await Promise.all([readSnapshot(link, window), presenceStore.count(), new JourneysCopy(link, window).read()]);
  return performance.now() - startedAt;
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] as number;
}
