import { beforeEach, expect, test } from "@jest/globals";
import type { Acceptance, AcceptanceItem } from "window/acceptance/acceptance.ts";
import { DecisionRepeats, type PreparedItem } from "../src/decision-repeats.ts";

const UNAVAILABLE: Acceptance = { outcome: "unavailable" };
const ACCEPTED: Acceptance = {
  ...{ outcome: "accepted", about: "delivery", delivery: "stale" },
  ...{ sessionId: null, sessionStatus: null, acceptedAt: 0 },
};

let accepting: AcceptanceItem[];
let repeats: DecisionRepeats;

beforeEach(() => {
  accepting = [];
  repeats = new DecisionRepeats({ accept: (item) => accepting.push(item) });
});

const decision = (text: string) => ({ text, kind: "session_decision" }) as PreparedItem;

/** What is repeated at a time, which is answered so. */
function repeatedAt(now: number, answer: Acceptance): string[] {
  repeats.flush(now);
  const sent = accepting.splice(0);
  for (const { done } of sent) done(answer);
  return sent.map(({ text }) => text);
}

test("a decision whose last step had no answer is taken to its requester again until it has one", () => {
  repeats.keep(decision("a"), 0);
  repeats.keep(decision("b"), 0);
  expect(repeatedAt(1000, UNAVAILABLE)).toEqual(["a", "b"]);
  expect(repeatedAt(2000, ACCEPTED)).toEqual(["a", "b"]);
  expect([repeatedAt(3000, ACCEPTED), repeats.size]).toEqual([[], 0]);
});

test("it is so for 30 s, and never twice at the same time", () => {
  repeats.keep(decision("a"), 0);
  repeats.flush(29_000);
  repeats.flush(29_999);
  expect(accepting).toHaveLength(1);
  accepting[0]?.done(UNAVAILABLE);
  accepting = [];
  expect([repeatedAt(30_000, UNAVAILABLE), repeats.size]).toEqual([[], 0]);
});

test("the same decision sent again meanwhile is one, for 30 s more", () => {
  repeats.keep(decision("a"), 0);
  repeats.flush(1000);
  repeats.keep(decision("a"), 1500);
  accepting.splice(0)[0]?.done(ACCEPTED);
  expect([repeatedAt(31_000, UNAVAILABLE), repeatedAt(31_500, UNAVAILABLE)]).toEqual([["a"], []]);
});

test("no more than a thousand are repeated", () => {
  for (let n = 0; n < 1001; n += 1) repeats.keep(decision(String(n)), 0);
  expect(repeatedAt(1000, ACCEPTED)).toHaveLength(1000);
});
