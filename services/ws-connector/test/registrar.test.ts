import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Acceptance } from "relay-window/acceptance/acceptance.ts";
import type { PodChannel } from "relay-window/channel/pod-channel.ts";
import { fakeTimers } from "../../../test/support/time.ts";
import { drain } from "../src/drain.ts";
import { AGENT, KEY_ID, online, RegistrarHarness, verified } from "./registrar-harness.ts";

const PENDING = [
  { sessionId: `ses_00${"0".repeat(24)}`, requester: "agent://bob", createdAt: 1, expiresAt: 60_001 },
] as const;
const UNAVAILABLE = { outcome: "unavailable" } as const;
let harness: RegistrarHarness;

beforeEach(() => {
  harness = new RegistrarHarness();
});
afterEach(() => {
  jest.useRealTimers();
});

/** The frames that one register and its answer bring, in short. */
function register(acceptance: Parameters<RegistrarHarness["answer"]>[0]): string[] {
  const before = harness.sent.length;
  harness.request();
  harness.answer(acceptance);
  return harness.sent.slice(before).map(({ refused, notice, frame }) => refused ?? notice ?? frame);
}

describe("the notice of pending sessions", () => {
  test("follows the ack of a register that takes the agent", () => {
    expect(register(online(1, { pending: PENDING }))).toEqual(["ack", "pending_sessions"]);
  });

  test("does not come again when that envelope comes again", () => {
    register(online(1, { pending: PENDING }));
    expect(register(online(1, { outcome: "duplicate", pending: PENDING }))).toEqual(["ack"]);
  });

  test("comes again when the agent was taken over meanwhile and is taken back, before the notice of the takeover", () => {
    register(online(1, { pending: PENDING }));
    expect(register(online(3, { pending: PENDING }))).toEqual(["ack", "pending_sessions"]);
    harness.takeOver(2);
    expect(harness.agents.owns(AGENT)).toBe(true);
  });

  test("comes with the repeat of a register that had no answer", () => {
    expect(register(UNAVAILABLE)).toEqual(["unavailable"]);
    expect(register(online(1, { outcome: "duplicate", pending: PENDING }))).toEqual(["ack", "pending_sessions"]);
  });

  test("comes with the repeat of a register that was answered while no delivery reached the pod", () => {
    harness.channel.isReady = false;
    expect(register(online(1, { pending: PENDING }))).toEqual(["unavailable"]);
    harness.channel.isReady = true;
    expect(register(online(1, { outcome: "duplicate", pending: PENDING }))).toEqual(["ack", "pending_sessions"]);
  });
});

describe("a connection is registered", () => {
  test("under the key of the register that takes the agent", () => {
    register(online(1));
    expect([harness.agents.owns(AGENT), harness.validKeys]).toEqual([true, [`key:${KEY_ID}`]]);
  });

  test("not by the repeat of somebody else's register, which neither makes it the owner nor has its limits count for that key", () => {
    expect(register(online(null, { outcome: "duplicate" }))).toEqual(["ack"]);
    expect([harness.agents.owns(AGENT), harness.validKeys]).toEqual([false, []]);
  });
});

describe("a heartbeat that Redis refuses", () => {
  test("takes the agent from a connection that had not heard of the takeover, behind what is on its way to it", async () => {
    register(online(1));
    expect(register({ outcome: "not_registered", epoch: 2 })).toEqual(["not_registered"]);
    expect([harness.agents.owns(AGENT), harness.closedWith]).toEqual([true, undefined]);
    await harness.catchUp();
    expect(harness.sent.at(-1)).toMatchObject({ notice: "superseded", epoch: 2 });
    expect([harness.agents.owns(AGENT), harness.closedWith]).toEqual([false, 4409]);
  });

  test("brings no second notice when that of the takeover comes first", async () => {
    register(online(1));
    register({ outcome: "not_registered", epoch: 2 });
    harness.takeOver(2);
    await harness.catchUp();
    expect(harness.sent.filter(({ notice }) => notice === "superseded")).toHaveLength(1);
  });

  test("takes nothing from a connection that has registered again since", async () => {
    register(online(1));
    register({ outcome: "not_registered", epoch: 2 });
    register(online(3));
    await harness.catchUp();
    expect(harness.agents.owns(AGENT)).toBe(true);
  });
});

