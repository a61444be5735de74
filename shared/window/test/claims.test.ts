import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import slotOf from "cluster-key-slot";
import type { Envelope } from "relay-protocol/wire/envelope.ts";
import { HTTP_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Acceptance, Claim, Prepared } from "../src/acceptance/acceptance.ts";
import { readSnapshot } from "../src/counters/snapshot.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { unavailable } from "../src/redis/redis-calls.ts";
import { ALICE, BOB, claimOf, delivery, messageOf, requestOf } from "./envelopes.ts";
import { type Ear, type Pod, redisBench, whileRedisHangs } from "./kit.ts";

const bench = redisBench();

describe("an idempotency claim", () => {
  let pod: Pod;
  const CLAIM = claimOf("key-1", "body");
  const send = (claim = CLAIM, to = BOB) => pod.accept(messageOf(ALICE, to), { origin: "gateway", claim });

  beforeEach(async () => {
    pod = await bench.pod({ pod: "pod-a" });
  });

  test("answers the next request with the first answer, whatever became of the target since, and sends nothing", async () => {
    const ear = await bench.ear("pod-a");
    const message = messageOf(ALICE, BOB);
    const first = delivery(await pod.accept(message, { origin: "gateway", claim: CLAIM }));
    await pod.register(BOB);
    expect(await send()).toEqual({
      outcome: "replayed",
      first: { envelopeId: message.id, delivery: "not_seen", sessionId: null, acceptedAt: first.acceptedAt },
    });
    expect(await ear.lines()).toEqual([]);
    expect((await readSnapshot(pod.link, pod.window)).counters.get("simple_send_accepted")).toBe(1);
  });

  test("of a session request answers with the first session", async () => {
    const request = requestOf(ALICE, BOB);
    const { sessionId, acceptedAt } = delivery(await pod.accept(request, { origin: "gateway", claim: CLAIM }));
    const again = await pod.accept(requestOf(ALICE, BOB), { origin: "gateway", claim: CLAIM });
    const first = { envelopeId: request.id, delivery: "not_seen", sessionId, acceptedAt };
    expect(again).toEqual({ outcome: "replayed", first });
    expect((await readSnapshot(pod.link, pod.window)).proofs).toHaveLength(1);
  });

  test("gives an offline target's delivery status as stale, both times", async () => {
    await bench.seed(BOB, "pod-a c1 7", Date.now() - 3_600_000);
    expect(await send()).toMatchObject({ delivery: "stale" });
    expect(await send()).toMatchObject({ outcome: "replayed", first: { delivery: "stale" } });
  });

  test("with another body is reused, and sends nothing", async () => {
    await send();
    expect(await send({ ...CLAIM, bodyDigest: claimOf("", "another").bodyDigest })).toEqual({ outcome: "reused" });
    expect((await readSnapshot(pod.link, pod.window)).counters.get("published_envelopes")).toBe(1);
  });

  test("used twice in one tick answers the second request with the first's answer", async () => {
    const outcomes = await Promise.all([send(), send(), send({ ...CLAIM, bodyDigest: "other" })]);
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(["accepted", "replayed", "reused"]);
  });

  test("does not answer for another claim, nor for a request without one", async () => {
    await send();
    expect(await send(claimOf("key-2", "body"))).toMatchObject({ outcome: "accepted" });
    const unclaimed = await pod.accept(messageOf(ALICE, BOB), { origin: "gateway" });
    expect(unclaimed).toMatchObject({ outcome: "accepted" });
  });

  test("is kept for ten minutes, as digests and ids only", async () => {
    await send();
    const key = partitionKeys.idempotency(0, CLAIM.digest);
    const left = await bench.client.pttl(key);
    expect(left).toBeGreaterThan(HTTP_LIMITS.idempotencyMs - 10_000);
    expect(left).toBeLessThanOrEqual(HTTP_LIMITS.idempotencyMs);
    const fields = ["accepted_at", "body", "envelope_id", "session_id", "status"];
    expect(Object.keys(await bench.client.hgetall(key)).sort()).toEqual(fields);
  });
});

