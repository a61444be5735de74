import { afterAll, describe, expect, jest, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "protocol/contract/limits.ts";
import { CongestionMarks } from "../src/congestion.ts";
import { Counters } from "../src/counters.ts";
import { readCredentials } from "../src/credentials.ts";
import { addFeedback } from "../src/feedback.ts";
import { announceGatewayKey, readGatewayKeys } from "../src/gateway-keys.ts";
import { readJourneys } from "../src/journeys.ts";
import { PresenceStore } from "../src/presence.ts";
import { PrincipalShares } from "../src/principal-shares.ts";
import { ProcessWindow } from "../src/process-window.ts";
import { luaFile, SCRIPT_NAMES, SCRIPTS } from "../src/redis/scripts.ts";
import { resetWindow } from "../src/reset.ts";
import { RouteAsserter } from "../src/route-asserter.ts";
import { RouteReleaser } from "../src/routes.ts";
import { readSession } from "../src/sessions.ts";
import { readSnapshot } from "../src/snapshot.ts";
import { readTarget } from "../src/targets.ts";
import { decisionOf, requestOf } from "./envelopes.ts";
import { Bench, LOGGER } from "./kit.ts";
import { parseScript, withoutComments } from "./lua-file.ts";

/** The indexes that a body spells out: `KEYS[1]` gives 1. */
function indexes(body: string, table: "KEYS" | "ARGV"): number[] {
  const found = [...body.matchAll(new RegExp(`\\b${table}\\[(\\d+)\\]`, "g"))].map(([, index]) => Number(index));
  return [...new Set(found)].sort((a, b) => a - b);
}

const oneTo = (n: number) => Array.from({ length: n }, (_, index) => index + 1);

describe.each(SCRIPT_NAMES)("the script %s", (name) => {
  const file = parseScript(luaFile(name));
  const { keys, args } = file;
  const body = withoutComments(SCRIPTS[name].lua);

  test("uses the keys and arguments that its header numbers, all of them and no others", () => {
    expect(indexes(body, "KEYS")).toEqual(oneTo(keys.names.length));
    expect(indexes(body, "ARGV")).toEqual(oneTo(args.names.length));
    expect(/\bARGV\b/.test(body)).toBe(args.names.length > 0 || args.open);
  });

  test("names its keys and arguments as locals before it does anything", () => {
    const rest = file.body.trim().replace(/^(?:local [\w, ]+ = [^\n]*\b(?:KEYS|ARGV)\[\d+\][^\n]*\n)+/, "");
    expect([...indexes(rest, "KEYS"), ...indexes(rest, "ARGV")]).toEqual([]);
  });

  test("spells no key, and makes none but the channel of a pod", () => {
    expect(body).not.toMatch(/relay/);
    expect(body.replaceAll("'agent://'", "")).not.toMatch(/(['"])[^'"\n]*:[^'"\n]*\1/);
  });

  test("asks for nothing that grows with the number of keys", () => {
    const found = [...body.matchAll(/call\('(KEYS|SCAN|RANDOMKEY|DBSIZE|FLUSH\w+)'/g)].map(([, command]) => command);
    expect(found).toEqual(name === "reset_window" ? ["SCAN"] : []);
  });
});

describe("the callers", () => {
  const bench = new Bench();
  afterAll(async () => {
    await bench.clear();
    await bench.redis.stop();
  });

  test("give each script the keys and arguments that its header tells, in their order", async () => {
    await bench.open();
    const pod = await bench.pod({ partitions: 2 });
    const { link, window } = pod;
    const calls = jest.spyOn(link, "run");
    const presenceStore = new PresenceStore({ link, partitions: 2, offlineAfterMs: PRESENCE_LIMITS.offlineAfterMs });
    const releaser = new RouteReleaser({ link, partitions: 2, pod: "pod-a" });
    const counters = new Counters({ link, window });
    await window.adopt();
    await new ProcessWindow({ link, partitions: 2, deployId: null, logger: LOGGER }).adopt();
    const { epoch } = await pod.register("agent://bob");
    const request = requestOf("agent://alice", "agent://bob");
    await pod.accept(request, { origin: "gateway", claim: { digest: "a", bodyDigest: "b" } });
    const { sessionId } = await pod.request("agent://alice", "agent://bob");
    await pod.take(decisionOf("approve", "agent://bob", "agent://alice", sessionId as string));
    await readSession(link, sessionId as string, 2);
    await readTarget(
      link,
      { agent: "agent://bob", sessionId },
      { partitions: 2, offlineAfterMs: PRESENCE_LIMITS.offlineAfterMs, proofFreshnessMs: 1000 },
    );
    await Promise.all([
      presenceStore.read("agent://bob"),
      presenceStore.count(),
      presenceStore.prune(),
      readSnapshot(link, 2),
    ]);
    const mark = { agent: "agent://bob", connection: "c1", epoch: epoch as number, isCongested: true };
    await new CongestionMarks({ link, partitions: 2, pod: "pod-a" }).write([mark]);
    const asserter = new RouteAsserter({ ...pod, partitions: 2, pod: "pod-a", offlineAfterMs: 1, agentsPerKey: 1 });
    const bringer = { principal: "key:k", hasNamespace: true } as const;
    const credentials = { records: [{ keyId: "jkt-a", token: "a.b.c" }], expiresAt: Date.now() + 1000 };
    const held = { ...mark, agent: "agent://bob", heardAt: performance.now(), credentials, ...bringer };
    for (const [p, slice] of asserter.slices([held])) await asserter.assert(p, slice);
    await new PrincipalShares({ link, partitions: 2, pod: "pod-a" }).lease("key_envelopes", ["key:k"]);
    releaser.release([{ agent: "agent://bob", connection: "c1", epoch: epoch as number }]);
    await releaser.flush();
    counters.view("readSession", "visitor-1");
    await counters.flush();
    await addFeedback(link, window, { message: "text" });
    await announceGatewayKey(link, { keyId: "gateway-1", publicKey: "A" });
    await readGatewayKeys(link);
    await readCredentials(link, "agent://bob", 2);
    await readJourneys(link);
    await resetWindow(link, { partitions: 2, deployId: "deploy-1", force: true });

    const seen = new Set<string>();
    for (const [name, keys, args = []] of calls.mock.calls) {
      seen.add(name);
      const header = parseScript(luaFile(name));
      for (const [given, told] of [
        [keys, header.keys],
        [args, header.args],
      ] as const) {
        expect(given.length).toBeGreaterThanOrEqual(told.least);
        if (!told.open) expect([told.least, told.names.length]).toContain(given.length);
      }
      for (const [index, told] of header.keys.names.entries()) {
        const key = keys[index];
        if (key !== undefined) expect(told).toContain(key.split(":")[2]?.replaceAll("-", " "));
      }
    }
    expect([...seen].sort()).toEqual([...SCRIPT_NAMES]);
  });
});