describe("a release is told", () => {
  const notices = () => harness.sent.filter(({ notice }) => notice === "released");
  function revoke(): void {
    harness.isAllowed = false;
    harness.registrar.releaseRevoked(harness.connection);
  }

  test("once, though a heartbeat that was under way is accepted after it", () => {
    register(online(1));
    harness.request("agent.heartbeat");
    revoke();
    harness.answer(online(1), "agent.heartbeat");
    expect([notices().length, harness.agents.owns(AGENT), harness.released.length]).toEqual([1, false, 2]);
  });

  test("to a client that registered since, whose register was accepted", () => {
    register(online(1));
    revoke();
    register(online(2));
    expect(notices()).toHaveLength(2);
  });
});

test("An agent whose register was never sent to Redis leaves no route to release", () => {
  register({ outcome: "unavailable", done: false });
  expect(harness.agents.countWith("agent://other")).toBe(1);
  expect(harness.agents.releaseAll()).toEqual([]);
});

test("A register that is never answered is not waited for without end", async () => {
  jest.useFakeTimers();
  harness.request();
  const settled = harness.registrar.settled(harness.connection);
  await jest.runAllTimersAsync();
  await settled;
  expect(harness.agents.hasPending).toBe(true);
});

test("A heartbeat that was gathered and is never answered is not waited for without end either", async () => {
  jest.useFakeTimers();
  const { promise: never } = Promise.withResolvers<void>();
  Object.assign(harness.heartbeats, { settled: () => never });
  harness.request();
  const settled = harness.registrar.settled(harness.connection);
  await jest.runAllTimersAsync();
  await settled;
  expect(harness.agents.hasPending).toBe(true);
});

test("An agent whose register had no answer has a route that its connection releases at its end", () => {
  register(UNAVAILABLE);
  expect(harness.agents.releaseAll()).toEqual([{ agent: AGENT, connection: "con_1", epoch: null }]);
});

describe("a release that Redis has not carried out", () => {
  const held = () =>
    ["agent.register", "agent.heartbeat"].filter((type) =>
      harness.registrar.awaitsRelease(harness.connection, verified(type)),
    );
  const unreleased = (epoch: number | null) =>
    Object.assign(harness, { unreleased: { agent: AGENT, connection: "con_1", epoch } });

  test("of an epoch keeps heartbeats from taking the agent again, whose epoch would be that one, and no register", () => {
    expect(held()).toEqual([]);
    unreleased(7);
    expect(held()).toEqual(["agent.heartbeat"]);
    register(online(8));
    expect(held()).toEqual([]);
  });

  test("of whatever epoch keeps registers from it as well", () => {
    unreleased(null);
    expect(held()).toEqual(["agent.register", "agent.heartbeat"]);
  });
});

describe("heartbeats that were gathered", () => {
  test("go to Redis before a register of their agent, and before each release, but not where none is due", () => {
    harness.request();
    expect(harness.sentToRedis.splice(0)).toEqual([`heartbeats of ${AGENT}`]);
    harness.answer(online(1));
    harness.registrar.releaseRevoked(harness.connection);
    expect(harness.sentToRedis).toEqual([]);
    harness.isAllowed = false;
    harness.registrar.releaseRevoked(harness.connection);
    expect(harness.sentToRedis.splice(0)).toEqual(["heartbeats of all", "release"]);
    harness.isAllowed = true;
    register(online(2));
    harness.sentToRedis.splice(0);
    harness.registrar.releaseAll(harness.connection);
    expect(harness.sentToRedis).toEqual(["heartbeats of all", "release"]);
  });

  test("say when the agent was heard, count for the connection, and are acked", () => {
    register(online(1));
    harness.heard(online(1, { heardAt: 70 }));
    expect(harness.agents.ownedAgent(AGENT)).toMatchObject({ epoch: 1, heardAt: 70 });
    expect([harness.sent.at(-1).frame, harness.validKeys.length]).toEqual(["ack", 2]);
  });

  test("bring nothing back to a connection that was superseded meanwhile", () => {
    register(online(1));
    harness.takeOver(2);
    harness.heard(online(1, { heardAt: 70 }));
    expect([harness.agents.owns(AGENT), harness.sent.at(-1)]).toEqual([false, { refused: "not_registered" }]);
  });

  test("and came in before a takeover are taken in before it is told", () => {
    register(online(1));
    const owned: boolean[] = [];
    harness.batch.add(() => owned.push(harness.agents.owns(AGENT)));
    harness.takeOver(2);
    expect([owned, harness.agents.owns(AGENT)]).toEqual([[true], false]);
  });

  test("are unavailable where no delivery reaches the agent by now", () => {
    register(online(1));
    harness.channel.isReady = false;
    harness.heard(online(1, { heardAt: 70 }));
    expect([harness.sent.at(-1), harness.agents.ownedAgent(AGENT)?.heardAt]).toEqual([{ refused: "unavailable" }, 1]);
  });

  test("leave their agent as it was when they have no answer", () => {
    register(online(1));
    harness.heard({ outcome: "unavailable" });
    expect([harness.sent.at(-1), harness.agents.isOutcomeUnknown(AGENT)]).toEqual([{ refused: "unavailable" }, false]);
  });

  test("are not answered on a connection that closes", () => {
    register(online(1));
    const { length } = harness.sent;
    Object.assign(harness.connection, { isClosing: true });
    harness.heard(online(1));
    expect(harness.sent).toHaveLength(length);
  });
});

