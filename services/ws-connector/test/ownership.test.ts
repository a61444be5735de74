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
