import { describe, expect, test } from "@jest/globals";
import { Ledger, tally, violations } from "../../../support/ledger.ts";
import { AHEAD_MS, Book } from "./book.ts";
import type { Told } from "./crowd.ts";

const BOB = "agent://bob";
const message = (number: number) => `agent://alice ${BOB} ${number}`;

/** A book, and what agents tell it: alice in process `one`, bob in process `two`. */
function opened() {
  const book = new Book(new Ledger());
  const hear = (told: Told, life: string) => book.hear("at" in told ? { ...told, at: told.at + AHEAD_MS } : told, life);
  return {
    book,
    sent: (n: number, at: number) => hear({ told: "sent", id: message(n), at }, "one"),
    accepted: (n: number, at: number, { duplicate = false, realtime = true } = {}) =>
      hear({ told: "accepted", id: message(n), at, duplicate, realtime }, "one"),
    failed: (n: number, at: number, outcome: "refused" | "unknown") =>
      hear({ told: "failed", id: message(n), at, code: "timeout", outcome }, "one"),
    delivered: (n: number, at: number) => hear({ told: "delivered", id: message(n), agent: BOB, at }, "two"),
    online: (at: number) => hear({ told: "online", agent: BOB, at }, "two"),
    broken: () => violations(book.content).map(({ kind }) => kind),
  };
}

describe("The book of a soak", () => {
  test("is content with a delivery that it hears of before its sending", () => {
    const { book, sent, accepted, delivered, broken } = opened();
    delivered(1, 20);
    sent(1, 10);
    accepted(1, 15);
    expect([broken(), tally(book.content)]).toEqual([[], expect.objectContaining({ promised: 1, delivered: 1 })]);
  });

  test("sees what is lost, delivered twice, out of order, delivered though refused, or of nobody", () => {
    const { sent, accepted, failed, delivered, broken } = opened();
    for (const n of [1, 2, 3, 4]) sent(n, n);
    for (const n of [1, 2, 3]) accepted(n, 10 + n);
    failed(4, 14, "refused");
    for (const [i, n] of [3, 2, 2, 4, 5].entries()) delivered(n, 20 + i);
    expect(broken().sort()).toEqual(
      ["delivered though refused", "delivered twice", "never sent", "out of order", "promised and lost"].sort(),
    );
  });

  test("holds the order of each sender alone", () => {
    const { book, sent, accepted, delivered, broken } = opened();
    sent(1, 10);
    book.hear({ told: "sent", id: `agent://carol ${BOB} 1`, at: 5 }, "one");
    accepted(1, 15);
    delivered(1, 20);
    book.hear({ told: "delivered", id: `agent://carol ${BOB} 1`, agent: BOB, at: 21 }, "two");
    expect(broken()).toEqual([]);
  });

  test("takes a repeat, and an outcome that is unknown, for what may have been delivered, and owes nothing", () => {
    const { book, sent, accepted, failed, delivered, broken } = opened();
    for (const n of [1, 2, 3, 4]) sent(n, n);
    accepted(1, 11, { duplicate: true });
    accepted(2, 12, { duplicate: true });
    failed(3, 13, "unknown");
    failed(4, 14, "unknown");
    delivered(1, 21);
    delivered(3, 23);
    expect([broken(), book.repeated, book.unsettled]).toEqual([[], 2, 0]);
  });

  test("excuses what was promised to an agent that was away, until it is online again", () => {
    const { book, sent, accepted, online } = opened();
    book.away([BOB]);
    const from = book.content.gaps[0]?.from as number;
    online(from - 1);
    sent(1, from + 1);
    accepted(1, from + 2);
    online(from + 10);
    sent(2, from + 11);
    accepted(2, from + 12);
    expect(violations(book.content)).toEqual([{ kind: "promised and lost", id: message(2) }]);
  });

  test("counts what has no answer: of the living as unsettled, of the dead as held", () => {
    const { book, sent, accepted } = opened();
    for (const n of [1, 2, 3]) sent(n, n);
    accepted(1, 11);
    expect([book.unsettled, book.heldByTheDead]).toEqual([2, 0]);
    book.bury("one");
    expect([book.unsettled, book.heldByTheDead]).toEqual([0, 2]);
  });

  test("knows who is back by the answer to what was sent since", () => {
    const { book, sent, accepted } = opened();
    const back = book.backSince(20);
    sent(1, 10);
    accepted(1, 25);
    expect([...back]).toEqual([]);
    for (const n of [2, 3]) sent(n, 20 + n);
    for (const n of [2, 3]) accepted(n, 30 + n);
    expect([...back]).toEqual([["agent://alice", expect.closeTo(12)]]);
  });
});
