import { beforeEach, describe, expect, test } from "@jest/globals";
import {
  ABSENT,
  type AgentEvent,
  type AgentState,
  Ownership,
  type SettledState,
  transition,
} from "../src/agents/ownership.ts";

/** What a connection knows of the agents that it has, or may have. */

describe("The agents of a connection:", () => {
  let agents: Ownership;

  beforeEach(() => {
    agents = new Ownership("con_1");
  });

  const request = (agent: string) => agents.apply(agent, { kind: "requested" });
  const grant = (agent: string, epoch: number, key = "k") =>
    agents.apply(agent, { kind: "granted", epoch, key, heardAt: 0 });
  const leaveUnanswered = (agent: string, key = "k") => agents.apply(agent, { kind: "unanswered", key });
  const takeOver = (agent: string, epoch: number) => agents.apply(agent, { kind: "superseded", epoch });

  test("a connection that loses an agent while it registers another one is not taken for empty", () => {
    request("agent://alice");
    grant("agent://alice", 5);
    request("agent://bob");

    expect(takeOver("agent://alice", 6)).toBe(6);
    expect(agents.isEmpty).toBe(false);
    agents.apply("agent://bob", { kind: "not_granted" });
    expect(agents.isEmpty).toBe(true);
  });

  test("each agent that a connection has or may have counts once, in whatever order they come and go", () => {
    for (const agent of ["a", "b", "c", "b"]) {
      request(agent);
      grant(agent, 1);
    }
    expect([agents.countWith("b"), agents.countWith("new")]).toEqual([3, 4]);

    takeOver("a", 2);
    request("d");
    leaveUnanswered("e");
    expect([agents.countWith("d"), agents.countWith("e"), agents.countWith("a")]).toEqual([4, 4, 5]);
    agents.apply("d", { kind: "not_granted" });
    expect(agents.countWith("b")).toBe(3);
    expect(agents.routes().map(({ agent }) => agent)).toEqual(expect.arrayContaining(["b", "c", "e"]));

    agents.releaseUnless((_, agent) => agent === "c");
    expect([agents.countWith("c"), agents.owns("b"), agents.owns("c")]).toEqual([1, false, true]);
  });

  test("an agent is owned by what the answers say, also while the next answer is awaited or missing", () => {
    grant("agent://alice", 5);
    request("agent://alice");
    expect([agents.owns("agent://alice"), agents.isPending("agent://alice")]).toEqual([true, true]);
    leaveUnanswered("agent://alice");
    expect([agents.owns("agent://alice"), agents.isOutcomeUnknown("agent://alice")]).toEqual([true, true]);
  });

  test("a route is released under its epoch, or under any once an answer is missing", () => {
    grant("owned", 5);
    leaveUnanswered("unknown");
    grant("uncertain", 5);
    leaveUnanswered("uncertain");
    request("requested");
    expect(agents.releaseAll()).toEqual([
      { agent: "owned", connection: "con_1", epoch: 5 },
      { agent: "unknown", connection: "con_1", epoch: null },
      { agent: "uncertain", connection: "con_1", epoch: null },
    ]);
    expect([agents.routes(), agents.isEmpty]).toEqual([[], false]);
  });

  test("an agent is released when a key that it is, or may be, owned by is no longer allowed", () => {
    grant("owned", 5, "good");
    grant("revoked", 5, "bad");
    leaveUnanswered("unknown", "bad");
    grant("uncertain", 5, "good");
    leaveUnanswered("uncertain", "bad");
    const released = agents.releaseUnless((key) => key === "good").map(({ agent }) => agent);
    expect(released).toEqual(["revoked", "unknown", "uncertain"]);
    expect(agents.routes().map(({ agent }) => agent)).toEqual(["owned"]);
  });
});

