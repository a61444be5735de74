import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "protocol/contract/limits.ts";
import { REDIS_LIMITS } from "window/redis/limits.ts";
import { resetWindow } from "window/reset.ts";
import { Heartbeats } from "../../services/ws-connector/src/heartbeats.ts";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { ownTime } from "../support/own-time.ts";
import { until } from "../support/until.ts";
import { given, giveUpCalls, useRelay } from "../support/use-relay.ts";

/** Heartbeats of agents that their connections own are gathered: what each of them says is true all the same. */
const fleetOf = (rover: string) => Array.from({ length: 25 }, (_, n) => `fleet-${n}-${rover}`);
/** Whose heartbeats are checked at once, and on another thread. */
const ROVERS = ["rover-hmac", "rover-ed25519"] as const;
const relay = useRelay("anchor-hmac", "witness-hmac", ...ROVERS, ...ROVERS.flatMap(fleetOf));
giveUpCalls();
const proxy = given(() => relay.proxy());
const one = given(() => relay.startWsConnector({ REDIS_URL: proxy.url }));
const two = given(() => relay.startWsConnector());
const view = given(() => relay.view());
const link = given(() => relay.link("window-reset"));
/** From here on pods keep back the heartbeats that they gather, until the mock is restored. */
const holdFlushes = () => jest.spyOn(Heartbeats.prototype, "flush").mockImplementation(() => {});

