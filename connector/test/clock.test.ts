import { afterEach, beforeAll, beforeEach, describe, expect, jest, test } from "@jest/globals";
import type { PodProcess } from "../../test/support/pod-process.ts";
import { until } from "../../test/support/until.ts";
import { Clock } from "../src/clock.ts";
import { Signer } from "../src/signer.ts";
import { shared } from "./fixture.ts";
import { errorOf, PodsStage, record } from "./kit.ts";
import type { WireProxy } from "./wire-proxy.ts";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
afterEach(() => {
  jest.restoreAllMocks();
});
const stage = shared(new PodsStage("alice", "bob"));
const now = Date.now;
let pod: PodProcess;
let proxy: WireProxy;

beforeAll(async () => {
  // A process of its own, so that only the connector's clock is wrong.
  pod = await stage.relay.startWsConnectorProcess();
});
beforeEach(async () => {
  proxy = await stage.proxy(pod.url);
});

function clockIsOff(ms: number): void {
  jest.spyOn(Date, "now").mockImplementation(() => now() + ms);
}

/** `hello` without the relay's time: nothing is known of its clock. */
function tellNoTime(): void {
  proxy.toAgent = (frame) => (frame.frame === "hello" ? { ...frame, server_time: undefined } : frame);
}

const messages = () => proxy.sent.filter(({ type }) => type === "message.send");

describe("A clock that is wrong", () => {
  test.each([[HOUR_MS], [-24 * HOUR_MS]])("by %i ms does no harm: the relay's is used", async (ms) => {
    clockIsOff(ms);
    const alice = await stage.online("alice", proxy.url);
    await alice.send("agent://bob", {});
    expect(Math.abs(messages().at(-1).ts - now())).toBeLessThan(MINUTE_MS);
  });

  test("and not told by hello is learnt from the refusal: the register is signed anew", async () => {
    tellNoTime();
    clockIsOff(HOUR_MS);
    const before = proxy.sent.length;
    await stage.online("alice", proxy.url);
    const registers = proxy.sent.slice(before);
    expect(registers.map(({ type }) => type)).toEqual(["agent.register", "agent.register"]);
    expect(Math.abs(registers[1].ts - now())).toBeLessThan(MINUTE_MS);
  });

  test("and goes wrong later is noticed by a refused send, which is not signed anew; the next is right", async () => {
    const alice = await stage.online("alice", proxy.url);
    const before = messages().length;
    clockIsOff(HOUR_MS);
    const refusal = { code: "clock_skew", retry: "fix", outcome: "refused" };
    await expect(alice.send("agent://bob", {})).rejects.toMatchObject(refusal);
    expect(messages().length - before).toBe(1);
    expect(await alice.send("agent://bob", {})).toMatchObject({ duplicate: false });
    expect(Math.abs(messages().at(-1).ts - now())).toBeLessThan(MINUTE_MS);
  });

  test("and that the relay never agrees with is an error in the end", async () => {
    tellNoTime();
    clockIsOff(HOUR_MS);
    const agreeing = proxy.toAgent;
    proxy.toAgent = (frame) => agreeing({ ...frame, server_time: undefined });
    const alice = stage.connector("alice", proxy.url);
    await expect(alice.start()).rejects.toMatchObject({ code: "clock_skew", retry: "fix" });
  });
});

test("A clock that is more than 5 minutes off leaves nothing verified, and the application is told", async () => {
  const trust = { "agent://alice": [stage.agent("alice").trusted] };
  clockIsOff(360_000);
  const alice = await stage.online("alice", proxy.url);
  const bob = stage.connector("bob", proxy.url, { trust });
  const { deliveries } = record(bob);
  const warnings: string[] = [];
  bob.on("warning", ({ code }) => warnings.push(code));
  await bob.start();
  expect(warnings).toEqual(["clock_untrusted"]);
  await alice.send("agent://bob", {});
  await until("it is delivered", () => deliveries.length === 1);
  expect(deliveries[0]?.verified).toBe("unverified");
  await bob.close();

  const strict = await stage.online("bob", proxy.url, { trust, requireVerified: true });
  const { errors } = record(strict);
  await alice.send("agent://bob", {});
  await until("it is dropped", () => errors.length === 1);
  expect(errors).toMatchObject([{ code: "clock_untrusted" }]);
});