describe("The state of one agent:", () => {
  /** Epochs 4 < 5 < 6; the connection owns under 5. Each key is named after the request that it signed. */
  const OWNED: SettledState = { kind: "owned", epoch: 5, key: "answered", heardAt: 50 };
  const UNKNOWN: SettledState = { kind: "unknown", unansweredKey: "unanswered" };
  const UNCERTAIN: SettledState = {
    kind: "uncertain",
    epoch: 5,
    key: "answered",
    heardAt: 50,
    unansweredKey: "unanswered",
  };

  const EVENTS = {
    requested: { kind: "requested" },
    granted: { kind: "granted", epoch: 6, key: "new", heardAt: 60 },
    "granted by a replica that knows an older epoch": { kind: "granted", epoch: 4, key: "new", heardAt: 60 },
    "not granted": { kind: "not_granted" },
    unanswered: { kind: "unanswered", key: "new" },
    heard: { kind: "heard", epoch: 5, heardAt: 60 },
    "heard with what was heard before": { kind: "heard", epoch: 5, heardAt: 40 },
    "heard under an older epoch": { kind: "heard", epoch: 4, heardAt: 60 },
    "superseded by an older epoch": { kind: "superseded", epoch: 4 },
    "superseded by the same epoch": { kind: "superseded", epoch: 5 },
    "superseded by a newer epoch": { kind: "superseded", epoch: 6 },
    released: { kind: "released" },
  } as const satisfies Record<string, AgentEvent>;
  type EventName = keyof typeof EVENTS;

  const GRANTED: SettledState = { kind: "owned", epoch: 6, key: "new", heardAt: 60 };
  const GRANTED_BEFORE: SettledState = { kind: "owned", epoch: 4, key: "new", heardAt: 60 };
  const STILL_OWNED: SettledState = { kind: "owned", epoch: 5, key: "new", heardAt: 60 };
  const UNANSWERED: SettledState = { kind: "unknown", unansweredKey: "new" };
  const OWNED_UNANSWERED: SettledState = { ...UNCERTAIN, unansweredKey: "new" };

  function pending(settled: SettledState, requests = 1, takeover = 0): AgentState {
    return { kind: "pending", requests, settled, takeover };
  }

  /** The next state, and the epoch of the takeover that the client is told of, if any. */
  type Expected = readonly [AgentState, number?];

  /** The events that change a state, and what they lead to. All others leave it as it is, and tell of nothing. */
  const SETTLED_TABLE: readonly (readonly [SettledState, Partial<Record<EventName, Expected>>])[] = [
    [
      ABSENT,
      {
        requested: [pending(ABSENT)],
        granted: [GRANTED],
        "granted by a replica that knows an older epoch": [GRANTED_BEFORE],
        unanswered: [UNANSWERED],
      },
    ],
    [
      OWNED,
      {
        requested: [pending(OWNED)],
        granted: [GRANTED],
        "granted by a replica that knows an older epoch": [STILL_OWNED],
        unanswered: [OWNED_UNANSWERED],
        heard: [{ ...OWNED, heardAt: 60 }],
        "superseded by a newer epoch": [ABSENT, 6],
        released: [ABSENT],
      },
    ],
    [
      UNKNOWN,
      {
        requested: [pending(UNKNOWN)],
        granted: [GRANTED],
        "granted by a replica that knows an older epoch": [GRANTED_BEFORE],
        unanswered: [UNANSWERED],
        released: [ABSENT],
      },
    ],
    [
      UNCERTAIN,
      {
        requested: [pending(UNCERTAIN)],
        granted: [GRANTED],
        "granted by a replica that knows an older epoch": [STILL_OWNED],
        unanswered: [OWNED_UNANSWERED],
        heard: [{ ...UNCERTAIN, heardAt: 60 }],
        "superseded by a newer epoch": [UNKNOWN, 6],
        released: [ABSENT],
      },
    ],
  ];

  const SETTLED_CASES = SETTLED_TABLE.flatMap(([state, row]) =>
    (Object.keys(EVENTS) as EventName[]).map((event) => [state.kind, event, state, row[event] ?? [state]] as const),
  );

  test.each(SETTLED_CASES)("%s, %s", (_state, event, state, [next, supersededBy = null]) => {
    expect(transition(state, EVENTS[event])).toEqual({ state: next, supersededBy });
  });

  describe("pending", () => {
    const ANSWERS = ["granted", "not granted", "unanswered"] as const;
    const ANSWERED = SETTLED_TABLE.flatMap(([settled, row]) =>
      ANSWERS.map((answer) => [settled.kind, answer, settled, (row[answer]?.[0] ?? settled) as SettledState] as const),
    );

    test.each(ANSWERED)(
      "on %s, the last answer %s: leads where it leads without a wait",
      (_kind, answer, settled, next) => {
        expect(transition(pending(settled), EVENTS[answer])).toEqual({ state: next, supersededBy: null });
      },
    );

    test.each(ANSWERED)("on %s, an answer %s before the last: goes on waiting", (_kind, answer, settled, next) => {
      expect(transition(pending(settled, 2, 4), EVENTS[answer])).toEqual({
        state: pending(next, 1, 4),
        supersededBy: null,
      });
    });

    test.each(ANSWERED)(
      "on %s, the last answer %s after a takeover: compares the epochs",
      (_kind, answer, settled, next) => {
        for (const takeover of [4, 5, 6, 7]) {
          const superseded = transition(next, { kind: "superseded", epoch: takeover });
          expect(transition(pending(settled, 1, takeover), EVENTS[answer])).toEqual(superseded);
        }
      },
    );

    test("with another request: waits for both answers", () => {
      const { state } = transition(pending(OWNED, 1, 4), EVENTS.requested);
      expect(state).toEqual(pending(OWNED, 2, 4));
    });

    test("heard: goes on waiting, and knows when the agent was heard", () => {
      const { state } = transition(pending(OWNED, 2, 4), EVENTS.heard);
      expect(state).toEqual(pending({ ...OWNED, heardAt: 60 }, 2, 4));
    });

    test("with a takeover: remembers the newest, and tells the client of none yet", () => {
      let state = pending(OWNED);
      for (const [epoch, newest] of [
        [6, 6],
        [7, 7],
        [4, 7],
      ] as const) {
        const step = transition(state, { kind: "superseded", epoch });
        expect(step).toEqual({ state: pending(OWNED, 1, newest), supersededBy: null });
        state = step.state;
      }
    });

    test.each(SETTLED_TABLE.map(([settled]) => settled))(
      "on $kind, released: still waits, and owns nothing",
      (settled) => {
        expect(transition(pending(settled, 2, 4), EVENTS.released)).toEqual({
          state: pending(ABSENT, 2, 4),
          supersededBy: null,
        });
      },
    );
  });

  describe("Whom an agent accepts envelopes from", () => {
    const owned: SettledState = { kind: "owned", epoch: 5, key: "answered", heardAt: 50, acceptFrom: " agent://a " };
    const granted = { kind: "granted", epoch: 6, key: "new", heardAt: 60 } as const;

    test("is what the last register said, and stays with heartbeats and without an answer", () => {
      const said = transition(owned, { ...granted, acceptFrom: "" });
      expect(said.state).toMatchObject({ acceptFrom: "" });
      for (const event of [granted, EVENTS.heard, EVENTS.unanswered]) {
        expect(transition(owned, event).state).toMatchObject({ acceptFrom: " agent://a " });
        expect(transition(pending(owned), event).state).toMatchObject(
          event.kind === "heard" ? { settled: { acceptFrom: " agent://a " } } : { acceptFrom: " agent://a " },
        );
      }
    });
  });
});
