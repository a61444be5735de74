import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { WINDOW_LIMITS } from "protocol/contract/limits.ts";
import { Acceptor } from "../src/acceptance/acceptor.ts";
import { readSnapshot } from "../src/snapshot.ts";
import { envelopeOf, messageOf, requestOf } from "./envelopes.ts";
import { Bench, ClockedLink, LOGGER, Pod } from "./kit.ts";

const MINUTE_MS = 60_000;
const MINUTE = 29_833_333;
const bench = new Bench();
let pod: Pod;
let link: ClockedLink;

beforeEach(async () => {
  await bench.open();
  link = await ClockedLink.of(bench);
  const { window } = await bench.pod({ partitions: 2 });
  const acceptor = new Acceptor({
    link,
    window,
    pod: "p",
    offlineAfterMs: 300_000,
    proofFreshnessMs: 1000,
    logger: LOGGER,
  });
  pod = new Pod(link, window, acceptor);
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

const minutes = async () => Object.fromEntries((await readSnapshot(link, pod.window)).minutes);

/** Publishes messages to one agent in a minute. */
async function publish(minute: number, count = 1, to = "agent://bob"): Promise<void> {
  link.at = minute * MINUTE_MS;
  await pod.acceptAll(...Array.from({ length: count }, () => messageOf("agent://alice", to, { ts: link.at })));
}

describe("published envelopes by minute", () => {
  test("are exact, over partitions, and count what published_envelopes counts", async () => {
    await publish(MINUTE, 3);
    await publish(MINUTE, 2);
    const repeated = messageOf("agent://alice", "agent://bob", { ts: link.at });
    await pod.acceptAll(repeated, repeated, { ...envelopeOf("agent.register", "agent://bob"), ts: link.at });
    for (const to of ["agent://a1", "agent://a2", "agent://a3", "agent://a4"]) await publish(MINUTE + 1, 1, to);
    await pod.accept({ ...requestOf("agent://alice", "agent://bob"), ts: link.at });
    expect(await minutes()).toEqual({ [MINUTE]: 6, [MINUTE + 1]: 5 });
    expect((await readSnapshot(link, pod.window)).counters.get("published_envelopes")).toBe(11);
    for (const p of [0, 1]) expect(await bench.client.hlen((await bench.keys(p)).published)).toBeGreaterThan(0);
  });

  test("change from one minute to the next with its last millisecond", async () => {
    link.at = (MINUTE + 1) * MINUTE_MS - 1;
    await pod.accept(messageOf("agent://alice", "agent://bob", { ts: link.at }));
    link.at += 1;
    await pod.accept(messageOf("agent://alice", "agent://bob", { ts: link.at }));
    expect(await minutes()).toEqual({ [MINUTE]: 1, [MINUTE + 1]: 1 });
  });

  test("of the last 60 minutes are kept, and no others", async () => {
    for (let n = 0; n < 100; n += 1) await publish(MINUTE + n);
    const last60 = Array.from({ length: WINDOW_LIMITS.minutes }, (_, n) => String(MINUTE + 40 + n));
    const { counters } = await readSnapshot(link, pod.window);
    expect([counters.get("published_envelopes"), counters.get("websocket_accepted")]).toEqual([100, 100]);
    const kept = await Promise.all([0, 1].map(async (p) => bench.client.hkeys((await bench.keys(p)).published)));
    expect(kept.flat().sort()).toEqual(last60.map((minute) => `${minute} websocket_accepted`));
    expect(Object.keys(await minutes())).toEqual(last60);
  });

  test("fade from the snapshot while nothing is published", async () => {
    await publish(MINUTE);
    await publish(MINUTE + 30);
    link.at = (MINUTE + 60) * MINUTE_MS;
    expect(await minutes()).toEqual({ [MINUTE + 30]: 1 });
    link.at = (MINUTE + 90) * MINUTE_MS;
    expect(await minutes()).toEqual({});
  });

  test("are left alone by a batch that publishes nothing", async () => {
    await pod.accept({ ...envelopeOf("agent.register", "agent://bob"), ts: link.at });
    expect(await bench.client.exists((await bench.keys()).published, (await bench.keys(1)).published)).toBe(0);
  });
});