describe("with several partitions", () => {
  const PARTITIONS = 4;
  const ROUNDS = 12;
  const partitionIn = (text: string) => partitionOf(text, PARTITIONS);

  /** One target in each partition. */
  const TARGETS = Array.from({ length: PARTITIONS }, (_, p) => {
    const names = Array.from({ length: 99 }, (_, n) => `agent://target-${n}`);
    return names.find((name) => partitionIn(name) === p) as string;
  });
  const CLAIM = claimOf("key", "body");
  const OTHER_BODY = claimOf("key", "another body");

  /** The three partitions differ: that of the claim's digest, of the first body's target, and of the other body's. */
  const [BOB, CAROL] = TARGETS.filter((_, p) => p !== partitionIn(CLAIM.digest)) as [string, string];

  /** Two gateways of one window; the first is the pod that has Bob, too. */
  let here: Pod;
  let there: Pod;
  let ear: Ear;

  beforeEach(async () => {
    here = await bench.pod({ pod: "pod-a", partitions: PARTITIONS });
    there = await bench.pod({ pod: "pod-b", partitions: PARTITIONS });
    ear = await bench.ear("pod-a", partitionIn(BOB));
    await here.register(BOB);
  });

  const ask = (at: Pod, envelope: Envelope, claim: Claim = CLAIM): Promise<Acceptance> =>
    at.take(envelope, { origin: "gateway", claim });

  /** How often anything was delivered to Bob. */
  const deliveries = async () => (await ear.lines()).length;
  const boundKeys = () => bench.client.keys("relay:*:idempotency-body:*");
  const firstOf = (envelope: Envelope, acceptance: Acceptance) => {
    const { delivery: status, sessionId, acceptedAt } = delivery(acceptance);
    return { outcome: "replayed", first: { envelopeId: envelope.id, delivery: status, sessionId, acceptedAt } };
  };

  describe.each([
    ["message", messageOf],
    ["session request", requestOf],
  ])("a %s under an Idempotency-Key", (_, make) => {
    const envelopeTo = (to: string) => make(ALICE, to);

    test("gets its first answer again at any gateway, with the status that its target had then", async () => {
      const first = envelopeTo(BOB);
      const answer = await ask(here, first);
      expect(answer).toMatchObject({ outcome: "accepted", delivery: "online" });
      await bench.client.hdel((await bench.keys(partitionIn(BOB))).route, BOB);
      expect(await ask(there, envelopeTo(BOB))).toEqual(firstOf(first, answer));
      expect(await deliveries()).toBe(1);
    });

    test("is accepted once when two gateways are asked at once", async () => {
      for (let n = 0; n < ROUNDS; n += 1) {
        const claim = claimOf(`key-${n}`, "body");
        const answers = await Promise.all([here, there].map((at) => ask(at, envelopeTo(BOB), claim)));
        expect(answers.map(({ outcome }) => outcome).sort()).toEqual(["accepted", "replayed"]);
      }
      expect(await deliveries()).toBe(ROUNDS);
    });

    test("is accepted at another gateway when the first died once its key was bound", async () => {
      await here.prepare(envelopeTo(BOB), { claim: CLAIM });
      expect(await ask(there, envelopeTo(BOB))).toMatchObject({ outcome: "accepted", delivery: "online" });
      expect(await deliveries()).toBe(1);
    });

    test("is not sent again when the answer to its acceptance was lost", async () => {
      const first = envelopeTo(BOB);
      const run = here.link.run.bind(here.link);
      jest.spyOn(here.link, "run").mockImplementation(async (script, keys, args) => {
        const reply = await run(script, keys, args);
        if (script === "accept") throw unavailable();
        return reply;
      });
      expect(await ask(here, first)).toEqual({ outcome: "unavailable" });
      expect(await ask(there, envelopeTo(BOB))).toMatchObject({ outcome: "replayed", first: { envelopeId: first.id } });
      expect(await deliveries()).toBe(1);
    });

    test("is not sent again by a gateway that went on only after a repeat at another", async () => {
      const [slow, repeat] = [envelopeTo(BOB), envelopeTo(BOB)];
      const prepared = (await here.prepare(slow, { claim: CLAIM })) as Prepared;
      const answer = await ask(there, repeat);
      const late = await here.accept(slow, { origin: "gateway", claim: CLAIM, prepared });
      expect(late).toEqual(firstOf(repeat, answer));
      expect(await deliveries()).toBe(1);
    });

    test("does nothing where Redis hangs once its key was bound, and is accepted when it is sent again", async () => {
      const outcome = await whileRedisHangs(bench, here, () => ask(here, envelopeTo(BOB)), "accept");
      expect(outcome).toMatchObject({ outcome: "unavailable" });
      expect(await deliveries()).toBe(0);
      expect(await ask(there, envelopeTo(BOB))).toMatchObject({ outcome: "accepted" });
      expect(await deliveries()).toBe(1);
    });

    test("is refused with another body, though that has a target of another partition", async () => {
      await ask(here, envelopeTo(BOB));
      expect(await ask(there, envelopeTo(CAROL), OTHER_BODY)).toEqual({ outcome: "reused" });
    });

    test("is accepted with one of two bodies for targets of different partitions that come at once", async () => {
      for (let n = 0; n < ROUNDS; n += 1) {
        const bodies = [
          [here, BOB, "body"],
          [there, CAROL, "another body"],
        ] as const;
        const answers = await Promise.all(
          bodies.map(([at, to, body]) => ask(at, envelopeTo(to), claimOf(`key-${n}`, body))),
        );
        expect(answers.map(({ outcome }) => outcome).sort()).toEqual(["accepted", "reused"]);
      }
    });

    test("takes no call with keys of two slots, which a cluster would refuse", async () => {
      const calls = jest.spyOn(here.link, "run");
      for (const to of TARGETS) await ask(here, envelopeTo(to), claimOf(`key for ${to}`, "body"));
      const names = calls.mock.calls.map(([name]) => name);
      expect(names).toEqual(expect.arrayContaining(["bind_claim", "accept"]));
      expect(calls.mock.calls.map(([, keys]) => new Set(keys.map(slotOf)).size)).toEqual(names.map(() => 1));
    });

    test("is refused with a new key while Redis is short of memory, which leaves nothing; one with a known key is not", async () => {
      const first = envelopeTo(BOB);
      const answer = await ask(here, first);
      jest.spyOn(here.link.memory, "isShort", "get").mockReturnValue(true);
      const bound = await boundKeys();
      expect(await ask(here, envelopeTo(BOB), claimOf("new", "body"))).toEqual({ outcome: "over_capacity" });
      expect(await boundKeys()).toEqual(bound);
      expect(await ask(here, envelopeTo(BOB))).toEqual(firstOf(first, answer));
    });
  });

  test("a session request that a bound refused is accepted under its Idempotency-Key once there is room, with its own body alone", async () => {
    const opened = (await bench.keys(partitionIn(BOB))).opened(ALICE);
    await bench.client.set(opened, SESSION_LIMITS.openedPerMinute);
    expect(await ask(here, requestOf(ALICE, BOB))).toMatchObject({ outcome: "rate_limited" });
    await bench.client.del(opened);
    expect(await ask(there, requestOf(ALICE, CAROL), OTHER_BODY)).toEqual({ outcome: "reused" });
    expect(await ask(there, requestOf(ALICE, BOB))).toMatchObject({ outcome: "accepted" });
  });

  describe("an Idempotency-Key", () => {
    const key = partitionKeys.idempotencyBody(partitionIn(CLAIM.digest), CLAIM.digest);

    test("is bound to its body for ten minutes from when it was used last", async () => {
      await ask(here, messageOf(ALICE, BOB));
      expect(await bench.client.get(key)).toBe(CLAIM.bodyDigest);
      await bench.client.pexpire(key, 5000);
      await ask(there, messageOf(ALICE, BOB));
      const left = await bench.client.pttl(key);
      expect(left).toBeGreaterThan(HTTP_LIMITS.idempotencyMs - 10_000);
      expect(left).toBeLessThanOrEqual(HTTP_LIMITS.idempotencyMs);
    });

    test("is not bound by a call that Redis comes to too late: it is free for another request", async () => {
      const outcome = await whileRedisHangs(bench, here, () => ask(here, messageOf(ALICE, BOB)));
      expect(outcome).toMatchObject({ outcome: "unavailable" });
      expect(await boundKeys()).toEqual([]);
      expect(await ask(there, messageOf(ALICE, CAROL), OTHER_BODY)).toMatchObject({ outcome: "accepted" });
    });

    test("is not bound in a window that is not open any more", async () => {
      const deadline = here.link.unixTimeOf(key, performance.now()) + 400;
      const keys = [partitionKeys.window(partitionIn(CLAIM.digest)), key];
      const args = [deadline, "win_of_before", CLAIM.bodyDigest, HTTP_LIMITS.idempotencyMs, 0];
      expect(await here.link.run("bind_claim", keys, args)).toEqual(["window"]);
      expect(await boundKeys()).toEqual([]);
    });

    test("takes no call of its own with one partition", async () => {
      await bench.clear();
      await bench.open();
      const pod = await bench.pod();
      await ask(pod, messageOf(ALICE, BOB));
      await bench.client.config("RESETSTAT");
      await ask(pod, messageOf(ALICE, BOB), claimOf("new", "body"));
      expect(await bench.commandCalls()).toMatchObject({ evalsha: 1 });
    });
  });
});
