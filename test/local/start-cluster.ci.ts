import { existsSync } from "node:fs";
import { expect, test } from "@jest/globals";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";
import { guardiansOf, lineOf, lives, run, runToEnd } from "./terminal.ts";

const PRIMARIES_AND_REPLICAS = 6;
const HANDED_OVER = "handed to agent://bob";

test("npm run start:cluster serves on a Redis Cluster, and goes on when a primary has died", async () => {
  const env = { PORT: String(await freePort()), HOST: "127.0.0.1", REDIS_URL: "", RELAY_KEYS_FILE: "" };
  const relay = run("npm run start:cluster", env);
  await until("it says that the relay is up", () => relay.printed().includes("Agent Relay is up."));
  const listener = run(lineOf(relay.printed(), "npx --no relay listen"), {});
  await until("bob is online", () => listener.printed().includes("agent://bob is online"));
  const send = () => runToEnd(lineOf(relay.printed(), "npx --no relay send"));
  expect(await send()).toContain(HANDED_OVER);

  const nodes = await guardiansOf(relay.group);
  expect(nodes).toHaveLength(PRIMARIES_AND_REPLICAS);
  await runToEnd(lineOf(relay.printed(), "kill -KILL"));
  await until("one node is gone", () => nodes.filter(({ pid }) => lives(pid)).length === PRIMARIES_AND_REPLICAS - 1);
  const handedOver = async () => (await send().catch(() => "")).includes(HANDED_OVER);
  await until("messages are handed over again", handedOver);
  const messages = () => listener.printed().split('{"message":"Hello, Bob."}').length - 1;
  await until("both messages are printed", () => messages() >= 2);

  await listener.interrupt();
  expect(await relay.interrupt()).toBe(0);
  await until("all nodes are gone", () => !nodes.some(({ pid }) => lives(pid)));
  expect(nodes.filter(({ folder }) => existsSync(folder))).toEqual([]);
}, 120_000);
