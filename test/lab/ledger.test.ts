import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "@jest/globals";
import {
  type Answer,
  type Attempt,
  type Entry,
  forgotten,
  type GuardLoss,
  Ledger,
  type LedgerContent,
  violations,
} from "../support/ledger.ts";
import { unavailabilities } from "./faults/survive.ts";
import { cut, killConnector } from "./faults.ts";
import type { Fleet, FleetPod } from "./fleet.ts";

/** Times are ms; an answer comes 10 ms after its sending. */

const promised = { accepted: true, duplicate: false, deliverable: true } as const;
const stale = { accepted: true, duplicate: false, deliverable: false } as const;
const repeat = { accepted: true, duplicate: true, deliverable: true } as const;
const refused = (code: string) => ({ accepted: false, code }) as const;

type Said = typeof promised | typeof stale | typeof repeat | ReturnType<typeof refused> | undefined;

function attempt(at: number, said: Said, connection = "one"): Attempt {
  const answer = said === undefined ? {} : { answer: { at: at + 10, ...said } as Answer };
  return { at, connection, order: at, ...answer };
}

function entry(
  attempts: Attempt[],
  deliveredAt: number[],
  { id = "e", to = "b", agent = "b", on = "two", pods = ["pod"] } = {},
): Entry {
  const deliveries = deliveredAt.map((at, n) => {
    return { at, order: at, connection: on, agent, copy: `${id} ${pods[n] ?? pods[0]}` };
  });
  return { id, type: "message.send", from: "a", to, attempts, deliveries };
}

function loss(at: number, agents?: readonly string[], since = Number.NEGATIVE_INFINITY): GuardLoss {
  return { at, since, agents };
}

function kinds(entries: Entry[], rest: Partial<LedgerContent> = {}): string[] {
  return violations({ entries, gaps: [], guardLosses: [], strangers: [], ...rest }).map(({ kind }) => kind);
}

describe("deliveries", () => {
  test("one delivery of what was promised, and none of what was not, are as promised", () => {
    expect(kinds([entry([attempt(0, promised)], [20]), entry([attempt(1, stale)], [])])).toEqual([]);
    expect(kinds([entry([attempt(0, refused("unavailable"))], [])])).toEqual([]);
    expect(kinds([entry([attempt(0, refused("unavailable")), attempt(50, repeat)], [20])])).toEqual([]);
  });

  test("a second delivery is one too many, whatever was answered", () => {
    expect(kinds([entry([attempt(0, promised)], [20, 21])])).toEqual(["delivered twice"]);
    expect(kinds([entry([attempt(0, refused("unavailable")), attempt(50, repeat)], [20, 60])])).toEqual([
      "delivered twice",
    ]);
  });

  test("the same envelope taken for new twice is a hole in the guard, delivered or not", () => {
    expect(kinds([entry([attempt(0, stale), attempt(50, stale)], [])])).toEqual(["accepted twice"]);
  });

  test("a loss of the guard between two sendings may cost one repeat, any other loss none", () => {
    const again = entry([attempt(0, refused("unavailable")), attempt(50, promised)], [20, 60], {
      pods: ["one", "another"],
    });
    expect(kinds([again])).toContain("delivered twice");
    expect(kinds([again], { guardLosses: [loss(30)] })).not.toContain("delivered twice");
    expect(kinds([again], { guardLosses: [loss(100)] })).toContain("delivered twice");
    expect(kinds([again], { guardLosses: [loss(30, ["b"])] })).not.toContain("delivered twice");
    expect(kinds([again], { guardLosses: [loss(30, ["c"])] })).toContain("delivered twice");
  });

  test("a loss of what was accepted last costs no repeat of what was accepted before", () => {
    const again = entry([attempt(10, promised), attempt(50, promised)], [20, 60], { pods: ["one", "another"] });
    expect(kinds([again], { guardLosses: [loss(30, ["b"], 15)] })).toEqual([]);
    expect(kinds([again], { guardLosses: [loss(30, ["b"], 25)] })).toEqual(["delivered twice", "accepted twice"]);
    expect(forgotten({ entries: [again], gaps: [], guardLosses: [loss(30, ["b"], 25)], strangers: [] })).toEqual([]);
  });

  test("what came for the first time after a replica took over may not come twice, though it was sent before", () => {
    const again = entry(
      [attempt(10, refused("unavailable")), attempt(2000, promised), attempt(2100, promised)],
      [2020, 2120],
    );
    expect(kinds([again], { guardLosses: [loss(30, ["b"])] })).toEqual(["delivered twice", "accepted twice"]);
    expect(forgotten({ entries: [again], gaps: [], guardLosses: [loss(30, ["b"])], strangers: [] })).toEqual([]);
  });

  test("one loss of the guard costs one repeat and no second one", () => {
    const again = entry([attempt(10, promised), attempt(2000, promised), attempt(2100, promised)], [20, 2020, 2120]);
    expect(kinds([again], { guardLosses: [loss(30)] })).toEqual(["delivered twice", "accepted twice"]);
    expect(kinds([again], { guardLosses: [loss(30), loss(2050)] })).toEqual([]);
  });

  test("a pod repeats nothing that it delivered itself, whatever a part of a cluster forgot; of one Redis it may", () => {
    const attempts = [attempt(0, promised), attempt(50, promised)];
    const byOnePod = entry(attempts, [20, 60]);
    expect(kinds([byOnePod], { guardLosses: [loss(30, ["b"])] })).toEqual(["delivered twice"]);
    expect(kinds([byOnePod], { guardLosses: [loss(30)] })).toEqual([]);
    expect(
      kinds([entry(attempts, [20, 60], { pods: ["one", "another"] })], { guardLosses: [loss(30, ["b"])] }),
    ).toEqual([]);
  });

  test("what was repeated over a loss of the guard is counted as forgotten, and nothing else", () => {
    const again = entry([attempt(0, promised), attempt(50, promised)], [20, 60]);
    const guardLosses = [loss(30, ["b"])];
    const content = { entries: [again, entry([attempt(0, promised)], [20])], gaps: [], guardLosses, strangers: [] };
    expect(forgotten(content)).toEqual([again]);
    expect(forgotten({ ...content, guardLosses: [] })).toEqual([]);
  });

  test("what was refused for good and what nobody sent is not to arrive, nor to arrive elsewhere", () => {
    expect(kinds([entry([attempt(0, refused("bad_signature"))], [20])])).toEqual(["delivered though refused"]);
    expect(kinds([entry([attempt(0, promised)], [20], { agent: "c" })])).toEqual(["delivered to another"]);
    expect(kinds([], { strangers: ["x"] })).toEqual(["never sent"]);
  });
});

