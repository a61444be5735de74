import { isRefusal, type Refusal } from "@agent-relay/shared/intake/refusal.ts";
import { inspect, type VerifiedEnvelope } from "@agent-relay/shared/intake/steps.ts";
import { Verifier } from "@agent-relay/shared/signing/verifier.ts";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ED25519, HMAC, NOW, RING, signed } from "../../../shared/test/intake/support.ts";
import { until } from "../../../test/support/until.ts";
import { Lane } from "../src/lane.ts";

const verifier = new Verifier();
beforeAll(() => verifier.start());
afterAll(() => verifier.stop());

type Result = Refusal | VerifiedEnvelope;

const idOf = (result: Result) => (isRefusal(result) ? `refused ${result.envelopeId}` : result.envelope.id);

/** Candidates as intake makes them. HMAC is checked at once, Ed25519 on another thread: its answers come later. */
const hmac = (id: string) => inspect(JSON.stringify(signed({ id })), RING, NOW);
const ed25519 = (id: string) => inspect(JSON.stringify(signed({ id, key_id: "alice-ed" }, ED25519)), RING, NOW);
const refused = (id: string) => inspect(JSON.stringify({ ...signed({ id }), extra: 1 }), RING, NOW);
const forged = (id: string) => inspect(JSON.stringify({ ...signed({ id }, HMAC), task_id: "t" }), RING, NOW);

/** A lane that takes everything but what `waits` names. */
function lane() {
  const taken: string[] = [];
  const waits = new Set<string>();
  const take = (result: Result) => {
    if (waits.has(idOf(result))) return false;
    taken.push(idOf(result));
    return true;
  };
  const made = new Lane(verifier, take, () => {});
  return { lane: made, taken, waits };
}

describe("a lane", () => {
  test("hands on in the order of arrival, though later signatures are checked sooner", async () => {
    const { lane: it, taken } = lane();
    const makers = [ed25519, hmac, refused, ed25519, hmac, forged];
    const arrived = Array.from({ length: 60 }, (_, n) => ({ id: `e${n}`, make: makers[n % makers.length] ?? hmac }));
    for (const { id, make } of arrived) it.push(make(id));
    expect(taken).toEqual([]);
    await until("all are handed on", () => it.length === 0);
    const isRefusedBy = (make: unknown) => make === refused || make === forged;
    expect(taken).toEqual(arrived.map(({ id, make }) => (isRefusedBy(make) ? `refused ${id}` : id)));
  });

  test("hands on at once what needs no waiting", () => {
    const { lane: it, taken } = lane();
    for (const candidate of [hmac("a"), refused("b"), hmac("c")]) it.push(candidate);
    expect(taken).toEqual(["a", "refused b", "c"]);
    expect(it.length).toBe(0);
  });

  test("keeps what is not taken at its head, and everything behind it", () => {
    const { lane: it, taken, waits } = lane();
    waits.add("b");
    for (const candidate of [hmac("a"), hmac("b"), refused("c"), hmac("d")]) it.push(candidate);
    it.drain();
    expect(taken).toEqual(["a"]);
    expect(it.length).toBe(3);
    waits.clear();
    it.drain();
    expect(taken).toEqual(["a", "b", "refused c", "d"]);
    expect(it.length).toBe(0);
  });

  test("hands each on once, even when its taker drains it", () => {
    const taken: string[] = [];
    const take = (result: Result) => {
      it.drain();
      taken.push(idOf(result));
      it.drain();
      return true;
    };
    const it: Lane = new Lane(verifier, take, () => {});
    for (const candidate of [hmac("a"), hmac("b")]) it.push(candidate);
    expect(taken).toEqual(["a", "b"]);
  });
});
