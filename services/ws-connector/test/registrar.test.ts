import { beforeEach, describe, expect, test } from "@jest/globals";
import { AGENT, online, RegistrarBench } from "./registrar-bench.ts";

const WAITING = [
  { sessionId: `ses_00${"0".repeat(24)}`, requester: "agent://bob", createdAt: 1, expiresAt: 60_001 },
] as const;
const UNAVAILABLE = { outcome: "unavailable" } as const;
let bench: RegistrarBench;

beforeEach(() => {
  bench = new RegistrarBench();
});

/** What was said, in short, to one answered register. */
function register(acceptance: Parameters<RegistrarBench["settle"]>[0]): string[] {
  const before = bench.said.length;
  bench.begin();
  bench.settle(acceptance);
  return bench.said.slice(before).map(({ refused, notice, frame }) => refused ?? notice ?? frame);
}

describe("the notice of pending sessions", () => {
  test("follows the ack of a register that takes the agent", () => {
    expect(register(online(1, { waiting: WAITING }))).toEqual(["ack", "pending_sessions"]);
  });

  test("does not come again when that envelope comes again", () => {
    register(online(1, { waiting: WAITING }));
    expect(register(online(1, { outcome: "duplicate", waiting: WAITING }))).toEqual(["ack"]);
  });

  test("comes again when the agent was taken over meanwhile and is taken back, though nobody said so yet", () => {
    register(online(1, { waiting: WAITING }));
    expect(register(online(3, { waiting: WAITING }))).toEqual(["ack", "pending_sessions"]);
    bench.supersede(2);
    expect(bench.agents.owns(AGENT)).toBe(true);
  });

  test("comes with the repeat of a register that had no answer", () => {
    expect(register(UNAVAILABLE)).toEqual(["unavailable"]);
    expect(register(online(1, { outcome: "duplicate", waiting: WAITING }))).toEqual(["ack", "pending_sessions"]);
  });

  test("comes with the repeat of a register that was answered while no delivery reached the pod", () => {
    bench.channel.ready = false;
    expect(register(online(1, { waiting: WAITING }))).toEqual(["unavailable"]);
    bench.channel.ready = true;
    expect(register(online(1, { outcome: "duplicate", waiting: WAITING }))).toEqual(["ack", "pending_sessions"]);
  });
});

test("The repeat of somebody else's register does not make this connection the owner", () => {
  expect(register(online(null, { outcome: "duplicate" }))).toEqual(["ack"]);
  expect(bench.agents.owns(AGENT)).toBe(false);
});

describe("a heartbeat that Redis refuses", () => {
  test("takes the agent from a connection that had not heard of the takeover, behind what is on its way to it", async () => {
    register(online(1));
    expect(register({ outcome: "not_registered", epoch: 2 })).toEqual(["not_registered"]);
    expect([bench.agents.owns(AGENT), bench.closedWith]).toEqual([true, undefined]);
    await bench.catchUp();
    expect(bench.said.at(-1)).toMatchObject({ notice: "superseded", epoch: 2 });
    expect([bench.agents.owns(AGENT), bench.closedWith]).toEqual([false, 4409]);
  });

  test("brings no second notice when that of the takeover comes first", async () => {
    register(online(1));
    register({ outcome: "not_registered", epoch: 2 });
    bench.supersede(2);
    await bench.catchUp();
    expect(bench.said.filter(({ notice }) => notice === "superseded")).toHaveLength(1);
  });

  test("takes nothing from a connection that has registered again since", async () => {
    register(online(1));
    register({ outcome: "not_registered", epoch: 2 });
    register(online(3));
    await bench.catchUp();
    expect(bench.agents.owns(AGENT)).toBe(true);
  });
});

test("An agent whose register had no answer has a route that its connection releases at its end", () => {
  register(UNAVAILABLE);
  expect(bench.agents.dropUnless(() => false)).toEqual([{ agent: AGENT, connection: "con_1", epoch: null }]);
});
