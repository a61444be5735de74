import { afterEach, expect, test } from "@jest/globals";
import { PodStage } from "../../connector/test/kit.ts";
import type { Frame } from "../support/agent.ts";
import { withPython } from "./python-connector.ts";

/** More than is read of a socket at once. */
const MESSAGES = 150;
const { stage, python } = withPython(new PodStage("alice", "bob"));
afterEach(() => python.resume());

test("A Python agent that stood still while another process took it over gets what was promised, in order, before it learns of its end", async () => {
  const { agent, key } = stage.agent("bob");
  const { keyId: key_id, alg, privateKey: private_key } = key as Frame;
  await python.online("bob", { url: stage.url, agent, key: { key_id, alg, private_key }, take_over: true });
  const alice = await stage.online("alice", stage.url);
  python.told.length = 0;

  python.suspend();
  const sends = Array.from({ length: MESSAGES }, (_, n) => alice.send(agent, { n, padding: "x".repeat(1000) }));
  const acks = await Promise.all(sends);
  expect(acks.every(({ delivery }) => delivery.canDeliverRealtime)).toBe(true);
  await stage.online("bob", stage.url, { takeOver: true });
  python.resume();

  await python.tells("the end", ({ state }) => state === "closed");
  const told = python.told.map(({ delivery, notice, state }) => delivery?.payload.n ?? notice ?? state);
  expect(told).toEqual([...acks.keys(), "superseded", "closed"]);
});
