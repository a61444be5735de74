import { WINDOW_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { SURFACES, type SurfaceId } from "@agent-relay/shared/contract/surfaces.ts";
import { surfacesOf } from "@agent-relay/shared/http/router.ts";
import { HttpServer } from "@agent-relay/shared/http/server.ts";
import { createLogger } from "@agent-relay/shared/logging.ts";
import { Counters } from "@agent-relay/shared/window/counters.ts";
import { partitionKeys } from "@agent-relay/shared/window/keys.ts";
import { ProcessWindow } from "@agent-relay/shared/window/process-window.ts";
import { RedisLink } from "@agent-relay/shared/window/redis-link.ts";
import { readSnapshot } from "@agent-relay/shared/window/snapshot.ts";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Redis } from "ioredis";
import { TestRedis } from "../../../test/support/test-redis.ts";
import { createOpsReporting } from "../src/service.ts";
import { readOpsReportingSettings } from "../src/settings.ts";

const MEDIAN_MS = 50;
const GROWTH = 1.2;
/** What two medians of the same thing differ by on a busy machine. */
const NOISE_MS = 1;
const ROUNDS = 21;
/** A neighbour's load passes; growth with the rows does not. */
const ATTEMPTS = 5;

const logger = createLogger({ service: "test", level: "silent" });
const reports = surfacesOf("ops-reporting").filter((id) => SURFACES[id].group !== "probes");
let few: FilledRelay;
let many: FilledRelay;

beforeAll(async () => {
  [few, many] = await Promise.all([FilledRelay.start(1000), FilledRelay.start(100_000)]);
});
afterAll(() => Promise.all([few, many].map((relay) => relay.stop())));

test("the windows are as full as they get", async () => {
  for (const [relay, agents] of [
    [few, 1000],
    [many, 100_000],
  ] as const) {
    const { journeys } = await readSnapshot(relay.link, 1);
    expect(journeys.length).toBe(WINDOW_LIMITS.journeys);
    expect(journeys.every(({ actions }) => actions.length === WINDOW_LIMITS.actionsPerJourney)).toBe(true);
    expect(await relay.link.command("ZCARD", partitionKeys.presence(0))).toBe(agents);
  }
  expect(reports.length).toBeGreaterThan(3);
});

describe.each(reports)("%s", (id) => {
  test("answers soon, and no later with 100,000 agents than with 1,000", async () => {
    let [ofFew, ofMany, limit] = [0, 0, 0];
    for (let attempt = 0; attempt < ATTEMPTS && ofMany >= limit; attempt += 1) {
      [ofFew, ofMany] = await medians(id);
      limit = Math.min(MEDIAN_MS, ofFew * GROWTH + NOISE_MS);
    }
    expect(ofMany).toBeLessThan(limit);
  });
});

/** With few agents and with many, by turns, so that both meet the same load of the machine. */
async function medians(id: SurfaceId): Promise<[few: number, many: number]> {
  const times = { few: [] as number[], many: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    times.few.push(await few.time(id));
    times.many.push(await many.time(id));
  }
  return [median(times.few), median(times.many)];
}

/** Ops-reporting over a window with so many agents, and with all journeys that it holds. */
class FilledRelay {
  readonly link: RedisLink;
  readonly #url: string;
  readonly stop: () => Promise<void>;

  private constructor(link: RedisLink, url: string, stop: () => Promise<void>) {
    this.link = link;
    this.#url = url;
    this.stop = stop;
  }

  static async start(agents: number): Promise<FilledRelay> {
    const redis = new TestRedis();
    await redis.start();
    const link = new RedisLink({ url: redis.url, name: "test", logger });
    const window = new ProcessWindow({ link, partitions: 1, deployId: "local", logger });
    await link.start();
    await seeAgents(redis.path, agents);
    await fillJourneys(new Counters({ link, window }));
    const service = createOpsReporting(readOpsReportingSettings({ REDIS_URL: redis.url }), { logger });
    const server = new HttpServer({ handler: service.handler, host: "127.0.0.1", port: 0, logger });
    await service.start();
    await server.start();
    return new FilledRelay(link, `http://127.0.0.1:${server.port}`, async () => {
      await server.stop();
      await service.stop();
      await link.stop();
      await redis.stop();
    });
  }

  /** Ms until a surface's whole answer is there. */
  async time(id: SurfaceId): Promise<number> {
    const startedAt = performance.now();
    const answer = await fetch(this.#url + SURFACES[id].path);
    await answer.arrayBuffer();
    expect(answer.status).toBe(200);
    return performance.now() - startedAt;
  }
}

/** Rows over the last day, a tenth of them connected. Over a client that waits: the relay's own gives up after 450 ms. */
async function seeAgents(path: string, agents: number): Promise<void> {
  const client = new Redis({ path, replyMapping: "legacy" });
  const now = Date.now();
  const rows = Array.from({ length: agents }, (_, n) => [now - Math.floor((n / agents) * 80_000_000), `agent://a${n}`]);
  for (let from = 0; from < agents; from += 1000) {
    const page = rows.slice(from, from + 1000);
    await client.call("ZADD", partitionKeys.presence(0), ...page.flat());
    const connected = page.slice(0, 100);
    await client.call("ZADD", partitionKeys.online(0), ...connected.flatMap(([, agent]) => [now, agent as string]));
  }
  client.disconnect();
}

async function fillJourneys(counters: Counters): Promise<void> {
  for (let visitor = 0; visitor < WINDOW_LIMITS.journeys; visitor += 1) {
    for (let n = 0; n < WINDOW_LIMITS.actionsPerJourney; n += 1) counters.view("checkOnline", `visitor-${visitor}`);
  }
  await counters.flush();
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] as number;
}
