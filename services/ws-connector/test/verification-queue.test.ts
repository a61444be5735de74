import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { isRefusal, type Refusal } from "relay-protocol/intake/refusal.ts";
import { type Candidate, checkBeforeSignature, type VerifiedEnvelope } from "relay-protocol/intake/steps.ts";
import { EnvelopeVerifier } from "relay-runtime/verification/envelope-verifier.ts";
import { SignatureVerifier } from "relay-runtime/verification/signature-verifier.ts";
import { ED25519, HMAC, KEYS, NOW, signed } from "../../../shared/protocol/test/intake/support.ts";
import { until } from "../../../test/support/until.ts";
import { type Arrival, VerificationQueue } from "../src/intake/verification-queue.ts";

const signatures = new SignatureVerifier();
const at = (cameAt: number): Arrival => ({ cameAt, wasOwned: false });
const verifier = new EnvelopeVerifier(signatures);
const others = { verifier, recheck: () => undefined, failed: () => {}, advanced: () => {} };
beforeAll(() => signatures.start());
afterAll(() => signatures.stop());

type Result = Refusal | VerifiedEnvelope;

const idOf = (result: Result) => (isRefusal(result) ? `refused ${result.envelopeId}` : result.envelope.id);

/** Candidates as intake makes them. HMAC is checked at once, Ed25519 on another thread: its answers come later. */
const hmac = (id: string) => checkBeforeSignature(JSON.stringify(signed({ id })), KEYS, NOW);
const ed25519 = (id: string) =>
  checkBeforeSignature(JSON.stringify(signed({ id, key_id: "alice-ed" }, ED25519)), KEYS, NOW);
const refused = (id: string) => checkBeforeSignature(JSON.stringify({ ...signed({ id }), extra: 1 }), KEYS, NOW);
const forged = (id: string) =>
  checkBeforeSignature(JSON.stringify({ ...signed({ id }, HMAC), task_id: "t" }), KEYS, NOW);

const FAULT = new Error("a fault of ours");
const fault = () => {
  throw FAULT;
};

/** A candidate whose check after its signature fails through a fault of the relay. */
function unjudged(): Candidate {
  const candidate = ed25519("unjudged") as Candidate;
  return { ...candidate, entry: { ...candidate.entry, mayAct: fault } };
}

/** A queue whose head is kept while its id is in `kept`. */
function makeQueue() {
  const handled: string[] = [];
  const kept = new Set<string>();
  const handle = (result: Result) => {
    if (kept.has(idOf(result))) return false;
    handled.push(idOf(result));
    return true;
  };
  return { queue: new VerificationQueue({ ...others, handle }), handled, kept };
}

