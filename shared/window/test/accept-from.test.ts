import { beforeEach, describe, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { acceptFromOf, type Principal } from "../src/limits/principals.ts";
import { PresenceStore } from "../src/presence/presence.ts";
import {
  ALICE,
  BOB,
  CAROL,
  claimOf,
  decisionOf,
  delivery,
  envelopeOf,
  MALLORY,
  messageOf,
  presence,
  requestOf,
} from "./envelopes.ts";
import { ClockedLink, held, type Incoming, type Pod, redisBench, restoreAs } from "./kit.ts";

const bench = redisBench();
const REFUSED = { outcome: "not_accepted_by_target" };
const ACCEPTED = { outcome: "accepted" };

/** Of each test one of its own. */
let pod: Pod;

beforeEach(async () => {
  pod = await bench.pod();
});

/** BOB registers; undefined says nothing of whom it accepts. */
async function registers(accept_from?: readonly string[], incoming: Incoming = {}) {
  const payload = accept_from === undefined ? {} : { accept_from };
  return await pod.accept(envelopeOf("agent.register", BOB, { payload }), incoming);
}

async function sends(from: string, principal: Principal = "key:key-1") {
  return await pod.accept(messageOf(from, BOB), { principal });
}

describe("an agent that names whom it accepts envelopes from", () => {
  test.each([
    ["an agent", [ALICE], ALICE, true],
    ["another agent", [ALICE], "agent://alice2", false],
    ["an agent of whose id another is a part", [ALICE], "agent://lice", false],
    ["a namespace", ["agent://acme.*"], "agent://acme.bob", true],
    ["a namespace below it", ["agent://acme.*"], "agent://acme.sales.bob", true],
    ["the name before a namespace's dot", ["agent://acme.*"], "agent://acme", false],
    ["a name that begins as a namespace does", ["agent://acme.*"], "agent://acmeville", false],
    ["a name that a pattern of Lua would match", ["agent://a.b.*"], "agent://axb.c", false],
    ["the last of several", ["agent://x", "agent://y.*", ALICE], ALICE, true],
    ["nobody", [], ALICE, false],
    ["itself", [], BOB, true],
  ])("takes messages of what it names: %s", async (_, list, from, isAccepted) => {
    await registers(list);
    expect(await sends(from)).toMatchObject(isAccepted ? ACCEPTED : REFUSED);
  });

  test.each([
    ["that issuer", "issuer:acme", true],
    ["another issuer", "issuer:acme2", false],
    ["a listed key of the issuer's name", "key:acme", false],
    ["an API key of the issuer's name", "api:acme", false],
  ] as const)("by an issuer takes those of %s", async (_, principal, isAccepted) => {
    await registers(["issuer:acme"]);
    expect(await sends(ALICE, principal)).toMatchObject(isAccepted ? ACCEPTED : REFUSED);
    const request = await pod.take(requestOf(ALICE, BOB), { principal });
    expect(request).toMatchObject(isAccepted ? ACCEPTED : REFUSED);
  });

  test("by an issuer takes those of its agents alone, whatever else is in the same call", async () => {
    await registers(["issuer:acme"]);
    const principals = ["issuer:acme", "issuer:globex", "key:k", "issuer:acme"] as const;
    const outcomes = await Promise.all(principals.map((principal) => sends(ALICE, principal)));
    expect(outcomes).toMatchObject([ACCEPTED, REFUSED, REFUSED, ACCEPTED]);
  });

  test("gets nothing of the others, whatever else is in the same call, and nothing is counted or remembered of it", async () => {
    const ear = await bench.ear("pod-a");
    await registers([ALICE]);
    const before = await bench.counters();
    const unwanted = messageOf(MALLORY, BOB);
    const outcomes = await pod.acceptAll(messageOf(ALICE, BOB), unwanted, messageOf(MALLORY, ALICE));
    expect(outcomes).toMatchObject([ACCEPTED, REFUSED, { ...ACCEPTED, delivery: "not_seen" }]);
    const mixed = await Promise.all([pod.accept(messageOf(MALLORY, BOB)), registers([ALICE]), sends(ALICE)]);
    expect(mixed).toMatchObject([REFUSED, ACCEPTED, ACCEPTED]);
    expect((await ear.lines()).filter((line) => line.includes(MALLORY))).toEqual([]);
    const after = await bench.counters();
    expect((after.published_envelopes ?? 0) - (before.published_envelopes ?? 0)).toBe(3);
    await registers();
    expect(await pod.accept(unwanted)).toMatchObject(ACCEPTED);
  });

  test("answers the repeat of what it accepted before as a duplicate", async () => {
    await registers();
    const [message, request] = [messageOf(MALLORY, BOB), requestOf(MALLORY, BOB)];
    await pod.acceptAll(message, request);
    await registers([ALICE]);
    expect(await pod.acceptAll(message, request)).toMatchObject([{ outcome: "duplicate" }, { outcome: "duplicate" }]);
  });

  test("is meant by requests with an Idempotency-Key as well, and the key stays free", async () => {
    await registers([ALICE]);
    const claim = claimOf("key", "body");
    const bySomebody = (from: string) => pod.accept(messageOf(from, BOB), { origin: "gateway", claim });
    expect(await bySomebody(MALLORY)).toEqual(REFUSED);
    expect(await bySomebody(ALICE)).toMatchObject(ACCEPTED);
    await registers([]);
    expect(await bySomebody(ALICE)).toMatchObject({ outcome: "replayed" });
  });

  test("goes on to refuse others while it is offline, with its heartbeats, and until its next register says otherwise", async () => {
    const { epoch } = presence(await registers([ALICE]));
    await pod.heartbeat(BOB);
    expect(await sends(MALLORY)).toEqual(REFUSED);
    await bench.client.hdel((await bench.keys()).route, BOB);
    await bench.client.zrem((await bench.keys()).online, BOB);
    expect(await sends(MALLORY)).toEqual(REFUSED);
    expect(await sends(ALICE)).toMatchObject({ ...ACCEPTED, delivery: "stale" });
    expect(epoch).not.toBeNull();
    expect(presence(await pod.heartbeat(BOB, "c9")).epoch).not.toBeNull();
    expect(await sends(MALLORY)).toEqual(REFUSED);
    await registers([MALLORY]);
    expect(await sends(MALLORY)).toMatchObject(ACCEPTED);
    expect(await sends(ALICE)).toEqual(REFUSED);
    await registers();
    expect(await sends(ALICE)).toMatchObject(ACCEPTED);
  });
});

describe("sessions", () => {
  test("that others request are refused, count for no bound and pend nowhere", async () => {
    await registers([ALICE]);
    expect(await pod.take(requestOf(MALLORY, BOB))).toEqual(REFUSED);
    expect(presence(await registers([ALICE], { connection: "c2" })).pending).toEqual([]);
    expect(await bench.client.keys("relay:*:opened:*")).toEqual([]);
    expect(await bench.client.keys("relay:*:session:*")).toEqual([]);
  });

  test("that others requested before pend no longer, and are neither told nor decided", async () => {
    const { sessionId: unwanted } = await pod.request(MALLORY, BOB);
    const { sessionId: ofIssuer } = await pod.request("agent://x", BOB, 60, { principal: "issuer:acme" });
    const { sessionId: wanted } = await pod.request(ALICE, BOB);
    const { pending } = presence(await registers([ALICE, "issuer:acme"]));
    expect(pending.map(({ sessionId }) => sessionId)).toEqual([ofIssuer, wanted]);
    const decided = await pod.take(decisionOf("approve", BOB, MALLORY, unwanted as string));
    expect(decided).toEqual({ outcome: "session_closed" });
    expect(await pod.take(decisionOf("approve", BOB, ALICE, wanted as string))).toMatchObject(ACCEPTED);
  });

  test("that pend alone, and that came in with the register, go without a trace of them", async () => {
    const request = requestOf(MALLORY, BOB);
    const both = await Promise.all([pod.take(request), registers([])]);
    expect(both).toMatchObject([ACCEPTED, ACCEPTED]);
    expect(presence(both[1] as never).pending).toEqual([]);
    expect(presence(await registers([], { connection: "c2" })).pending).toEqual([]);
  });

  test("that others requested, of keys and of issuers, end with it: they count for nobody, and are not kept for long", async () => {
    const { sessionId } = await pod.request("agent://x", BOB, 600, { principal: "issuer:acme" });
    await pod.request(MALLORY, BOB, 600);
    expect((await bench.client.keys("relay:*:principal:*")).length).toBe(3);
    await registers([ALICE]);
    expect(await bench.client.keys("relay:*:principal:*")).toEqual([]);
    const left = await bench.client.pttl((await bench.keys()).session(sessionId as string));
    expect(left).toBeLessThanOrEqual(SESSION_LIMITS.keepAfterEndMs);
  });

  test("that others requested while Redis did not know whom the agent accepts are not told to it", async () => {
    await pod.request(MALLORY, BOB);
    const { sessionId } = await pod.request(ALICE, BOB);
    await restoreAs("pod-a", pod, [held({ acceptFrom: acceptFromOf({ accept_from: [ALICE] }) })]);
    const { pending } = presence(await pod.accept(envelopeOf("agent.heartbeat", BOB), { connection: "c1" }));
    expect(pending.map((session) => session.sessionId)).toEqual([sessionId]);
  });

  test("of the agent's own are decided by whomever it asked", async () => {
    await bench.ear("pod-a");
    await registers([]);
    await pod.register(MALLORY, "c2");
    const { sessionId } = await pod.request(BOB, MALLORY);
    const decision = decisionOf("approve", MALLORY, BOB, sessionId as string);
    expect(delivery(await pod.take(decision))).toMatchObject({ outcome: "accepted", delivery: "online" });
  });
});

describe("what is kept of it", () => {
  const kept = async () => await bench.client.hgetall((await bench.keys()).acceptFrom);

  test("is what the register said, issuers as digests, and nothing of an agent that said nothing", async () => {
    await registers([ALICE, "issuer:acme"]);
    await pod.register(ALICE);
    expect(await kept()).toEqual({ [BOB]: expect.stringMatching(/^\d+ agent:\/\/alice @[\w-]{11} $/) });
    await registers();
    expect(await kept()).toEqual({});
  });

  test("goes with its agent's presence, when that is forgotten, and when it makes room for another of its key", async () => {
    await bench.clear();
    await bench.open();
    const link = await ClockedLink.of(bench);
    const { offlineAfterMs, forgetAfterMs } = PRESENCE_LIMITS;
    const own = await bench.pod({ agentsPerKey: 1 });
    const payload = { accept_from: [ALICE] };
    const team = { principal: "key:team", hasNamespace: true } as const;
    await own.accept(envelopeOf("agent.register", BOB, { payload }), team);
    await bench.seed(BOB, "pod-a c1 1", Date.now() - offlineAfterMs - 1000);
    const { agents } = await bench.keys();
    const [counted] = await bench.client.keys(agents("*"));
    await bench.client.zadd(counted as string, Date.now() - offlineAfterMs - 1000, BOB);
    expect(await own.accept(envelopeOf("agent.register", CAROL, { payload }), team)).toMatchObject(ACCEPTED);
    expect(Object.keys(await kept())).toEqual([CAROL]);
    await bench.client.zadd((await bench.keys()).presence, Date.now() - forgetAfterMs - 1000, CAROL);
    const store = new PresenceStore({ link: own.link, window: own.window, offlineAfterMs });
    await store.prune();
    expect(await kept()).toEqual({});
    link.stop();
  });

  test("is not changed while Redis is short of memory, and stays in force", async () => {
    await registers([ALICE]);
    Object.defineProperty(pod.link, "memoryOf", { value: () => ({ isShort: true }) });
    expect(await registers([ALICE, MALLORY])).toEqual({ outcome: "over_capacity" });
    expect(await registers([ALICE])).toMatchObject(ACCEPTED);
    expect(await sends(MALLORY)).toEqual(REFUSED);
  });
});

describe("where Redis lost whom an agent accepts, or has what was said before, a heartbeat", () => {
  const heartbeat = async (incoming: Incoming) =>
    presence(await pod.accept(envelopeOf("agent.heartbeat", BOB), incoming));

  test("that takes the agent is told what its connection does not know", async () => {
    await registers([ALICE]);
    await bench.client.hdel((await bench.keys()).route, BOB);
    expect((await heartbeat({ connection: "c2" })).acceptFrom).toBe(acceptFromOf({ accept_from: [ALICE] }));
    expect((await heartbeat({ connection: "c2" })).acceptFrom).toBeUndefined();
    await registers(undefined, { connection: "c2" });
    await bench.client.hdel((await bench.keys()).route, BOB);
    expect((await heartbeat({ connection: "c3" })).acceptFrom).toBe(acceptFromOf({}));
  });

  test("that takes the agent where Redis lost it brings what its connection knows", async () => {
    await heartbeat({ acceptFrom: acceptFromOf({ accept_from: [ALICE] }) });
    expect(await sends(MALLORY)).toEqual(REFUSED);
    await heartbeat({ acceptFrom: acceptFromOf({ accept_from: [MALLORY] }) });
    expect(await sends(MALLORY)).toEqual(REFUSED);
  });
});

describe("and restoring", () => {
  const acceptFrom = acceptFromOf({ accept_from: [ALICE] });

  test("has it in force again in a window that knows nothing of the agent", async () => {
    await pod.window.known();
    await restoreAs("pod-a", pod, [held({ acceptFrom })]);
    expect(await sends(MALLORY)).toEqual(REFUSED);
    expect(await sends(ALICE)).toMatchObject(ACCEPTED);
  });

  test("has the newest register of an agent in force, though one call brings an older one before it", async () => {
    await pod.window.known();
    const older = held({ acceptFrom, connection: "c1", epoch: 5 });
    await restoreAs("pod-a", pod, [older, held({ acceptFrom: acceptFromOf({}), connection: "c2", epoch: 6 })]);
    expect(await sends(MALLORY)).toMatchObject(ACCEPTED);
  });

  test("leaves what Redis has of the same register or a newer one", async () => {
    await bench.ear("pod-a");
    const { epoch } = presence(await registers([ALICE]));
    const { epoch: newer } = presence(await registers([MALLORY]));
    await restoreAs("pod-a", pod, [held({ acceptFrom, epoch: epoch as number })]);
    await restoreAs("pod-a", pod, [held({ acceptFrom, epoch: newer as number })]);
    expect(await sends(MALLORY)).toMatchObject(ACCEPTED);
    await registers();
    await restoreAs("pod-a", pod, [held({ acceptFrom, epoch: newer as number })]);
    expect(await sends(MALLORY)).toMatchObject(ACCEPTED);
    await bench.client.zrem((await bench.keys()).online, BOB);
    await restoreAs("pod-a", pod, [held({ acceptFrom, epoch: newer as number })]);
    expect(await sends(MALLORY)).toMatchObject(ACCEPTED);
  });

  test.each([
    ["a list", acceptFrom, REFUSED],
    ["everyone", acceptFromOf({}), ACCEPTED],
  ])(
    "says %s anew where a promoted replica has what an older register of the same connection said",
    async (_, says, answer) => {
      const { epoch } = presence(await registers([ALICE, MALLORY]));
      await restoreAs("pod-a", pod, [held({ acceptFrom: says, epoch: (epoch as number) + 1 })]);
      expect(await sends(CAROL)).toMatchObject(answer);
    },
  );

  test("says it anew where the agent was taken by a heartbeat since, before the replica heard of the register", async () => {
    const { acceptFrom: key, route } = await bench.keys();
    await registers([ALICE]);
    const older = await bench.client.hget(key, BOB);
    await registers([MALLORY]);
    await bench.client.hset(key, BOB, older as string);
    await bench.client.hdel(route, BOB);
    const { epoch } = presence(await pod.heartbeat(BOB));
    await restoreAs("pod-a", pod, [
      held({ acceptFrom: acceptFromOf({ accept_from: [MALLORY] }), epoch: epoch as number }),
    ]);
    expect(await sends(MALLORY)).toMatchObject(ACCEPTED);
    expect(await sends(ALICE)).toEqual(REFUSED);
  });

  test("of a connection that does not know leaves what Redis has, whoever gives way", async () => {
    await bench.ear("pod-a");
    const { epoch } = presence(await registers([ALICE]));
    await restoreAs("pod-b", pod, [held({ connection: "c5", epoch: (epoch as number) + 1 })]);
    expect(await sends(MALLORY)).toEqual(REFUSED);
  });

  test("goes over what an owner said that gives way", async () => {
    await bench.ear("pod-a");
    await bench.ear("pod-b");
    const epoch = presence(await registers([MALLORY], { connection: "c1" })).epoch as number;
    await restoreAs("pod-b", pod, [held({ acceptFrom, connection: "c5", epoch: epoch + 1 })]);
    expect(await sends(MALLORY)).toEqual(REFUSED);
    await restoreAs("pod-c", pod, [held({ acceptFrom: acceptFromOf({}), connection: "c6", epoch: epoch + 2 })]);
    expect(await sends(MALLORY)).toMatchObject(ACCEPTED);
  });
});
