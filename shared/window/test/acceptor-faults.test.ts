import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { PRESENCE_LIMITS, SESSION_LIMITS } from "protocol/contract/limits.ts";
import { createLogger } from "runtime/logging.ts";
import { until } from "../../../test/support/until.ts";
import type { AcceptanceItem } from "../src/acceptance/acceptance.ts";
import { Acceptor } from "../src/acceptance/acceptor.ts";
import { sessionIdOf } from "../src/acceptance/envelope-digest.ts";
import { ProcessWindow } from "../src/process-window.ts";
import { RedisLink } from "../src/redis/redis-link.ts";
import { unavailable } from "../src/unavailable.ts";
import { decisionOf, messageOf, textOf } from "./envelopes.ts";
import { Bench, LOGGER, Pod } from "./kit.ts";

const bench = new Bench();
let pod: Pod;
let log: object[];

beforeEach(async () => {
  await bench.open();
  log = [];
  const logger = createLogger({ service: "test", level: "debug" }, { write: (line) => log.push(JSON.parse(line)) });
  const { link, window } = await bench.pod();
  const { offlineAfterMs } = PRESENCE_LIMITS;
  const { proofFreshnessMs } = SESSION_LIMITS;
  const options = { link, window, pod: "pod-a", offlineAfterMs, proofFreshnessMs, logger };
  pod = new Pod(link, window, new Acceptor(options));
});
afterEach(async () => {
  jest.restoreAllMocks();
  await bench.clear();
});
afterAll(() => bench.redis.stop());

const fail = () => {
  throw new TypeError("a fault of ours");
};
const message = () => messageOf("agent://alice", "agent://bob");
const LOGGED = { level: "error", err: { type: "TypeError", message: "a fault of ours" } };

describe("acceptance goes on, and logs the fault,", () => {
  test("when the taker of an outcome throws", async () => {
    const envelope = message();
    const item = { envelope, kind: "message", text: textOf(envelope), origin: "websocket" } as const;
    const failing: AcceptanceItem = { ...item, principal: "key:key-1", connection: "c1", done: fail };
    pod.acceptor.accept(failing);
    pod.acceptor.accept({ ...failing, abandoned: () => true });
    expect(await pod.accept(message())).toMatchObject({ outcome: "accepted" });
    expect(log).toMatchObject([LOGGED, LOGGED]);
  });

  test("when an observer throws, of the outcomes as of the calls: every outcome is told", async () => {
    pod.acceptor.observe({ called: fail, settled: fail });
    expect(await pod.acceptAll(message(), message())).toMatchObject(Array(2).fill({ outcome: "accepted" }));
    expect(await pod.accept(message())).toMatchObject({ outcome: "accepted" });
    expect(log).toMatchObject(Array(5).fill(LOGGED));
  });
});

const NOT_ACCEPT_FROM = ["resetkeys", "~relay:{*}:[b-z]*"];

test.each([
  ["publish", undefined, ["-spublish"]],
  ["read whom agents accept envelopes from", undefined, NOT_ACCEPT_FROM],
  ["write it", "pod-a", NOT_ACCEPT_FROM],
])("a link that may not %s is not used: the guard would take envelopes that nobody gets", async (_, pod, rights) => {
  await bench.client.call("ACL", "SETUSER", "default", ...rights);
  const link = new RedisLink({ url: bench.redis.url, name: "test", logger: LOGGER });
  bench.later(() => link.stop());
  const window = new ProcessWindow({ link, partitions: 1, deployId: "local", logger: LOGGER });
  const { offlineAfterMs } = PRESENCE_LIMITS;
  new Acceptor({ link, window, ...(pod && { pod }), offlineAfterMs, ...SESSION_LIMITS, logger: LOGGER });
  void link.start();
  await until("the reason is known", () => link.downKind === "noperm");
  await bench.client.call("ACL", "SETUSER", "default", "+spublish", "allkeys");
  await until("the link is up", () => link.up);
});

describe("a session decision is refused as unavailable", () => {
  const decide = () => pod.prepare(decisionOf("approve", "agent://bob", "agent://alice", sessionIdOf("", 0)));

  test("by a fault of ours, which is logged", async () => {
    jest.spyOn(pod.link, "run").mockImplementationOnce(fail);
    expect(await decide()).toEqual({ outcome: "unavailable" });
    expect(log).toMatchObject([LOGGED]);
  });

  test("while Redis does not answer, of which the link has told", async () => {
    jest.spyOn(pod.link, "run").mockRejectedValueOnce(unavailable());
    expect(await decide()).toEqual({ outcome: "unavailable" });
    expect(log).toEqual([]);
  });
});