describe("a verification queue", () => {
  test("hands over in the order of arrival, though later signatures are checked sooner", async () => {
    const { queue, handled } = makeQueue();
    const makers = [ed25519, hmac, refused, ed25519, hmac, forged];
    const arrived = Array.from({ length: 60 }, (_, n) => ({ id: `e${n}`, make: makers[n % makers.length] ?? hmac }));
    for (const { id, make } of arrived) queue.push(make(id), at(0));
    expect(handled).toEqual([]);
    await until("all are handled", () => queue.length === 0);
    const isRefusedBy = (make: unknown) => make === refused || make === forged;
    expect(handled).toEqual(arrived.map(({ id, make }) => (isRefusedBy(make) ? `refused ${id}` : id)));
  });

  test("hands over at once what needs no waiting", () => {
    const { queue, handled } = makeQueue();
    for (const candidate of [hmac("a"), refused("b"), hmac("c")]) queue.push(candidate, at(0));
    expect(handled).toEqual(["a", "refused b", "c"]);
    expect(queue.length).toBe(0);
  });

  test("says of each when it came in", async () => {
    const came: [string, number][] = [];
    const handle = (result: Result, { cameAt }: Arrival) => came.push([idOf(result), cameAt]) > 0;
    const queue = new VerificationQueue({ ...others, handle });
    queue.push(ed25519("a"), at(17));
    queue.push(hmac("b"), at(42));
    await until("both are handled", () => queue.length === 0);
    expect(came).toEqual([
      ["a", 17],
      ["b", 42],
    ]);
  });

  test("keeps what is not handled at its head, and everything behind it", () => {
    const { queue, handled, kept } = makeQueue();
    kept.add("b");
    for (const candidate of [hmac("a"), hmac("b"), refused("c"), hmac("d")]) queue.push(candidate, at(0));
    queue.advance();
    expect(handled).toEqual(["a"]);
    expect(queue.length).toBe(3);
    kept.clear();
    queue.advance();
    expect(handled).toEqual(["a", "b", "refused c", "d"]);
    expect(queue.length).toBe(0);
  });

  test("judges an envelope once, however often it hands it over", () => {
    let judged = 0;
    const counting = {
      verify: (candidate: Candidate, done: Parameters<EnvelopeVerifier["verify"]>[1]) =>
        verifier.verify(candidate, (judge) => {
          done(() => {
            judged += 1;
            return judge();
          });
        }),
    } as EnvelopeVerifier;
    const queue = new VerificationQueue({ ...others, verifier: counting, handle: () => false });
    queue.push(hmac("kept"), at(0));
    for (let n = 0; n < 3; n += 1) queue.advance();
    expect([judged, queue.length]).toEqual([1, 1]);
  });

  const waiting = { text: "waiting", keyId: "jkt-1", agent: "agent://alice" };

  test.each([
    ["at once", hmac],
    ["on another thread", ed25519],
  ])("checks an envelope once when its key has come, and hands it over in its turn: %s", async (_, make) => {
    const handled: string[] = [];
    const candidates: (Refusal | Candidate)[] = [];
    const recheck = () => candidates.pop();
    const handle = (result: Result) => handled.push(idOf(result)) > 0;
    const queue = new VerificationQueue({ ...others, handle, recheck });
    queue.pushWaiting(waiting, at(0));
    queue.push(hmac("behind"), at(0));
    expect([handled, queue.length]).toEqual([[], 2]);
    candidates.push(make("checked again"), make("waited"));
    queue.advance();
    queue.advance();
    await until("both are handled", () => queue.length === 0);
    expect([handled, candidates.length]).toEqual([["waited", "behind"], 1]);
  });

  test.each<[string, (queue: VerificationQueue) => void]>([
    ["cannot be handled", (queue) => queue.push(hmac("broken"), at(0))],
    ["cannot be verified", (queue) => queue.push(hmac("unverified"), at(0))],
    ["cannot be judged once it is verified", (queue) => queue.push(unjudged(), at(0))],
    ["waited for its key, and cannot be checked", (queue) => queue.pushWaiting(waiting, at(0))],
  ])("says which envelope it is, in its turn, and goes on behind it, where one %s", async (_, pushBroken) => {
    const done: string[] = [];
    const queue = new VerificationQueue({
      ...others,
      verifier: {
        verify: (candidate: Candidate, answer: Parameters<EnvelopeVerifier["verify"]>[1]) =>
          candidate.envelope.id === "unverified" ? fault() : verifier.verify(candidate, answer),
      } as EnvelopeVerifier,
      recheck: fault,
      handle: (result) => (idOf(result) === "broken" ? fault() : done.push(idOf(result)) > 0),
      failed: (about, err) => {
        const id = typeof about === "string" ? about : "envelope" in about ? about.envelope.id : about.envelopeId;
        done.push(`${id} failed: ${err === FAULT}`);
      },
    });
    queue.push(ed25519("before"), at(0));
    pushBroken(queue);
    queue.push(hmac("behind"), at(0));
    await until("all are done with", () => queue.length === 0);
    expect(done).toEqual([
      "before",
      expect.stringMatching(/^(broken|unverified|unjudged|waiting) failed: true$/),
      "behind",
    ]);
  });

  test("hands each over once, even when its handler advances it", () => {
    const handled: string[] = [];
    const handle = (result: Result) => {
      queue.advance();
      handled.push(idOf(result));
      queue.advance();
      return true;
    };
    const queue: VerificationQueue = new VerificationQueue({ ...others, handle });
    for (const candidate of [hmac("a"), hmac("b")]) queue.push(candidate, at(0));
    expect(handled).toEqual(["a", "b"]);
  });
});
