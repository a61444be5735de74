import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { SCRIPTS, type ScriptName } from "relay-window/redis/scripts.ts";
import type { Pod } from "../../support/relay.ts";
import { type MonitoredCommand, RedisMonitor } from "../../support/test-redis.ts";
import { until } from "../../support/until.ts";
import { given, useRelay } from "../../support/use-relay.ts";

/** What makes the relay fast, counted; how fast it is, only the benchmark says. */

const ENVELOPES = 240;
const TARGETS = ["bob-hmac", "carol-hmac", "dave-hmac", "erin-hmac"] as const;
/** All that one tick brought in is one call; a loaded machine may cut the burst into some pieces. */
const MOST_CALLS = ENVELOPES / 20;
/** Inside the script: a guard entry an envelope, and what is looked up once a target and batch. */
const MOST_SCRIPT_COMMANDS = 2 * ENVELOPES;
/** What pods ask of Redis by the clock, whatever the load: that it lives, and that their own channel does. */
const BY_THE_CLOCK = ["ping", "spublish", "info"];
/** The same: which window is open. */
const isLookAtWindow = ({ name, args }: MonitoredCommand) => name === "hget" && args[1] === "id";

const relay = useRelay("alice-hmac", ...TARGETS);
const pods = given(async () => [
  await relay.startWsConnector(),
  await relay.startWsConnector(),
  await relay.startWsConnector(),
]);
let monitor: RedisMonitor;
let seen: MonitoredCommand[] = [];

beforeEach(async () => {
  monitor = await RedisMonitor.open(relay.view().client, (command) => seen.push(command));
});

afterEach(() => monitor.close());

/** Sends them in one go, to each target in turn; resolves when all are acknowledged and all that they caused is seen. */
async function burst(targets: readonly string[]): Promise<void> {
  const alice = await relay.online(pods[0] as Pod, "alice-hmac");
  const envelopes = Array.from({ length: ENVELOPES }, (_, n) =>
    relay.envelope("alice-hmac", "message.send", { to: `agent://${targets[n % targets.length]}` }),
  );
  seen = [];
  for (const envelope of envelopes) alice.send(envelope);
  const acks = () => alice.frames.filter(({ frame, target_delivery }) => frame === "ack" && target_delivery);
  await until("every envelope is acknowledged", () => acks().length === ENVELOPES);
  await until("every delivery is seen", () => deliveriesIn(published()) === ENVELOPES);
  expect(acks().every(({ target_delivery }) => target_delivery.can_deliver_realtime)).toBe(true);
}

function published(): MonitoredCommand[] {
  return seen.filter(({ name, inScript }) => inScript && name === "spublish");
}

function deliveriesIn(publishes: readonly MonitoredCommand[]): number {
  return publishes.reduce((sum, { args }) => sum + (args[1]?.match(/deliver /g)?.length ?? 0), 0);
}

/** What each call of a script ran. Pods call others by the clock. */
function callsOf(script: ScriptName): MonitoredCommand[][] {
  const calls: MonitoredCommand[][] = [];
  let ran: MonitoredCommand[] = [];
  for (const command of seen) {
    if (command.inScript) {
      ran.push(command);
      continue;
    }
    ran = [];
    if (command.args[0] === SCRIPTS[script].sha) calls.push(ran);
  }
  return calls;
}

describe("The way of an envelope", () => {
  test("takes one call of Redis for all that came in together, and no other command", async () => {
    for (const target of TARGETS) await relay.online(pods[1] as Pod, target);
    await burst(TARGETS);
    const asked = seen.filter(
      (command) => !command.inScript && !BY_THE_CLOCK.includes(command.name) && !isLookAtWindow(command),
    );
    expect([...new Set(asked.map(({ name }) => name))]).toEqual(["evalsha"]);
    expect(callsOf("accept_messages").length).toBeLessThanOrEqual(MOST_CALLS);
  });

  test("costs seven commands when it comes alone, and one more when it is the first of its bucket", async () => {
    await relay.online(pods[1] as Pod, TARGETS[0]);
    const alice = await relay.online(pods[0] as Pod, "alice-hmac");
    const acks = () => alice.frames.filter(({ frame, target_delivery }) => frame === "ack" && target_delivery);
    const sendOne = async () => {
      const before = acks().length;
      alice.send(relay.envelope("alice-hmac", "message.send", { to: `agent://${TARGETS[0]}` }));
      await until("it is acknowledged", () => acks().length > before);
    };
    // Another bucket of the guard begins at most once meanwhile.
    const calls: string[][] = [];
    for (let n = 0; n < 3; n += 1) {
      seen = [];
      await sendOne();
      await monitor.caughtUp(relay.view().client);
      calls.push(...callsOf("accept_messages").map((commands) => commands.map(({ name }) => name)));
    }
    expect(calls).toContainEqual(["time", "hmget", "sadd", "hget", "scard", "spublish", "hincrby"]);
  });

  test("costs one publish a call for each pod that has targets, however many targets it has", async () => {
    for (const [n, target] of TARGETS.entries()) await relay.online(pods[1 + (n % 2)] as Pod, target);
    await burst(TARGETS);
    const publishes = callsOf("accept_messages").map((commands) => commands.filter(({ name }) => name === "spublish"));
    const calls = publishes.map((commands) => commands.map(({ args: [channel] }) => channel));
    for (const channels of calls) expect(new Set(channels).size).toBe(channels.length);
    expect(new Set(calls.flat()).size).toBe(2);
  });

  test("costs about one command inside the script: targets are looked up once a call", async () => {
    for (const target of TARGETS) await relay.online(pods[1] as Pod, target);
    await burst(TARGETS);
    expect(callsOf("accept_messages").flat().length).toBeLessThanOrEqual(MOST_SCRIPT_COMMANDS);
  });
});

describe("The way of a heartbeat", () => {
  const beat = (name: string) => relay.envelope(name, "agent.heartbeat");
  /** Of one call, whatever it carries: clock, window, routes read and written, presence, online, counts. */
  const COMMANDS = 7;
  /** For each bucket of the guard: look-up, digests, expiry. A call may come as the next bucket begins. */
  const COMMANDS_OF_BUCKET = 3;

  test("takes one call for those that came in within a quarter of a second, and as many commands as one of them", async () => {
    const sockets = await Promise.all(TARGETS.map((name) => relay.online(pods[1] as Pod, name)));
    seen = [];
    for (let n = 0; n < ENVELOPES / TARGETS.length; n += 1) {
      for (const [k, socket] of sockets.entries()) socket.send(beat(TARGETS[k] as string));
    }
    const acks = () => sockets.flatMap(({ frames }) => frames.filter(({ type }) => type === "agent.heartbeat"));
    await until("every heartbeat is acknowledged", () => acks().length === ENVELOPES);
    expect(acks().every(({ accepted }) => accepted)).toBe(true);
    const calls = callsOf("write_heartbeats");
    expect(calls.length).toBeGreaterThan(0);
    expect(calls.length).toBeLessThanOrEqual(MOST_CALLS);
    for (const commands of calls) {
      const buckets = commands.filter(({ name }) => name === "smismember").length;
      expect(commands.length).toBeLessThanOrEqual(COMMANDS + COMMANDS_OF_BUCKET * buckets);
      expect(buckets).toBeLessThanOrEqual(2);
    }
  });
});