describe("promises", () => {
  test("a promise without delivery is broken; a repeat's ack is none", () => {
    expect(kinds([entry([attempt(0, promised)], [])])).toEqual(["promised and lost"]);
    expect(kinds([entry([attempt(0, refused("unavailable")), attempt(50, repeat)], [])])).toEqual([]);
  });

  test("what did not live excuses the loss of what was under way then, to that agent or to all", () => {
    const lost = entry([attempt(1000, promised)], []);
    expect(kinds([lost], { gaps: [{ agent: undefined, from: 1005, to: 1006 }] })).toEqual([]);
    expect(kinds([lost], { gaps: [{ agent: "b", from: 1100, to: 1101 }] })).toEqual([]);
    expect(kinds([lost], { gaps: [{ agent: "c", from: 1005, to: 1006 }] })).toEqual(["promised and lost"]);
    expect(kinds([lost], { gaps: [{ agent: "b", from: 0, to: 999 }] })).toEqual(["promised and lost"]);
    expect(kinds([lost], { gaps: [{ agent: "b", from: 2000, to: 3000 }] })).toEqual(["promised and lost"]);
  });
});

describe("order", () => {
  const first = (deliveredAt: number[], rest = {}) => entry([attempt(0, promised)], deliveredAt, { id: "1", ...rest });
  const second = (deliveredAt: number[], rest = {}) => entry([attempt(1, promised)], deliveredAt, { id: "2", ...rest });

  test("what one connection sent to one target arrives in the order sent", () => {
    expect(kinds([first([20]), second([21])])).toEqual([]);
    expect(kinds([first([21]), second([20])])).toEqual(["out of order"]);
  });

  test("other targets and other connections have an order of their own", () => {
    expect(kinds([first([21]), second([20], { to: "c", agent: "c" })])).toEqual([]);
    expect(kinds([first([21]), second([20], { on: "three" })])).toEqual([]);
    expect(kinds([first([21]), entry([attempt(1, promised, "other")], [20], { id: "2" })])).toEqual([]);
  });

  test("an envelope that was sent again arrives in the place of either sending", () => {
    const sentAgain = (deliveredAt: number[], last: Said) =>
      entry([attempt(0, refused("unavailable")), attempt(50, last)], deliveredAt, { id: "1" });
    expect(kinds([sentAgain([60], promised), second([20])])).toEqual([]);
    expect(kinds([sentAgain([19], repeat), second([20])])).toEqual([]);
    expect(kinds([sentAgain([21], repeat), second([20])])).toEqual(["out of order"]);
  });

  test("a delivery stems from a sending before it, though a new window accepted a later one", () => {
    const acceptedLater = entry([attempt(0, refused("unavailable")), attempt(50, stale)], [19], { id: "1" });
    expect(kinds([acceptedLater, second([20])], { guardLosses: [loss(40)] })).toEqual([]);
    const late = entry([attempt(0, refused("unavailable")), attempt(50, stale)], [21], { id: "1" });
    expect(kinds([late, second([20])], { guardLosses: [loss(40)] })).toEqual(["out of order"]);
  });
});

