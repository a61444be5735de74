import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { AGENT, KEY_ID, online, RegistrarHarness } from "./registrar-harness.ts";

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
  jest.runAllTimers();
  await settled;
  expect(harness.agents.hasPending).toBe(true);
});

test("An agent whose register had no answer has a route that its connection releases at its end", () => {
  register(UNAVAILABLE);
  expect(harness.agents.releaseAll()).toEqual([{ agent: AGENT, connection: "con_1", epoch: null }]);
});
