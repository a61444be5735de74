import { describe, expect, test } from "@jest/globals";
import type { Answer, Entry, LedgerContent } from "../../support/ledger.ts";
import { type Action, actionsOf, isFault, isOnCluster, losesRedis } from "./actions.ts";
import { breaches, earlyBreaches, miscounts } from "./checks.ts";
import { OpenRequests } from "./driver.ts";

const ACTIONS = 20_000;

function actions(seed: number): Action[] {
  const generated = actionsOf(seed);
  return Array.from({ length: ACTIONS }, () => generated.next().value as Action);
}

describe("The actions of a random run", () => {
  test("are the same for the same seed, and others for another", () => {
    expect(actions(5)).toEqual(actions(5));
    expect(actions(6)).not.toEqual(actions(5));
  });

  test("hold every kind, those of a cluster on every second seed, and losses of Redis on every two of four", () => {
    const kinds = (seed: number) => new Set(actions(seed).map(({ act }) => act));
    const without = (seed: number, ...lost: string[]) => new Set([...kinds(seed)].filter((act) => !lost.includes(act)));
    expect([kinds(8).size, kinds(9).size]).toEqual([19, 22]);
    expect(kinds(10)).toEqual(without(8, "restartRedis"));
    expect(kinds(11)).toEqual(without(9, "killPrimary", "loseShard"));
    expect([8, 9, 10, 11].map(losesRedis)).toEqual([true, true, false, false]);
    expect([8, 9, 10, 11].map(isOnCluster)).toEqual([false, true, false, true]);
  });

  test("leave time between two faults, and name two different agents where two are needed", () => {
    const faults = actions(8).filter((action) => isFault(action));
    for (const [n, { at }] of faults.entries()) expect(at - (faults[n - 1]?.at ?? 0)).toBeGreaterThanOrEqual(1500);
    for (const action of actions(8)) {
      if (action.act === "message") expect(action.to).not.toBe(action.agent);
      if (action.act === "forge") expect(action.as).not.toBe(action.agent);
    }
  });
});

describe("An agent of a random run", () => {
  test("decides each session once, also when the request comes again in a new window", () => {
    const asked = new OpenRequests();
    const request = (session_id: string) => ({ frame: "deliver", session_id });
    asked.add(request("ses_1"));
    asked.add(request("ses_1"));
    asked.add(request("ses_2"));
    expect(asked.next()).toEqual(request("ses_1"));
    asked.add(request("ses_1"));
    expect([asked.next(), asked.next()]).toEqual([request("ses_2"), undefined]);
  });
});

const ACCEPTED: Answer = { at: 2, accepted: true, duplicate: false, deliverable: true };
const REPEATED: Answer = { ...ACCEPTED, at: 12, duplicate: true };
const refusedWith = (code: string, at = 2): Answer => ({ at, accepted: false, code });

/** An envelope that one connection sent, ten ms apart, once for each answer; delivered so many times. */
function entry(answers: readonly (Answer | undefined)[], deliveries = 1, type = "message.send"): Entry {
  return {
    ...{ id: "env", type, from: "agent://a", to: "agent://b" },
    attempts: answers.map((answer, n) => ({ at: 1 + 10 * n, connection: "con", order: n, ...(answer && { answer }) })),
    deliveries: Array.from({ length: deliveries }, (_, n) => ({
      at: 3,
      connection: "of b",
      agent: "agent://b",
      copy: "env pod",
      order: 50 + n,
    })),
  };
}

function content(one: Entry): LedgerContent {
  return { entries: [one], gaps: [], guardLosses: [], strangers: [] };
}

const FORGED = [{ id: "env", connection: "con", code: "bad_signature" }];
const found = (one: Entry, forged: typeof FORGED = [], open: string[] = []) =>
  breaches({ content: content(one), forged, open: new Set(open), now: 60_000 }).map(({ what }) => what);

describe("The checks of a random run", () => {
  test("find nothing where every promise is kept", () => {
    expect(found(entry([ACCEPTED, REPEATED]))).toEqual([]);
    expect(found(entry([refusedWith("unavailable"), { ...ACCEPTED, at: 12 }]))).toEqual([]);
    expect(found(entry([refusedWith("bad_signature")], 0), FORGED)).toEqual([]);
  });

  test("find a repeat that is not called a duplicate, and a refusal that is not due", () => {
    expect(found(entry([ACCEPTED, { ...ACCEPTED, at: 12 }]))).toContain("repeated, and not a duplicate");
    expect(found(entry([ACCEPTED, refusedWith("clock_skew", 12)]))).toEqual(["refused with clock_skew"]);
    expect(found(entry([refusedWith("unknown_session")], 0, "session.approve"))).toEqual([
      "refused with unknown_session",
    ]);
  });

  test("find a forgery that was accepted, refused with another code, or delivered", () => {
    const broken = "forged, and not refused with bad_signature";
    expect(found(entry([ACCEPTED]), FORGED)).toContain(broken);
    expect(found(entry([refusedWith("unknown_key")], 0), FORGED)).toEqual([broken]);
    expect(found(entry([undefined], 1), FORGED)).toContain(broken);
  });

  test("find what was never answered on a connection that is still there", () => {
    expect(found(entry([undefined], 0), [], ["con"])).toEqual(["never answered"]);
    expect(found(entry([undefined], 0), [], ["another"])).toEqual([]);
  });

  test("give a delivery time while the run goes on, and none in the end", () => {
    const missing = entry([ACCEPTED], 0);
    expect(found(missing)).toEqual(["promised and lost"]);
    expect(earlyBreaches(content(missing), [], 1000)).toEqual([]);
    expect(earlyBreaches(content(missing), [], 60_000)).toHaveLength(1);
  });

  test("hold the counters to the ledger, with room for what may have been accepted without an ack", () => {
    const counted = (one: Entry, n: number) =>
      miscounts(content(one), [], { published_envelopes: n, websocket_accepted: n }).length;
    expect([0, 1, 2].map((n) => counted(entry([ACCEPTED]), n))).toEqual([2, 0, 2]);
    expect([0, 1, 2].map((n) => counted(entry([undefined], 0), n))).toEqual([0, 0, 2]);
    expect([0, 1].map((n) => counted(entry([refusedWith("not_registered")], 0), n))).toEqual([0, 2]);
  });
});