describe("Takeovers:", () => {
  /**
   * Registers, heartbeats and takeovers of one agent in every order in which they can happen. Redis answers in the order
   * it was asked, and publishes in the order of the takeovers; which of the two arrives first is open.
   */

  const STEPS = ["send", "carry out", "take over", "answer", "notice"] as const;
  type Step = (typeof STEPS)[number];
  type Kind = "register" | "heartbeat";

  /** What Redis does, and what is on its way from there. */
  class RedisModel {
    epoch = 0;
    owner: "this" | "other" | null = null;
    readonly answers: Acceptance[] = [];
    readonly notices: number[] = [];

    carryOut(kind: Kind): void {
      const isRefused = kind === "heartbeat" && this.owner === "other";
      if (!isRefused && this.owner !== "this") this.#give("this");
      this.answers.push(isRefused ? { outcome: "not_registered", epoch: this.epoch } : online(this.epoch));
    }

    takeOver(): void {
      const former = this.owner;
      this.#give("other");
      if (former === "this") this.notices.push(this.epoch);
    }

    #give(owner: "this" | "other"): void {
      this.owner = owner;
      this.epoch += 1;
    }
  }

  /** One run of steps over fresh models. */
  function run(kinds: readonly Kind[], takeovers: number, steps: readonly Step[], carriesAnother: boolean) {
    const redis = new RedisModel();
    const relay = new RegistrarHarness();
    if (carriesAnother) relay.agents.apply("agent://other", { kind: "granted", epoch: 1, key: "k", heardAt: 0 });
    const toSend = [...kinds];
    const toCarryOut: Kind[] = [];
    let toTakeOver = takeovers;
    let owned = false;

    const actions: Record<Step, () => void> = {
      send: () => {
        relay.request();
        toCarryOut.push(toSend.shift() as Kind);
      },
      "carry out": () => redis.carryOut(toCarryOut.shift() as Kind),
      "take over": () => {
        redis.takeOver();
        toTakeOver -= 1;
      },
      answer: () => relay.answer(redis.answers.shift() as Acceptance),
      notice: () => relay.takeOver(redis.notices.shift() as number),
    };
    for (const step of steps) {
      const before = relay.sent.length;
      actions[step]();
      const notices = relay.sent.slice(before).filter(({ frame }) => frame === "notice");
      const isLost = owned && !relay.agents.owns(AGENT);
      // No loss without its notice, and no notice of an agent that is not lost.
      if (isLost) expect(notices).toHaveLength(1);
      if (notices.length > 0) expect([relay.agents.owns(AGENT), redis.owner]).toEqual([false, "other"]);
      owned = relay.agents.owns(AGENT);
    }
    const open: Record<Step, number> = {
      send: toSend.length,
      "carry out": toCarryOut.length,
      "take over": toTakeOver,
      answer: redis.answers.length,
      notice: redis.notices.length,
    };
    return { redis, relay, next: STEPS.filter((step) => open[step] > 0) };
  }

  /** Every complete run; `check` gets what it came to. Returns how many there were. */
  function everyRun(
    kinds: readonly Kind[],
    carriesAnother: boolean,
    check: (end: ReturnType<typeof run>) => void,
  ): number {
    const TAKEOVERS = 2;
    const from = (steps: readonly Step[]): number => {
      const end = run(kinds, TAKEOVERS, steps, carriesAnother);
      if (end.relay.closedWith === undefined && end.next.length > 0) {
        return end.next.reduce((total, step) => total + from([...steps, step]), 0);
      }
      check(end);
      return 1;
    };
    return from([]);
  }

  const KINDS: readonly (readonly [Kind, Kind])[] = [
    ["register", "register"],
    ["register", "heartbeat"],
    ["heartbeat", "register"],
    ["heartbeat", "heartbeat"],
  ];

  describe.each(KINDS)("a %s and a %s, while others take the agent over twice, in every order", (...kinds) => {
    test("leave the connection with the agent exactly when Redis says so", () => {
      const runs = everyRun(kinds, true, ({ redis, relay }) => {
        expect(relay.agents.owns(AGENT)).toBe(redis.owner === "this");
        expect(relay.closedWith).toBeUndefined();
      });
      expect(runs).toBeGreaterThan(300);
    });

    test("close a connection with 4409 exactly when it had the agent, lost it, and carries no other", () => {
      everyRun(kinds, false, ({ redis, relay }) => {
        const hadIt = relay.sent.some(({ frame }) => frame === "ack");
        if (relay.closedWith !== undefined) expect([relay.closedWith, redis.owner]).toEqual([4409, "other"]);
        else expect([relay.agents.owns(AGENT), redis.owner === "this"]).toEqual([hadIt, hadIt]);
      });
    });
  });
});

