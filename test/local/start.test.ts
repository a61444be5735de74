import { existsSync } from "node:fs";
import { expect, test } from "@jest/globals";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";
import { guardiansOf, lineOf, lives, run, runToEnd } from "./terminal.ts";

test("npm start serves, and prints the lines with which a message is exchanged", async () => {
  const port = await freePort();
  const env = { PORT: String(port), HOST: "127.0.0.1", REDIS_URL: "", RELAY_KEYS_FILE: "" };
  const relay = run("npm start", env);
  await relay.says("Agent Relay is up.");
  const listener = run(lineOf(relay.printed(), "npx --no relay listen"), {});
  await listener.says("agent://bob is online");

  const curl = lineOf(relay.printed(), "curl");
  expect(await runToEnd(`${curl} -w '%{http_code}'`)).toMatch(/"can_deliver_realtime":true.*202$/);
  await listener.says('{"message":"Hello, Bob."}');

  expect(await runToEnd(lineOf(relay.printed(), "npx --no relay send"))).toContain("handed to agent://bob");
  await listener.says('{"message":"Hello, Bob."}', 2);

  await listener.interrupt();
  const example = run("npm run listen", { RELAY_URL: `http://127.0.0.1:${port}` });
  await example.says("agent://bob is online");
  await example.interrupt();
  const [redis, ...others] = await guardiansOf(relay.group);
  expect([redis && existsSync(redis.folder), others]).toEqual([true, []]);
  expect(await relay.interrupt()).toBe(0);
  await until("its Redis is gone", () => !lives(redis?.pid as number));
  expect(existsSync(redis?.folder as string)).toBe(false);
});
