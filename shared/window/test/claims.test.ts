import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { HTTP_LIMITS } from "protocol/contract/limits.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { readSnapshot } from "../src/snapshot.ts";
import { claimOf, delivery, messageOf, requestOf } from "./envelopes.ts";
import { Bench, type Pod } from "./kit.ts";

const bench = new Bench();
let pod: Pod;
const CLAIM = claimOf("key-1", "body");

const send = (claim = CLAIM, to = "agent://bob") =>
  pod.accept(messageOf("agent://alice", to), { origin: "gateway", claim });

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod({ pod: "pod-a" });
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

describe("an idempotency claim", () => {
  test("answers the next request with the first answer, whatever became of the target since, and sends nothing", async () => {
    const ear = await bench.ear("pod-a");
    const message = messageOf("agent://alice", "agent://bob");
    const first = delivery(await pod.accept(message, { origin: "gateway", claim: CLAIM }));
    await pod.register("agent://bob");
    expect(await send()).toEqual({
      outcome: "replayed",
      first: { envelopeId: message.id, delivery: "not_seen", sessionId: null, acceptedAt: first.acceptedAt },
    });
    expect(await ear.lines()).toEqual([]);
    expect((await readSnapshot(pod.link, pod.window)).counters.get("simple_send_accepted")).toBe(1);
  });

  test("of a session request answers with the first session", async () => {
    const request = requestOf("agent://alice", "agent://bob");
    const { sessionId, acceptedAt } = delivery(await pod.accept(request, { origin: "gateway", claim: CLAIM }));
    const again = await pod.accept(requestOf("agent://alice", "agent://bob"), { origin: "gateway", claim: CLAIM });
    const first = { envelopeId: request.id, delivery: "not_seen", sessionId, acceptedAt };
    expect(again).toEqual({ outcome: "replayed", first });
    expect((await readSnapshot(pod.link, pod.window)).proofs).toHaveLength(1);
  });

  test("gives an offline target's delivery status as stale, both times", async () => {
    await bench.seed("agent://bob", "pod-a c1 7", Date.now() - 3_600_000);
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
    const unclaimed = await pod.accept(messageOf("agent://alice", "agent://bob"), { origin: "gateway" });
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
