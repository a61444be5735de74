import { describe, expect, test } from "@jest/globals";
import { SESSION_ID_PATTERN } from "relay-protocol/wire/envelope.ts";
import { guardDigestOf, partitionOfSession, sessionIdOf } from "../src/acceptance/acceptance.ts";
import { parseChannelLine, textWithTrace } from "../src/channel/server-channel.ts";
import { parseJourney } from "../src/counters/journeys.ts";
import { CONGESTED, formatRouteOwner } from "../src/presence/presence.ts";
import { formatCredential, formatCredentials, parseCredentials } from "../src/public-keys/credential-records.ts";
import { controlKeys, partitionKeys } from "../src/redis/keys.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { filesUsedBy, luaFile } from "../src/redis/scripts.ts";
import { WindowKeys } from "../src/redis/window-keys.ts";
import {
  parseDecidedSession,
  parsePendingSession,
  parseSession,
  parseSessionProof,
  parseTargetProof,
} from "../src/sessions/session-records.ts";
import { redisBench } from "./kit.ts";

const bench = redisBench();
const ENVELOPE = { key_id: "alice-1", id: "env-1", ts: 1_790_000_000_000, to: "agent://bob" };

describe("partitions", () => {
  test.each([
    ["agent://alice", 10_847],
    ["agent://bob", 15_732],
    ["agent://worker-7", 6_732],
    ["agent://a.b_c-d", 6_627],
    // The check value of the Redis Cluster specification: CRC16 of it is 0x31c3.
    ["123456789", 0x31c3],
  ])("are found by the slot that CLUSTER KEYSLOT gives %s: %i", (agent, slot) => {
    for (const partitions of [1, 2, 7, 12, 1024, 16_384])
      expect(partitionOf(agent, partitions)).toBe(slot % partitions);
  });

  test("take every agent in, and all of them take some", () => {
    const taken = Array.from({ length: 1000 }, (_, n) => partitionOf(`agent://a${n}`, 7));
    expect(new Set(taken)).toEqual(new Set([0, 1, 2, 3, 4, 5, 6]));
    expect(partitionOf("agent://anyone", 1)).toBe(0);
  });

  test("are the hash tag of each of their keys and channels", () => {
    const key = (value: unknown, ...args: unknown[]) =>
      (typeof value === "function" ? value(...args) : value) as string;
    for (const value of Object.values(partitionKeys)) expect(key(value, 3, "x")).toMatch(/^relay:\{3fd\}:[a-z]/);
    for (const value of Object.values(controlKeys)) expect(value).toMatch(/^relay:\{0\}:[a-z]/);
    const keys = new WindowKeys(1, [1, 2, 3, 4]);
    for (const value of Object.values(keys.partition(3))) expect(key(value, "x")).toMatch(/^relay:\{3fd\}:[a-z]/);
    for (const value of Object.values(keys.whole)) expect(value).toMatch(/^relay:\{0\}:[a-z]/);
    const channel: string = partitionKeys.podChannel(3, "pod-a");
    expect(channel).toBe(`${partitionKeys.podChannelPrefix(3)}pod-a`);
  });
});

describe("the digest of an envelope", () => {
  test("is made of key, id, time and target, and of nothing else", () => {
    const guard = guardDigestOf(ENVELOPE);
    expect(guard).toMatch(/^[A-Za-z0-9_-]{16}$/);
    expect(guardDigestOf({ ...ENVELOPE, payload: {} } as typeof ENVELOPE)).toBe(guard);
    const others = [{ key_id: "alice-2" }, { id: "env-2" }, { ts: ENVELOPE.ts + 1 }, { to: "agent://carol" }];
    for (const change of others) expect(guardDigestOf({ ...ENVELOPE, ...change })).not.toBe(guard);
  });

  test("keeps the parts apart", () => {
    const one = guardDigestOf({ key_id: "a", id: "1.2", ts: 3 });
    expect(guardDigestOf({ key_id: "a.1", id: "2", ts: 3 })).not.toBe(one);
    expect(guardDigestOf({ key_id: "a1", id: ".2", ts: 3 })).not.toBe(one);
  });
});

describe("the session id of an envelope", () => {
  const TEXT = `${JSON.stringify(ENVELOPE).slice(0, -1)},"sig":"${"A".repeat(43)}"}`;

  test("is one for each envelope, and carries the partition", () => {
    for (const partition of [0, 1, 31, 32, 1023]) {
      const id = sessionIdOf(TEXT, partition);
      expect(id).toMatch(SESSION_ID_PATTERN);
      expect(partitionOfSession(id, 1024)).toBe(partition);
      expect(partitionOfSession(id, partition)).toBeUndefined();
    }
    expect(sessionIdOf(TEXT, 5)).toBe(sessionIdOf(TEXT, 5));
    expect(sessionIdOf(TEXT.replace("env-1", "env-2"), 5)).not.toBe(sessionIdOf(TEXT, 5));
  });

  test("is not found by guessing the envelope: the signature is in it", () => {
    expect(sessionIdOf(TEXT.replace("AAA", "AAB"), 5)).not.toBe(sessionIdOf(TEXT, 5));
  });

  test.each(["", "ses_", "ses_00", `ses_0l${"0".repeat(24)}`, `SES_00${"0".repeat(24)}`, `ses_00${"0".repeat(24)}\n`])(
    "is not found in %j, which is no session id",
    (text) => {
      expect(partitionOfSession(text, 1024)).toBeUndefined();
    },
  );
});

