import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
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
    harness.touch(online(1, { heardAt: 70 }));
    expect(harness.agents.hold(AGENT)).toMatchObject({ epoch: 1, heardAt: 70 });
    expect([harness.sent.at(-1).frame, harness.validKeys.length]).toEqual(["ack", 2]);
  });

  test("bring nothing back to a connection that was superseded meanwhile", () => {
    register(online(1));
    harness.takeOver(2);
    harness.touch(online(1, { heardAt: 70 }));
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
    harness.touch(online(1, { heardAt: 70 }));
    expect([harness.sent.at(-1), harness.agents.hold(AGENT)?.heardAt]).toEqual([{ refused: "unavailable" }, 1]);
  });

  test("leave their agent as it was when they have no answer", () => {
    register(online(1));
    harness.touch({ outcome: "unavailable" });
    expect([harness.sent.at(-1), harness.agents.isOutcomeUnknown(AGENT)]).toEqual([{ refused: "unavailable" }, false]);
  });

  test("are not answered on a connection that closes", () => {
    register(online(1));
    const { length } = harness.sent;
    Object.assign(harness.connection, { isClosing: true });
    harness.touch(online(1));
    expect(harness.sent).toHaveLength(length);
  });
});