test("the ledger lays an answer to the oldest sending without one, and knows a gateway's envelope by its text", () => {
  const ledger = new Ledger();
  const envelope = { id: "e", type: "message.send", from: "a", to: "b", payload: {} };
  ledger.sent(envelope, "one");
  ledger.received({ frame: "error", envelope_id: "e", code: "unavailable" }, "one", "pod");
  ledger.sent(envelope, "one");
  ledger.received({ frame: "ack", envelope_id: "e", target_delivery: { can_deliver_realtime: true } }, "one", "pod");
  ledger.received({ frame: "deliver", envelope }, "two", "pod");
  ledger.sent({ ...envelope, id: "text" }, "http");
  ledger.received(
    { frame: "deliver", envelope: { ...envelope, id: "env_1", payload: { message: "text" } } },
    "two",
    "pod",
  );
  ledger.received({ frame: "deliver", envelope: { ...envelope, id: "env_2" } }, "two", "pod");

  const { entries, strangers } = ledger.content;
  expect(entries.map(({ attempts }) => attempts.map(({ answer }) => answer?.accepted))).toEqual([
    [false, true],
    [undefined],
  ]);
  expect(entries.map(({ deliveries }) => deliveries.length)).toEqual([1, 1]);
  expect(strangers).toEqual(["env_2"]);
});

test("an agent is unavailable from the first refusal of what is for it, or its own, until the next acceptance", () => {
  const accepted = (at: number) => ({ at, accepted: true, duplicate: false, deliverable: true }) as const;
  const refused = (at: number, code = "unavailable") => ({ at, accepted: false, code }) as const;
  const ledger = new Ledger();
  const say = (from: string, to: string | undefined, ...answers: Parameters<Ledger["answered"]>[2][]) => {
    const envelope = { id: `${from} ${to}`, type: "message.send", from, to };
    for (const answer of answers) {
      ledger.sent(envelope, "one");
      ledger.answered(envelope.id, "one", answer);
    }
  };
  say("a", "b", accepted(10), refused(30), refused(500), accepted(830));
  say("b", undefined, refused(20), accepted(900));
  say("b", "c", accepted(15), refused(25, "rate_limited"), accepted(40));
  say("c", "d", refused(50));
  const agents = ["b", "c", "d"].map((id) => ({ id }));
  expect(unavailabilities(ledger.content.entries, agents)).toEqual([810]);
});

const LONG_MS = 200;
const BOB = "agent://bob";

/** A fleet of one agent on one connector, which notes what befalls that; Redis comes to its end when it is told. */
function fleetOf() {
  const ledger = new Ledger();
  const befell: string[] = [];
  const noticed = Promise.withResolvers<void>();
  const agents = [{ id: BOB }];
  const pod = {
    proxies: [{ cut: () => befell.push("cut"), heal: () => befell.push("healed"), links: () => [] }],
    end: async () => befell.push("killed"),
  } as unknown as FleetPod;
  const fleet = { ledger, agentsOf: () => agents, replace: async () => {}, stage: { caughtUp: () => noticed.promise } };
  return { fleet: fleet as unknown as Fleet, pod, agents, ledger, befell, notice: noticed.resolve };
}

/** Promised to Bob; it has not come. */
function promise(ledger: Ledger, id: string): void {
  ledger.sent({ id, type: "message.send", from: "agent://alice", to: BOB }, "of alice");
  ledger.answered(id, "of alice", { at: performance.now(), accepted: true, duplicate: false, deliverable: true });
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe.each([
  ["killed", ({ fleet, pod }: ReturnType<typeof fleetOf>) => killConnector(fleet, pod)],
  ["cut", ({ fleet, pod, agents }: ReturnType<typeof fleetOf>) => cut(fleet, pod.proxies, agents, turn)],
] as const)("A connector that is %s", (word, inject) => {
  test("has delivered what was promised before, however long that takes", async () => {
    const made = fleetOf();
    const { ledger, befell, notice } = made;
    promise(ledger, "before");
    const injected = inject(made);
    for (let n = 0; n < 5; n += 1) await turn();
    expect(befell).toEqual([]);
    ledger.received({ frame: "deliver", envelope: { id: "before", to: BOB } }, "of bob", "pod");
    notice();
    await injected;
    expect(befell).toContain(word);
  });

  test("owes nothing that is promised until Redis has come to the end of its connection, and all from then on", async () => {
    const made = fleetOf();
    const { ledger, notice } = made;
    const injected = inject(made);
    // Longer than any time after which Redis might be taken to know.
    await delay(LONG_MS);
    promise(ledger, "meanwhile");
    notice();
    await injected;
    promise(ledger, "afterwards");
    expect(violations(ledger.content)).toEqual([{ kind: "promised and lost", id: "afterwards" }]);
  });
});