const NOW = 1_790_000_000_123;
const HOUR = 3_600_000;
const SESSION = `ses_00${"0".repeat(24)}`;

/** What an expression over the functions of a library comes to. */
async function lua(library: string, expression: string, ...args: (string | number)[]): Promise<unknown> {
  const files = [...filesUsedBy(luaFile(library)), library];
  return await bench.client.eval(`${files.map(luaFile).join("\n")}\nreturn ${expression}`, 0, ...args);
}

test("credentials are read as they are written, and Lua tells them apart by their keys", async () => {
  const records = ["jkt-a", "jkt-b"].map((keyId) => ({ keyId, token: "a.b.c" }));
  const [first, second] = records.map(formatCredential);
  const lines = formatCredentials(records);
  expect([lines, parseCredentials(lines)]).toEqual([`${first}\n${second}`, records]);
  const another = (keyId: string) =>
    lua(
      "accept/registers",
      "newest_of_another_key(ARGV[1], ARGV[2])",
      lines,
      formatCredential({ keyId, token: "d.e.f" }),
    );
  expect([await another("jkt-a"), await another("jkt-b"), await another("jkt-c")]).toEqual([second, first, first]);
});

describe("What Lua writes", () => {
  test("of a session is read in TypeScript and in Lua, while it pends and once it is decided", async () => {
    const records = "make_session_records(0)";
    const format = "format_session('not_seen', ARGV[1], 60, 'agent://alice', 'agent://bob')";
    const record = (await lua("lib/session_records", `${records}.${format}`, NOW)) as string;
    const session = { delivery: "not_seen", createdAt: NOW, expiresAt: NOW + HOUR };
    const agents = { requester: "agent://alice", target: "agent://bob" };
    expect(parseSession(record)).toEqual({ ...session, ...agents, decidedAt: null });
    const parse = `{ ${records}.parse_session(ARGV[1]) }`;
    expect(await lua("lib/session_records", parse, record)).toEqual(["p", String(NOW), "alice", "bob", "", ""]);

    const decided = (await lua(
      "lib/session_records",
      `${records}.decide(ARGV[1], 'r', ARGV[2], 'mark')`,
      record,
      NOW + 5,
    )) as string;
    expect(parseSession(decided)).toEqual({ ...session, ...agents, decidedAt: NOW + 5 });
    const words = ["r", String(NOW), "alice", "bob", String(NOW + 5), "mark"];
    expect(await lua("lib/session_records", parse, decided)).toEqual(words);
  });

  test("of what is asked of an agent is read in TypeScript, and in Lua what has not run out", async () => {
    const now = Date.now();
    const proof = `${now} g alice ${SESSION.slice(4)}`;
    const lines = [5, 60].map((ttl) => `${SESSION.slice(4)} ${now} ${ttl} principal alice`);
    const key = (await bench.keys()).pending("agent://bob");
    await bench.client.set(key, [proof, ...lines].join("\n"));
    const read = `(function(records)
      local at_target = records.read_pending(ARGV[1])
      return { at_target.proof, records.lines_of(at_target), records.format_pending(at_target, 1000) or 'nothing' }
    end)(make_session_records(ARGV[2] + 0))`;
    const at = async (time: number) => await lua("lib/session_records", read, key, time);
    expect(await at(now)).toEqual([proof, lines, [proof, ...lines].join("\n")]);
    expect(await at(now + HOUR / 12)).toEqual([proof, [lines[1]], `\n${lines[1]}`]);
    expect(await at(now + HOUR)).toEqual([proof, [], "nothing"]);
    const endsAt = "select(2, records.format_pending(records.read_pending(ARGV[1]), 1000))";
    const ends = `(function(records) return ${endsAt} end)(make_session_records(ARGV[2] + 0))`;
    expect(await lua("lib/session_records", ends, key, now)).toBe(String(now + HOUR));
    expect(parsePendingSession(lines[1] as string)).toEqual({
      sessionId: SESSION,
      requester: "agent://alice",
      createdAt: now,
      expiresAt: now + HOUR,
    });
    expect(parseTargetProof(proof, "agent://bob")).toEqual({
      sessionId: SESSION,
      requester: "agent://alice",
      target: "agent://bob",
      acceptedAt: now,
      targetStatus: "online",
      source: "simple_session_api",
      samePrincipal: false,
    });
  });

  test("of a decision that waits for its requester is read in TypeScript", async () => {
    const format = "make_session_records(0).format_decided(ARGV[1], 'a', ARGV[2], 'agent://bob')";
    const record = (await lua("lib/session_records", format, SESSION.slice(4), NOW)) as string;
    const decided = { sessionId: SESSION, status: "approved", target: "agent://bob", decidedAt: NOW };
    expect(parseDecidedSession(record)).toEqual(decided);
  });

  test.each([true, false])(
    "of a session proof is read in TypeScript, within one principal: %s",
    async (samePrincipal) => {
      const words = [SESSION, "agent://alice", "agent://bob", NOW, "not_seen", "websocket_envelope"];
      const format = `format_proof(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ${samePrincipal})`;
      expect(parseSessionProof((await lua("accept/sessions_and_claims", format, ...words)) as string)).toEqual({
        sessionId: SESSION,
        requester: "agent://alice",
        target: "agent://bob",
        acceptedAt: NOW,
        targetStatus: "not_seen",
        source: "websocket_envelope",
        samePrincipal,
      });
    },
  );

  test("of a journey is read on both sides", async () => {
    const actions = "join_actions('a@5 b@6', { format_action('c', ARGV[2]), 'd@9' }, 3)";
    const record = (await lua(
      "lib/journey",
      `format_journey(ARGV[1], ARGV[2], 70, 9, ${actions})`,
      NOW,
      NOW + 5,
    )) as string;
    expect(record).toBe(`${NOW} ${NOW + 5} 70 9 b@6 c@${NOW + 5} d@9`);
    expect(parseJourney(record)).toEqual({
      firstSeen: NOW,
      lastSeen: NOW + 5,
      count: 70,
      stages: new Set(["discovery", "session_negotiation"]),
      actions: [
        { name: "b", at: 6 },
        { name: "d", at: 9 },
        { name: "c", at: NOW + 5 },
      ],
    });
    const parsed = await lua("lib/journey", "{ parse_journey(ARGV[1]) }", record);
    expect(parsed).toEqual([NOW, NOW + 5, 70, 9, `b@6 c@${NOW + 5} d@9`]);
  });

  test("of a delivery is read in TypeScript, its text as it is, spaces and empty words included", async () => {
    const about = ["c1", 1_790_000_000_123_456, "agent://bob"];
    for (const [word, sessionId, text] of [
      [SESSION, SESSION, '{"a": "two  words "}'],
      ["-", null, ' {"a":1}'],
    ] as const) {
      const head = await lua("lib/route", "format_delivery(unpack(ARGV))", ...about, word);
      const line = { kind: "deliver", connection: "c1", epoch: 1_790_000_000_123_456, agent: "agent://bob" };
      expect(parseChannelLine(`${head}${text}`)).toEqual({ ...line, sessionId, text });
    }
  });

  test.each(["superseded", "probe", "disconnect"])("of a line %s is read in TypeScript", async (kind) => {
    const line = (await lua("lib/route", "format_line(unpack(ARGV))", kind, "c1", 7, "agent://bob")) as string;
    expect(parseChannelLine(line)).toEqual({ kind, connection: "c1", epoch: 7, agent: "agent://bob" });
  });

  test("of a route it reads itself", async () => {
    const read = "parse_route(format_route(unpack(ARGV)))";
    const route = `(function(r) return { r.pod, r.connection, r.epoch, r.seen_at, r.congested and 1 or 0 } end)(${read})`;
    const words = ["pod-a", "c1", 7, NOW, NOW - 5] as const;
    for (const [mark, congested] of [
      ["", 0],
      [CONGESTED, 1],
    ] as const) {
      expect(await lua("lib/route", route, ...words, mark)).toEqual(["pod-a", "c1", "7", String(NOW), congested]);
      const held = await lua("lib/route", "{ parse_since(format_route(unpack(ARGV))) }", ...words, mark);
      expect(held).toEqual([String(NOW - 5), mark]);
    }
  });
});