describe("A drain:", () => {
  let harness: RegistrarHarness;
  const startDrain = (drainMs = 0) => {
    const { connection, registrar, releaser } = harness;
    return drain([connection], { registrar, channel: harness.channel as unknown as PodChannel, releaser, drainMs });
  };

  beforeEach(() => {
    harness = new RegistrarHarness();
  });
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  test("the routes of a connection are released when its last register is answered, and that one's with them", async () => {
    harness.request();
    harness.request();
    const drained = startDrain();
    harness.answer(online(7));
    await setImmediate();
    expect(harness.released).toEqual([]);
    harness.answer(online(8));
    await setImmediate();
    expect(harness.released).toEqual([{ agent: AGENT, connection: "con_1", epoch: 8 }]);
    expect(harness.closedWith).toBeUndefined();
    await harness.catchUp();
    await drained;
    expect(harness.closedWith).toBe(1001);
  });

  test("a connection takes no agent from the moment that its pod lets it go", async () => {
    expect(harness.registrar.canTake(harness.connection, AGENT)).toBe(true);
    const drained = startDrain();
    expect(harness.registrar.canTake(harness.connection, AGENT)).toBe(false);
    await harness.catchUp();
    await drained;
  });

  test("a client that does not answer its close is waited for, and disconnected when its time is over", async () => {
    fakeTimers();
    harness.answersItsClose = false;
    let isDrained = false;
    const drained = startDrain().then(() => {
      isDrained = true;
    });
    await harness.catchUp();
    await setImmediate();
    jest.advanceTimersByTime(CONNECTION_LIMITS.outboxStalledAfterMs - 1);
    await setImmediate();
    expect([harness.closedWith, harness.isDisconnected, isDrained]).toEqual([1001, false, false]);
    jest.advanceTimersByTime(1);
    await drained;
    expect(harness.isDisconnected).toBe(true);
  });

  test.each([
    { random: 0, named: 100 },
    { random: 1, named: 1000 },
  ])(
    "a client is closed at twice the longest time that a notice names: $named ms of 1000",
    async ({ random, named }) => {
      jest.spyOn(Math, "random").mockReturnValue(random);
      fakeTimers();
      const drained = startDrain(10_000);
      expect(harness.sent).toMatchObject([{ notice: "draining", reconnect_after_ms: named }]);
      await harness.catchUp();
      await setImmediate();
      jest.advanceTimersByTime(1999);
      await setImmediate();
      expect([harness.released, harness.closedWith]).toEqual([[], undefined]);
      jest.advanceTimersByTime(1);
      await drained;
      expect(harness.closedWith).toBe(1001);
    },
  );

  test("a drain ends as soon as all clients have left", async () => {
    fakeTimers();
    const drained = startDrain(10_000);
    harness.leave();
    await harness.catchUp();
    await drained;
  });
});
