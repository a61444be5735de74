import { expect, test } from "@jest/globals";
import { Ownership } from "../src/ownership.ts";

test("a connection that loses an agent while it registers another one is not taken for empty", () => {
  const agents = new Ownership("con_1");
  agents.begin("agent://alice");
  agents.end("agent://alice", 5, "alice-1");
  agents.begin("agent://bob");

  expect(agents.lose("agent://alice", 6)).toBe(6);
  expect(agents.isEmpty).toBe(false);
  agents.end("agent://bob", null, "bob-1");
  expect(agents.isEmpty).toBe(true);
});

test("each agent that a connection has or may have counts once, in whatever order they come and go", () => {
  const agents = new Ownership("con_1");
  const own = (agent: string) => {
    agents.begin(agent);
    agents.end(agent, 1, "k");
  };
  for (const agent of ["a", "b", "c", "b"]) own(agent);
  expect([agents.countWith("b"), agents.countWith("new")]).toEqual([3, 4]);

  agents.lose("a", 2);
  agents.begin("d");
  agents.doubt("e", "k");
  expect([agents.countWith("d"), agents.countWith("e"), agents.countWith("a")]).toEqual([4, 4, 5]);
  agents.end("d", null, "k");
  expect(agents.countWith("b")).toBe(3);
  expect(agents.routes().map(({ agent }) => agent)).toEqual(expect.arrayContaining(["b", "c", "e"]));

  agents.dropUnless((_, agent) => agent === "c");
  expect([agents.countWith("c"), agents.owns("b"), agents.owns("c")]).toEqual([1, false, true]);
});