test.each([7, null])(
  "The owner of a route as TypeScript writes it, with the epoch %s, is found in the record",
  async (epoch) => {
    const [route, online] = [(await bench.keys()).route, (await bench.keys()).online];
    const release = (owner: string) =>
      lua("lib/route", "release_route(ARGV[1], ARGV[2], ARGV[3], ARGV[4])", route, online, "agent://bob", owner);
    await bench.client.hset(
      route,
      "agent://bob",
      (await lua("lib/route", "format_route('pod-a', 'c1', 7, ARGV[1], ARGV[1], '')", NOW)) as string,
    );
    expect(await release(formatRouteOwner({ pod: "pod-a", connection: "c11", epoch }))).toBeNull();
    expect(await release(formatRouteOwner({ pod: "pod-a", connection: "c1", epoch }))).toBe(1);
    expect(await bench.client.exists(route)).toBe(0);
  },
);

test("Behind an envelope of a sampled trace stands a line of its own, and behind any other none", () => {
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const [text, behind = "", ...more] = textWithTrace('{"a":1}', traceparent).split("\n");
  expect([text, parseChannelLine(behind), more]).toEqual(['{"a":1}', { kind: "traced", traceparent }, []]);
  expect(textWithTrace('{"a":1}', undefined)).toBe('{"a":1}');
});

test("A line of a kind that is not known is none", () => {
  for (const line of ["", "mark 1", "delivers c1 7 agent://bob - {}"]) expect(parseChannelLine(line)).toBeUndefined();
});
