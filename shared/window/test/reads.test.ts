import { afterAll, afterEach, beforeEach, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS, SESSION_LIMITS } from "protocol/contract/limits.ts";
import { readCredentials } from "../src/credentials.ts";
import { PresenceStore } from "../src/presence.ts";
import { resetWindow } from "../src/reset.ts";
import { readSession } from "../src/sessions.ts";
import { readTarget } from "../src/targets.ts";
import { Bench, type Pod } from "./kit.ts";

const BOB = "agent://bob";
const { offlineAfterMs } = PRESENCE_LIMITS;
const bench = new Bench();
let writer: Pod;
/** Knows the window that is replaced in each test, and writes nothing. */
let reader: Pod;

beforeEach(async () => {
  await bench.open();
  writer = await bench.pod();
  reader = await bench.pod({ pod: "pod-b" });
  await bench.ear("pod-a");
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

const REPLACEMENTS: readonly (readonly [string, () => Promise<unknown>])[] = [
  ["was reset", () => resetWindow(writer.link, { partitions: 1, deployId: "deploy-1", force: true })],
  ["was lost", () => bench.client.flushall()],
];

test.each(REPLACEMENTS)(
  "who reads of a window that %s meanwhile is told of the one that is open",
  async (_, replace) => {
    await writer.register(BOB);
    await replace();
    await writer.register("agent://alice");
    const { sessionId } = await writer.request("agent://alice", "agent://alice");
    const { link, window } = reader;
    const presence = new PresenceStore({ link, window, offlineAfterMs });
    const { proofFreshnessMs } = SESSION_LIMITS;
    expect(await presence.read("agent://alice")).toMatchObject({ status: "online" });

    await replace();
    await writer.register(BOB);
    const target = await readTarget(
      link,
      window,
      { agent: BOB, sessionId: null },
      { offlineAfterMs, proofFreshnessMs },
    );
    expect(target.presence).toMatchObject({ status: "online" });
    await replace();
    expect(await readSession(link, window, sessionId as string)).toBeNull();
    expect(await readCredentials(link, window, BOB)).toEqual([]);
    expect(await presence.count()).toEqual({ ok: 0, stale: 0, critical_stale: 0, offline: 0, missing: [] });
  },
);

test("who reads of the window that it knows asks once", async () => {
  await writer.register(BOB);
  await bench.client.config("RESETSTAT");
  const { link, window } = reader;
  expect(await new PresenceStore({ link, window, offlineAfterMs }).read(BOB)).toMatchObject({ status: "online" });
  expect((await bench.commandCalls()).evalsha).toBe(1);
});