test("An envelope without answer that has become too old is not signed anew: its outcome is unknown", async () => {
  const alice = await stage.online("alice", proxy.url);
  const { states } = record(alice);
  const before = messages().length;
  // The next hello comes as soon as the connection is cut.
  proxy.toAgent = (frame) => {
    if (frame.type === "message.send") return void proxy.cut();
    return frame.frame === "hello" ? { ...frame, server_time: now() + 299_000 } : frame;
  };
  const sent = errorOf(alice.send("agent://bob", {}));
  expect(await sent).toMatchObject({ code: "outcome_unknown", outcome: "unknown" });
  await until("it is back", () => states.at(-1) === "online");
  expect(messages().length - before).toBe(1);
});

test("The relay's time counts from when it arrives: no envelope is dated ahead of the relay's clock", async () => {
  const alice = await stage.online("alice", proxy.url);
  await alice.send("agent://bob", {});
  expect(messages().at(-1).ts).toBeLessThanOrEqual(now());
});

describe("The time that the relay told", () => {
  const NOW = 1_790_000_000_000;
  const clockAfter = (...told: readonly (readonly [offMs: number, elapsedMs: number])[]) => {
    jest.spyOn(Date, "now").mockReturnValue(NOW);
    const clock = new Clock();
    for (const [offMs, elapsedMs] of told) clock.measure(NOW + offMs, elapsedMs);
    return clock.now() - NOW;
  };

  test("does not move a clock that may be right: a start that took long is no error of a clock", () => {
    expect(clockAfter([-4900, 5000])).toBe(0);
    expect(clockAfter([-329, 330], [-1, 2])).toBe(0);
    expect(clockAfter([1900, 10])).toBe(0);
    expect(clockAfter([-2050, 100])).toBe(0);
  });

  test("moves one that is wrong by the middle of what it may be wrong by", () => {
    expect(clockAfter([HOUR_MS - 1000, 2000])).toBe(HOUR_MS);
    expect(clockAfter([-HOUR_MS, 100])).toBe(-HOUR_MS + 50);
  });

  test("counts most where the way was short, and anew after a clock was set", () => {
    expect(clockAfter([HOUR_MS - 5000, 6000], [HOUR_MS - 10, 20], [HOUR_MS - 3000, 4000])).toBe(HOUR_MS);
    expect(clockAfter([HOUR_MS, 20], [-30, 40])).toBe(0);
    expect(clockAfter([-30, 40], [HOUR_MS, 20])).toBe(HOUR_MS + 10);
  });
});

describe("An envelope that answers another", () => {
  test.each([
    [-1000, 0],
    [290_000, 290_000],
    [300_001, 0],
  ])("that is dated %i ms ahead is dated %i ms ahead itself", async (aheadMs, expected) => {
    jest.spyOn(Date, "now").mockReturnValue(1_790_000_000_000);
    const signer = new Signer(stage.agent("alice").key, new Clock());
    await signer.start();
    expect((await signer.sign("{}", Date.now() + aheadMs)).ts - Date.now()).toBe(expected);
  });
});

describe("The clock that deliveries are judged by", () => {
  test.each([
    [0, 0, true],
    [299_000, 299_000, true],
    [-300_000, -300_000, true],
    [300_001, 300_000, false],
    [-365 * 24 * HOUR_MS, -300_000, false],
  ])("follows a relay that is off by %i ms for %i ms, and is trusted: %s", (off, followed, isTrusted) => {
    jest.spyOn(Date, "now").mockReturnValue(1_790_000_000_000);
    const clock = new Clock();
    clock.measure(Date.now() + off);
    expect(clock.now()).toBe(Date.now() + off);
    expect(clock.boundedNow()).toBe(Date.now() + followed);
    expect(clock.isTrusted).toBe(isTrusted);
  });
});