describe.each(ROVERS)("of %s,", (name) => {
  const heartbeat = () => relay.envelope(name, "agent.heartbeat");
  const register = () => relay.envelope(name, "agent.register");
  const fleet = fleetOf(name);
  const seenIn = ({ presence }: Frame) => Date.parse(presence.last_seen_iso);
  let rover: AgentSocket;
  const others: AgentSocket[] = [];

  beforeEach(async () => {
    proxy.heal();
    await until("pod one is ready", async () => (await fetch(`${one.url}/ready`)).ok);
    // Another agent keeps the connection when the rover is taken over.
    rover = await relay.online(one, "anchor-hmac");
    await rover.ask(register());
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await Promise.all([rover, ...others.splice(0)].map((socket) => socket.close()));
    await until("nobody is there", async () => !(await view.isConnected(name)));
  });

  async function roverOn(pod: typeof two): Promise<AgentSocket> {
    const socket = await relay.online(pod, name);
    others.push(socket);
    return socket;
  }

  /** Pod one has written all that it has gathered so far: this heartbeat is gathered behind it. */
  async function untilFlushed(): Promise<void> {
    const witness = await relay.online(one, "witness-hmac");
    others.push(witness);
    await witness.ask(relay.envelope("witness-hmac", "agent.heartbeat"));
  }

  describe("a heartbeat", () => {
    test("is acked in time, with the time at which it came in, which is what presence says", async () => {
      const waitedMs: number[] = [];
      for (let n = 0; n < 5; n += 1) {
        const sentAt = Date.now();
        const before = (await view.lastSeen(name)) ?? 0;
        const ack = await Promise.race([rover.ask(heartbeat()), ownTime(PRESENCE_LIMITS.heartbeatAckMs)]);
        if (ack === "late") throw new Error("It was not acked in time.");
        waitedMs.push(Date.now() - seenIn(ack));
        // The clock of Redis is known to within a round trip, and never taken for later than it is.
        expect(seenIn(ack)).toBeGreaterThan(sentAt - REDIS_LIMITS.commandTimeoutMs);
        // Presence never goes back: what is known to a round trip may be earlier than the register, which Redis timed.
        expect(await view.lastSeen(name)).toBe(n === 0 ? Math.max(before, seenIn(ack)) : seenIn(ack));
        await delay(n * 20);
      }
      expect(Math.max(...waitedMs)).toBeGreaterThan(REDIS_LIMITS.heartbeatGatherMs / 4);
    });

    test("sent again is a duplicate: in the same moment, later, and on another connection, which it gives nothing", async () => {
      const envelope = heartbeat();
      rover.send(envelope);
      rover.send(envelope);
      const acks = () => rover.frames.filter(({ envelope_id }) => envelope_id === envelope.id);
      await until("both are answered", () => acks().length === 2);
      expect(acks().map(({ accepted, duplicate }) => [accepted, duplicate])).toEqual([
        [true, undefined],
        [true, true],
      ]);
      expect(await rover.ask(envelope)).toMatchObject({ accepted: true, duplicate: true });
      const route = await view.route(name);
      const elsewhere = await relay.connect(two);
      others.push(elsewhere);
      expect(await elsewhere.ask(envelope)).toMatchObject({ accepted: true, duplicate: true });
      expect(await view.route(name)).toEqual(route);
    });

    test("is unavailable where Redis does not answer, and accepted when it is sent again", async () => {
      proxy.hold("ws-connector");
      const envelope = heartbeat();
      expect(await rover.ask(envelope)).toMatchObject({ code: "unavailable", envelope_id: envelope.id });
      proxy.letGo("ws-connector");
      await until("it is accepted", async () => (await rover.ask(envelope)).accepted === true);
      expect(rover.notices("superseded")).toEqual([]);
    });
  });

  describe("a heartbeat that is gathered while", () => {
    test("another pod takes its agent over changes nothing of the new owner's", async () => {
      for (let n = 0; n < 4; n += 1) {
        const envelope = heartbeat();
        rover.send(envelope);
        const right = await roverOn(two);
        const seenAt = await view.lastSeen(name);
        const answer = await rover.next("an answer", ({ envelope_id }) => envelope_id === envelope.id);
        expect([answer.accepted, answer.code]).toEqual(
          answer.accepted ? [true, undefined] : [undefined, "not_registered"],
        );
        await rover.next("the notice", ({ notice }) => notice === "superseded");
        expect((await view.route(name))?.connection).toBe(right.connectionId);
        expect(await view.lastSeen(name)).toBe(seenAt);
        await right.close();
        await until("it is gone", async () => !(await view.isConnected(name)));
        expect(await rover.ask(register())).toMatchObject({ accepted: true });
        rover.frames.length = 0;
      }
    });

    test("its agent and twenty others are taken over closes no connection that keeps one: it is no fault of the client's", async () => {
      const of = (type: string) => fleet.map((name) => relay.envelope(name, type));
      for (const envelope of of("agent.register")) await rover.ask(envelope);
      const right = await roverOn(two);
      const flushes = holdFlushes();
      const beats = of("agent.heartbeat");
      const stays = relay.envelope("anchor-hmac", "agent.heartbeat");
      for (const envelope of [...beats, stays]) rover.send(envelope);
      for (const envelope of of("agent.register")) expect(await right.ask(envelope)).toMatchObject({ accepted: true });
      flushes.mockRestore();
      const answerTo = (id: string) => rover.next("an answer", ({ envelope_id }) => envelope_id === id);
      expect(await answerTo(stays.id)).toMatchObject({ accepted: true });
      const codes = await Promise.all(beats.map(async ({ id }) => (await answerTo(id)).code));
      expect(codes).toEqual(fleet.map(() => "not_registered"));
      expect(rover.closed).toBeUndefined();
    });

    test("its agent is taken over and goes does not bring it back, its pod having heard of it", async () => {
      for (let n = 0; n < 2; n += 1) {
        rover.frames.length = 0;
        const right = await relay.connect(two);
        const flushes = holdFlushes();
        const envelope = heartbeat();
        rover.send(envelope);
        await until("it is taken over", async () => (await right.ask(register())).accepted === true);
        await rover.next("the notice", ({ notice }) => notice === "superseded");
        await right.close();
        await until("it is gone", async () => !(await view.isConnected(name)));
        flushes.mockRestore();
        await rover.next("an answer", ({ envelope_id }) => envelope_id === envelope.id);
        await untilFlushed();
        expect(await view.isConnected(name)).toBe(false);
        await rover.ask(register());
      }
    });

    test("its agent registers again on its connection is acked, as the register is, which alone has another epoch", async () => {
      const before = await view.route(name);
      const envelopes = [heartbeat(), register(), heartbeat()];
      for (const envelope of envelopes) rover.send(envelope);
      for (const { id } of envelopes) {
        expect(await rover.next("its answer", ({ envelope_id }) => envelope_id === id)).toMatchObject({
          accepted: true,
        });
      }
      const after = await view.route(name);
      expect(after?.connection).toBe(before?.connection);
      expect(after?.epoch).toBeGreaterThan(before?.epoch as number);
      expect(await rover.ask(heartbeat())).toMatchObject({ accepted: true });
      expect(await view.route(name)).toEqual(after);
    });

    test("its connection closes says when the agent was last heard, and leaves it offline", async () => {
      // Redis timed the register, and the pod knows that clock to within a round trip.
      const registered = (await view.lastSeen(name)) as number;
      await until("a heartbeat is later", async () => seenIn(await rover.ask(heartbeat())) > registered);
      const before = (await view.lastSeen(name)) as number;
      await until("the next millisecond", () => Date.now() > before + 1);
      rover.send(heartbeat());
      // A message behind it is answered at once: the heartbeat was taken in.
      await rover.ask(relay.envelope("anchor-hmac", "message.send", { to: `agent://${name}` }));
      await rover.close();
      await until("it is gone", async () => !(await view.isConnected(name)));
      expect(await view.lastSeen(name)).toBeGreaterThan(before);
      await untilFlushed();
      expect(await view.isConnected(name)).toBe(false);
    });

    test("its pod stops is answered, and leaves the agent offline", async () => {
      const pod = await relay.startWsConnector();
      const right = await roverOn(pod);
      const envelope = heartbeat();
      right.send(envelope);
      await right.ask(relay.envelope(name, "message.send", { to: "agent://anchor-hmac" }));
      await pod.stop();
      expect(right.frames.find(({ envelope_id }) => envelope_id === envelope.id)).toMatchObject({ accepted: true });
      expect(await view.isConnected(name)).toBe(false);
    });

    test("another window is opened is accepted in that one, on the same connection", async () => {
      const before = await view.route(name);
      for (let n = 0; n < 3; n += 1) {
        const envelope = heartbeat();
        rover.send(envelope);
        await resetWindow(link, { partitions: relay.partitions, deployId: "local", force: true });
        const answer = await rover.next("its answer", ({ envelope_id }) => envelope_id === envelope.id);
        expect(answer).toMatchObject({ accepted: true, presence: { status: "online" } });
      }
      await until("it is present", async () => (await view.route(name))?.connection === before?.connection);
      expect(await rover.ask(heartbeat())).toMatchObject({ accepted: true });
    });
  });
});
