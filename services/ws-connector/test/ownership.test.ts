import { beforeEach, expect, test } from "@jest/globals";
import { Ownership } from "../src/ownership.ts";

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
