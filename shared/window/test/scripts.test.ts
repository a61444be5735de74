import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import slotOf from "cluster-key-slot";
import { PRESENCE_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { type MonitoredCommand, RedisMonitor } from "../../../test/support/test-redis.ts";
import { leaseConnections, PodChannel } from "../src/channel/pod-channel.ts";
import { addFeedback, Counters } from "../src/counters/counters.ts";
import { JourneysCopy } from "../src/counters/journeys.ts";
import { readSnapshot } from "../src/counters/snapshot.ts";
import { PrincipalAgentsReader } from "../src/limits/principal-agents.ts";
import { RateLimit } from "../src/limits/rate-limit.ts";
import { PrincipalShares } from "../src/limits/shared-rates.ts";
import { HeartbeatWriter } from "../src/presence/heartbeat-writer.ts";
import { RouteRestorer } from "../src/presence/held-routes.ts";
import { PresenceStore } from "../src/presence/presence.ts";
import { CongestionMarks, disconnect, RouteReleaser } from "../src/presence/routes.ts";
import { readCredentials } from "../src/public-keys/credential-records.ts";
import { announceGatewayKey, readGatewayKeys } from "../src/public-keys/gateway-keys.ts";
import { RedisLink } from "../src/redis/redis-link.ts";
import {
  filesUsedBy,
  luaFile,
  SCRIPT_NAMES,
  SCRIPT_TEXTS,
  SCRIPTS,
  type ScriptName,
  scriptsIn,
  usesOf,
} from "../src/redis/scripts.ts";
import { readSession, readTarget } from "../src/sessions/look-ups.ts";
import { recordPromotions } from "../src/window/data-loss.ts";
import { ProcessWindow } from "../src/window/process-window.ts";
import { resetWindow } from "../src/window/reset.ts";
import { ALICE, BOB, decisionOf, envelopeOf, messageOf, requestOf } from "./envelopes.ts";
import { Bench, LOGGER } from "./kit.ts";
import { type Globals, globalsOf, localsOf, parseLibrary, parseScript, withoutComments } from "./lua.ts";

const bench = new Bench();

beforeAll(() => bench.open());
afterAll(async () => {
  await bench.clear();
  await bench.redis.stop();
});

describe("of the Lua files", () => {
  const FILES = readdirSync(new URL("../src/lua/", import.meta.url), { recursive: true })
    .map(String)
    .filter((file) => file.endsWith(".lua"))
    .map((file) => file.replace(/\.lua$/, ""));
  const LIBRARIES = FILES.filter((file) => file.includes("/"));
  /** Libraries and scripts, by their names. */
  const TEXTS = new Map([...LIBRARIES.map((file) => [file, luaFile(file)] as const), ...Object.entries(SCRIPT_TEXTS)]);
  const UNITS = [...TEXTS.keys()];
  const textOf = (unit: string) => TEXTS.get(unit) as string;
  /** What Redis gives to every script. */
  const GIVEN = new Set(
    "redis KEYS ARGV string table math bit ipairs pairs unpack tonumber tostring type select next".split(" "),
  );
  const globals = new Map<string, Globals>();
  /** What a unit takes from others. */
  const takenBy = (unit: string) => [...(globals.get(unit) as Globals).read].filter((name) => !GIVEN.has(name));
  const offeredBy = (file: string) => parseLibrary(luaFile(file)).functions.map(({ name }) => name);
  /** The units of which something is found, and what. */
  const findings = (units: readonly string[], find: (unit: string) => readonly unknown[]) =>
    units.map((unit) => [unit, ...find(unit)]).filter(({ length }) => length > 1);

  beforeAll(async () => {
    for (const [unit, text] of TEXTS) globals.set(unit, await globalsOf(bench.client, text));
  });

  test("each library is used by a script, and the other files hold the scripts", () => {
    expect([...new Set(Object.values(SCRIPT_TEXTS).flatMap(filesUsedBy))].sort()).toEqual(LIBRARIES.toSorted());
    const held = FILES.filter((file) => !LIBRARIES.includes(file)).flatMap((file) => scriptsIn(luaFile(file)));
    expect(held.map(([name]) => name).sort()).toEqual([...SCRIPT_NAMES].sort());
  });

  test("each script is joined of those that it uses, each after those it uses itself, and no two declare one name", () => {
    for (const name of SCRIPT_NAMES) {
      const files = filesUsedBy(textOf(name));
      expect(SCRIPTS[name].lua).toBe([...files.map(luaFile), textOf(name)].join("\n"));
      for (const [index, file] of files.entries()) {
        for (const used of usesOf(luaFile(file))) expect(files.slice(0, index)).toContain(used);
      }
      const names = [...files, name].flatMap((unit) => [...new Set(localsOf(textOf(unit)))]);
      expect(names.filter((one, index) => names.indexOf(one) !== index)).toEqual([]);
    }
  });

  test("one asks for the time of Redis", () => {
    expect(UNITS.filter((unit) => /['"]TIME['"]/i.test(withoutComments(textOf(unit))))).toEqual(["lib/time"]);
  });

  test("none writes a global, compiled alone", () => {
    expect(findings(UNITS, (unit) => [...(globals.get(unit) as Globals).written])).toEqual([]);
  });

  test("each takes from others what the files offer that its header says it uses, from each of them something", () => {
    const amiss = (unit: string) => {
      const [offers, taken] = [usesOf(textOf(unit)).map(offeredBy), takenBy(unit)];
      const unknown = taken.filter((name) => offers.filter((names) => names.includes(name)).length !== 1);
      return [...unknown, ...offers.filter((names) => !names.some((name) => taken.includes(name)))];
    };
    expect(findings(UNITS, amiss)).toEqual([]);
  });

  test("a library says what it is for, holds functions, and does nothing by itself", () => {
    for (const file of LIBRARIES) {
      const { purpose, functions, rest } = parseLibrary(luaFile(file));
      expect(purpose).toMatch(/^[A-Z].*\.$/s);
      expect(functions.length).toBeGreaterThan(0);
      expect([file, rest]).toEqual([file, ""]);
    }
  });

  test("a library says of each function what it returns, and offers nothing that nobody calls", () => {
    const taken = new Set(UNITS.flatMap(takenBy));
    const amiss = (file: string) => {
      const { functions } = parseLibrary(luaFile(file));
      const returns = (text: string) => /\breturn (?!end\b)\S/.test(text);
      const silent = functions.filter(({ doc, text }) => returns(text) && !/\b[Rr]eturns\b/.test(doc));
      const own = withoutComments(luaFile(file));
      const isCalled = (name: string) => taken.has(name) || own.split(new RegExp(`\\b${name}\\b`)).length > 2;
      return [...silent, ...functions.filter(({ name }) => !isCalled(name))].map(({ name }) => name);
    };
    expect(findings(LIBRARIES, amiss)).toEqual([]);
  });

  test("the globals are found wherever they stand, and what is no Lua is refused", async () => {
    const lua =
      "local a = b\nlocal function f(x) return function() c = x + a + redis.d end end\nreturn f(e[1.5] or true)";
    const found = await globalsOf(bench.client, lua);
    expect([...found.read].sort()).toEqual(["b", "e", "redis"]);
    expect([...found.written]).toEqual(["c"]);
    await expect(globalsOf(bench.client, "local function f( return end")).rejects.toThrow();
  });
});

describe("the script", () => {
  /** The indexes that a body spells out: `KEYS[1]` gives 1. */
  const indexes = (body: string, table: "KEYS" | "ARGV"): number[] => {
    const found = [...body.matchAll(new RegExp(`\\b${table}\\[(\\d+)\\]`, "g"))].map(([, index]) => Number(index));
    return [...new Set(found)].sort((a, b) => a - b);
  };
  const oneTo = (n: number) => Array.from({ length: n }, (_, index) => index + 1);

  test.each(SCRIPT_NAMES)(
    "%s uses the keys and arguments that its header numbers, as locals, and spells no key of its own",
    (name) => {
      const { keys, args, body: own } = parseScript(SCRIPT_TEXTS[name]);
      const body = withoutComments(SCRIPTS[name].lua);
      expect(indexes(body, "KEYS")).toEqual(oneTo(keys.names.length));
      expect(indexes(body, "ARGV")).toEqual(oneTo(args.names.length));
      expect(/\bARGV\b/.test(body)).toBe(args.names.length > 0 || args.open);
      // They are named before anything is done.
      const rest = own.trim().replace(/^(?:local [\w, ]+ = [^\n]*\b(?:KEYS|ARGV)\[\d+\][^\n]*\n)+/, "");
      expect([...indexes(rest, "KEYS"), ...indexes(rest, "ARGV")]).toEqual([]);
      // None but the channel of a pod.
      expect(body).not.toMatch(/relay/);
      expect(body.replaceAll("'agent://'", "")).not.toMatch(/(['"])[^'"\n]*:[^'"\n]*\1/);
      // Nothing is asked for that grows with the number of keys.
      expect(body).not.toMatch(/call\('(?:KEYS|SCAN|RANDOMKEY|DBSIZE|FLUSH\w+)'/);
    },
  );
});

describe("every script, called by its callers,", () => {
  const PARTITIONS = 4;
  /** These take no key, or name it elsewhere than first. */
  const KEYLESS = new Set(["time", "scan"]);
  const calls = jest.spyOn(RedisLink.prototype, "run");
  /** Keys and channels of each call, whether passed in or made in the script. */
  const carriedOut: { readonly script: ScriptName; readonly names: Set<string> }[] = [];

  beforeAll(async () => {
    const nameOf = new Map(SCRIPT_NAMES.map((name) => [SCRIPTS[name].sha, name]));
    let names: Set<string> | undefined;
    const monitor = await RedisMonitor.open(bench.client, ({ name, args, inScript }: MonitoredCommand) => {
      if (inScript) {
        if (!KEYLESS.has(name)) names?.add(args[0] as string);
        return;
      }
      const script = nameOf.get(args[0] as string);
      names = undefined;
      if (name !== "evalsha" || script === undefined) return;
      names = new Set(args.slice(2, 2 + Number(args[1])));
      carriedOut.push({ script, names });
    });
    await runEveryScript(PARTITIONS);
    await useUpSessions(PARTITIONS);
    await monitor.caughtUp(bench.client);
    monitor.close();
  });

  test("is given the keys and arguments that its header tells, in their order", () => {
    const seen = new Set<string>();
    for (const [name, keys, args = []] of calls.mock.calls) {
      seen.add(name);
      const header = parseScript(SCRIPT_TEXTS[name]);
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
    expect([...seen].sort()).toEqual([...SCRIPT_NAMES].sort());
  });

  test("has its keys in one slot of a Redis Cluster, those included that it makes", () => {
    expect(new Set(carriedOut.map(({ script }) => script))).toEqual(new Set(SCRIPT_NAMES));
    const mixed = carriedOut.filter(({ names }) => new Set([...names].map(slotOf)).size !== 1);
    expect(mixed.map(({ script, names }) => [script, ...names])).toEqual([]);
  });
});

/** Has every script run, each by its callers. */
async function runEveryScript(partitions: number): Promise<void> {
  const pod = await bench.pod({ partitions });
  const { link, window } = pod;
  const presenceStore = new PresenceStore({ link, window, offlineAfterMs: PRESENCE_LIMITS.offlineAfterMs });
  const releaser = new RouteReleaser({ link, window, pod: "pod-a" });
  const counters = new Counters({ link, window });
  const channel = new PodChannel({ calls: link, pod: "pod-a", partitions });
  bench.later(() => channel.stop());
  await channel.start();
  await window.adoptOpenWindow();
  await new ProcessWindow({ link, partitions, deployId: null, logger: LOGGER }).adoptOpenWindow();
  const { epoch } = await pod.register(BOB);
  await pod.accept(messageOf(ALICE, BOB));
  const request = requestOf(ALICE, BOB);
  await pod.take(request, { origin: "gateway", claim: { digest: "a", bodyDigest: "b" } });
  const { sessionId } = await pod.request(ALICE, BOB);
  await pod.take(decisionOf("approve", BOB, ALICE, sessionId as string));
  await readSession(link, window, sessionId as string);
  await readTarget(
    link,
    window,
    { agent: BOB, sessionId },
    { offlineAfterMs: PRESENCE_LIMITS.offlineAfterMs, proofFreshnessMs: 1000 },
  );
  await Promise.all([
    presenceStore.read(BOB),
    presenceStore.count(),
    presenceStore.prune(),
    readSnapshot(link, window),
  ]);
  await disconnect(link, window, BOB);
  const agentsReader = new PrincipalAgentsReader({ link, window, offlineAfterMs: PRESENCE_LIMITS.offlineAfterMs });
  await agentsReader.read("key:k", [BOB]);
  const mark = { agent: BOB, connection: "c1", epoch: epoch as number, isCongested: true };
  await new CongestionMarks({ link, window, pod: "pod-a" }).write([mark]);
  const restorer = new RouteRestorer({ ...pod, pod: "pod-a", offlineAfterMs: 1, agentsPerKey: 1 });
  const registering = { principal: "key:k", hasNamespace: true } as const;
  const credentials = { records: [{ keyId: "jkt-a", token: "a.b.c" }], expiresAt: Date.now() + 1000 };
  const held = { ...mark, agent: BOB, heardAt: performance.now(), credentials, ...registering };
  for (const [p, slice] of restorer.slices([held])) await restorer.restore(p, slice);
  await leaseConnections(link, "pod-a", 1);
  await new PrincipalShares({ link, partitions, pod: "pod-a" }).lease("key_envelopes", ["key:k"]);
  const writer = new HeartbeatWriter({ ...pod, pod: "pod-a", agentsPerKey: 1, logger: LOGGER });
  const beat = { envelope: envelopeOf("agent.heartbeat", BOB), connection: "c1", credential: credentials };
  const [answer] = await writer.write(writer.partitionOf(BOB), [
    { item: { ...beat, ...registering }, epoch: epoch as number, heardAt: performance.now() },
  ]);
  if (answer?.outcome !== "accepted") throw new Error("the heartbeat was left to acceptance");
  releaser.release([{ agent: BOB, connection: "c1", epoch: epoch as number }]);
  await releaser.flush();
  counters.view("readSession", "visitor-1");
  await counters.flush();
  await addFeedback(link, window, { message: "text" });
  await recordPromotions(link, window, new Map([["control", performance.now()]]));
  await announceGatewayKey(link, { keyId: "gateway-1", publicKey: "A" });
  await readGatewayKeys(link);
  await readCredentials(link, window, BOB);
  await new JourneysCopy(link, window).read();
  await new RateLimit({ link, partitions, name: "send", most: 1 }).use("key-1");
  await resetWindow(link, { partitions, deployId: "deploy-1", force: true });
}

/** So many requests that some give way to others, which names keys of other principals. */
async function useUpSessions(partitions: number): Promise<void> {
  const pod = await bench.pod({ partitions });
  for (let n = 0; n <= SESSION_LIMITS.maxPendingPerRequesterAtTarget; n += 1) {
    for (const target of ["ada", "berta", "carl", "dora"]) await pod.request(ALICE, `agent://${target}`);
  }
}
