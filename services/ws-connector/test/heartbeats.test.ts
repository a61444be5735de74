import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import { createLogger } from "relay-runtime/logging.ts";
import { SignatureVerifier } from "relay-runtime/verification/signature-verifier.ts";
import { type Acceptance, type PresenceAcceptance, UNDONE } from "relay-window/acceptance/acceptance.ts";
import type { PodChannel } from "relay-window/channel/pod-channel.ts";
import type { HeartbeatAnswer, HeartbeatWriter, OwnedHeartbeat } from "relay-window/presence/heartbeat-writer.ts";
import { REDIS_LIMITS } from "relay-window/redis/redis-limits.ts";
import { ED25519, signed } from "../../../shared/protocol/test/intake/support.ts";
import { until } from "../../../test/support/until.ts";
import {
  BATCH_WAIT_MS,
  type GatheredHeartbeat,
  Heartbeats,
  IntakeBatch,
  MOST_IN_BATCH,
  mayBeHeartbeat,
} from "../src/agents/heartbeats.ts";
import { Ownership } from "../src/agents/ownership.ts";
import type { Registrar } from "../src/agents/registrar.ts";
import type { Connection } from "../src/connection/connection.ts";
import { IntakeHarness, register } from "./intake-harness.ts";
import { online } from "./registrar-harness.ts";

/** Heartbeats wait for each other twice: to be checked together, and to be written together. */

describe("Before they are checked:", () => {
  describe("texts of heartbeats", () => {
    let batch: IntakeBatch;
    let taken: number[];
    const join = (n: number) => batch.add(() => void taken.push(n));

    beforeEach(() => {
      jest.useFakeTimers();
      batch = new IntakeBatch({ logger: createLogger({ service: "test", level: "silent" }) });
      taken = [];
    });
    afterEach(() => {
      jest.useRealTimers();
    });

    test("are taken in together, in their order, a moment after the first of them", () => {
      join(1);
      jest.advanceTimersByTime(BATCH_WAIT_MS - 1);
      join(2);
      expect(taken).toEqual([]);
      jest.advanceTimersByTime(1);
      expect(taken).toEqual([1, 2]);
    });

    test("go on each, though one of them fails", () => {
      join(1);
      batch.add(() => {
        throw new Error("thrown by the test");
      });
      join(2);
      jest.advanceTimersByTime(BATCH_WAIT_MS);
      expect(taken).toEqual([1, 2]);
    });

    test("go on at once when there are many", () => {
      for (let n = 1; n < MOST_IN_BATCH; n += 1) join(n);
      expect(taken).toEqual([]);
      join(MOST_IN_BATCH);
      expect(taken).toHaveLength(MOST_IN_BATCH);
    });

    test("go on when they are told to, each once; what comes then waits as long as ever", () => {
      join(1);
      jest.advanceTimersByTime(BATCH_WAIT_MS - 1);
      batch.flush();
      join(2);
      jest.advanceTimersByTime(BATCH_WAIT_MS - 1);
      expect(taken).toEqual([1]);
      jest.advanceTimersByTime(1);
      expect(taken).toEqual([1, 2]);
      batch.flush();
      expect(taken).toEqual([1, 2]);
    });
  });

  test("What a heartbeat waits before it is written, and one call of Redis, fit in the time within which it is acked", () => {
    const { heartbeatGatherMs, commandTimeoutMs } = REDIS_LIMITS;
    expect(BATCH_WAIT_MS + heartbeatGatherMs + commandTimeoutMs).toBeLessThanOrEqual(PRESENCE_LIMITS.heartbeatAckMs);
  });

  test.each<[string, boolean, object]>([
    ["a heartbeat", true, { type: "agent.heartbeat", payload: {} }],
    ["a heartbeat that takes long to check", false, { type: "agent.heartbeat", payload: { text: "x".repeat(1024) } }],
    ["a register", false, { type: "agent.register", payload: {} }],
    ["a message that quotes one", false, { type: "message.send", payload: { text: 'a "agent.heartbeat"' } }],
  ])("of texts, %s may wait for a batch: %s", (_, waits, envelope) => {
    expect(mayBeHeartbeat(JSON.stringify(envelope))).toBe(waits);
  });
});

describe("Once they are gathered:", () => {
  const EPOCH = 7;
  /** The calls so far: partition, and agents in order. */
  let calls: [number, string[]][];
  /** What the calls have waited for since it was set. */
  let written: PromiseWithResolvers<void>;
  let answers: (HeartbeatAnswer | "threw")[];
  let isHeard: boolean;
  let heartbeats: Heartbeats;

  /** An agent that is called after its partition. */
  const partitionOf = (agent: string) => Number(/(\d)-/.exec(agent)?.[1]);
  const writer = {
    partitions: 2,
    partitionOf,
    write: async (partition: number, batch: readonly OwnedHeartbeat[]) => {
      calls.push([partition, batch.map(({ item }) => item.envelope.from)]);
      await written.promise;
      return batch.map(() => online(EPOCH));
    },
  } as unknown as HeartbeatWriter;

  beforeEach(() => {
    [calls, answers, isHeard] = [[], [], true];
    written = Promise.withResolvers();
    const channel = { isReadyFor: () => isHeard } as unknown as PodChannel;
    heartbeats = new Heartbeats({ writer, channel, logger: createLogger({ service: "test", level: "silent" }) });
  });

  function connectionWith(...agents: readonly string[]): Connection {
    const ownership = new Ownership("con_1");
    for (const agent of agents) ownership.apply(agent, { kind: "granted", epoch: EPOCH, key: "k", heardAt: 0 });
    return { agents: ownership } as unknown as Connection;
  }

  function gather(connection: Connection, agent: string, changes: Partial<GatheredHeartbeat> = {}): void {
    const item = { envelope: { from: agent } } as OwnedHeartbeat["item"];
    const answered = (answer: HeartbeatAnswer) => void answers.push(answer);
    heartbeats.gather({ item, connection, epoch: EPOCH, heardAt: 0, answered, ...changes });
  }

  async function settle(connection: Connection): Promise<void> {
    written.resolve();
    await heartbeats.settled(connection);
  }

  describe("heartbeats that are gathered", () => {
    test("are written together, one call a partition, and each gets its answer", async () => {
      const one = connectionWith("0-a", "1-a");
      const two = connectionWith("0-b");
      gather(one, "0-a");
      gather(one, "1-a");
      gather(two, "0-b");
      expect(calls).toEqual([]);
      heartbeats.flush();
      heartbeats.flush();
      expect(calls).toEqual([
        [0, ["0-a", "0-b"]],
        [1, ["1-a"]],
      ]);
      await settle(one);
      expect(answers).toEqual(Array(3).fill(online(EPOCH)));
    });

    test("are written at once when they are as many as one call takes", () => {
      const connection = connectionWith("0-a");
      for (let n = 0; n <= REDIS_LIMITS.routesBatch; n += 1) gather(connection, "0-a");
      expect(calls.map(([, agents]) => agents.length)).toEqual([REDIS_LIMITS.routesBatch]);
    });

    test("are written before what their connection sends next about the agent, and for no other's sake", () => {
      const one = connectionWith("0-a", "1-a");
      gather(one, "0-a");
      gather(one, "1-a");
      heartbeats.flushOf(connectionWith("0-a"));
      heartbeats.flushOf(one, "0-b");
      expect(calls).toEqual([]);
      heartbeats.flushOf(one, "0-a");
      expect(calls).toEqual([[0, ["0-a"]]]);
      heartbeats.flushOf(one);
      expect(calls).toEqual([
        [0, ["0-a"]],
        [1, ["1-a"]],
      ]);
    });

    test("are settled when those under way are answered, too", async () => {
      const connection = connectionWith("0-a");
      gather(connection, "0-a");
      heartbeats.flush();
      let isSettled = false;
      const settled = heartbeats.settled(connection).then(() => {
        isSettled = true;
      });
      await new Promise(setImmediate);
      expect(isSettled).toBe(false);
      written.resolve();
      await settled;
      expect(answers).toHaveLength(1);
    });

    test("are settled though another connection's have no answer", async () => {
      gather(connectionWith("0-b"), "0-b");
      heartbeats.flush();
      await heartbeats.settled(connectionWith("0-a"));
      expect([calls, answers]).toEqual([[[0, ["0-b"]]], []]);
    });

    test("of an agent that its connection has lost, or has anew, are not written: acceptance decides", async () => {
      const connection = connectionWith("0-a", "0-b");
      gather(connection, "0-a");
      gather(connection, "0-b", { epoch: EPOCH - 1 });
      connection.agents.apply("0-a", { kind: "superseded", epoch: EPOCH + 1 });
      await settle(connection);
      expect([calls, answers]).toEqual([[], [null, null]]);
    });

    test("of agents that no delivery reaches are not written: nobody is called online by them", async () => {
      const connection = connectionWith("0-a");
      gather(connection, "0-a");
      isHeard = false;
      await settle(connection);
      expect([calls, answers]).toEqual([[], [UNDONE]]);
    });

    test("are each answered, whatever comes of the answer of another", async () => {
      const connection = connectionWith("0-a", "0-b");
      const answered = () => {
        throw new Error("thrown by the test");
      };
      gather(connection, "0-a", { answered });
      gather(connection, "0-b");
      await settle(connection);
      expect(answers).toEqual([online(EPOCH)]);
    });
  });
});

describe("In the intake:", () => {
  let harness: IntakeHarness;
  const verifier = new SignatureVerifier();
  beforeAll(() => verifier.start());
  afterAll(() => verifier.stop());
  beforeEach(() => {
    harness = new IntakeHarness(verifier);
  });

  describe("a heartbeat", () => {
    const ALICE = "agent://alice";
    const beat = () => harness.receive(signed({ id: "beat", type: "agent.heartbeat", payload: {}, ts: Date.now() }));
    const own = (key: string) => harness.connection.agents.apply(ALICE, { kind: "granted", epoch: 7, key, heardAt: 0 });
    /** The key of the agent, as the harness.connection knows it from a register. */
    let key: string;
    const counts = () => [harness.gathered.length, harness.accepting.length];

    beforeEach(() => {
      let verifiedKey = "";
      const requested: Registrar["requested"] = (_, verified) => {
        verifiedKey = verified.key;
      };
      const { registrar } = harness.parts;
      Object.assign(registrar, { requested });
      harness.receive(register("first"));
      harness.accepting.pop()?.done(online(7));
      key = verifiedKey;
    });

    test("is gathered when its connection owns the agent, under the key that it has", () => {
      own(key);
      beat();
      expect(counts()).toEqual([1, 0]);
      expect(harness.gathered[0]).toMatchObject({ epoch: 7, item: { envelope: { id: "beat" } } });
    });

    test.each<[string, () => void]>([
      ["the connection does not own the agent", () => {}],
      ["the agent's key is another one so far", () => own("another")],
      [
        "a register waits for its answer",
        () => {
          own(key);
          harness.connection.agents.apply(ALICE, { kind: "requested" });
        },
      ],
      [
        "one had none",
        () => {
          own(key);
          harness.connection.agents.apply(ALICE, { kind: "requested" });
          harness.connection.agents.apply(ALICE, { kind: "unanswered", key });
        },
      ],
    ])("goes to acceptance at once where %s", (_, given) => {
      given();
      beat();
      expect(counts()).toEqual([0, 1]);
    });

    test("of a registered connection waits for others, and was heard when it came in", () => {
      own(key);
      Object.assign(harness.connection, { principal: "key:alice-hmac" });
      beat();
      const cameBefore = performance.now();
      expect([counts(), harness.connection.intake]).toEqual([[0, 0], undefined]);
      while (performance.now() < cameBefore + 2);
      harness.parts.batch.flush();
      expect(counts()).toEqual([1, 0]);
      expect(harness.gathered[0]?.heardAt).toBeLessThanOrEqual(cameBefore);
    });

    test("is taken in before what follows it", () => {
      own(key);
      Object.assign(harness.connection, { principal: "key:alice-hmac" });
      beat();
      harness.receive(signed({ id: "message", ts: Date.now() }));
      expect(counts()).toEqual([1, 1]);
      expect(harness.gathered[0]).toMatchObject({ item: { envelope: { id: "beat" } } });
    });

    test("ends a row of refusals when it is gathered, before it is answered", () => {
      const valid: string[] = [];
      const noteValid = (principal: string, agent: string) => valid.push(`${principal} ${agent}`);
      Object.assign(harness.connection, { noteValid });
      own(key);
      beat();
      expect([counts(), valid]).toEqual([[1, 0], [`key:alice-hmac ${ALICE}`]]);
    });

    test("keeps the intake of its connection until it is answered", () => {
      own(key);
      beat();
      expect(harness.connection.intake).toBeDefined();
      harness.gathered[0]?.answered(online(7));
      expect(harness.connection.intake).toBeUndefined();
    });

    test("of which more comes than a write goes to acceptance after all", () => {
      own(key);
      beat();
      harness.gathered[0]?.answered(null);
      expect(counts()).toEqual([1, 1]);
      expect(harness.connection.intake).toBeDefined();
      harness.accepting[0]?.done(online(8));
      expect(harness.connection.intake).toBeUndefined();
    });

    test("takes no agent back that its connection has lost meanwhile", () => {
      own(key);
      beat();
      harness.connection.agents.apply(ALICE, { kind: "superseded", epoch: 8 });
      harness.gathered[0]?.answered(null);
      expect([harness.errors, counts(), harness.connection.intake]).toEqual([["not_registered"], [1, 0], undefined]);
    });

    describe("whose agent was lost after it came in is not_registered, which counts for nobody as a refusal,", () => {
      /** Has the registrar refuse what it is told. */
      const refuse = (_: Connection, __: unknown, answer: Acceptance, refused: (acceptance: Acceptance) => void) =>
        refused(answer);
      const NOT_REGISTERED = { outcome: "not_registered", epoch: 8 } as const;

      test.each<[string, () => void]>([
        [
          "where its connection was told before it was written",
          () => {
            harness.connection.agents.apply(ALICE, { kind: "superseded", epoch: 8 });
            harness.gathered[0]?.answered(null);
          },
        ],
        [
          "where it was told while the call was under way",
          () => harness.gathered[0]?.answered(NOT_REGISTERED as unknown as PresenceAcceptance),
        ],
        [
          "where Redis knows of it first",
          () => {
            harness.gathered[0]?.answered(null);
            harness.accepting[0]?.done(NOT_REGISTERED);
          },
        ],
      ])("%s", (_, lose) => {
        let refusals = 0;
        Object.assign(harness.connection, { principal: "key:alice-hmac", noteRefusal: () => (refusals += 1) });
        Object.assign(harness.parts.registrar, { heard: refuse, answered: refuse });
        own(key);
        beat();
        harness.parts.batch.flush();
        lose();
        expect([harness.errors, refusals, [...harness.keyRefusals]]).toEqual([["not_registered"], 0, []]);
      });
    });

    describe("whose signature is being checked while another connection takes its agent over", () => {
      const ed = (id: string, type: string) =>
        harness.receive(signed({ id, type, payload: {}, ts: Date.now(), key_id: "alice-ed" }, ED25519));
      const takeOver = () => harness.connection.agents.apply(ALICE, { kind: "superseded", epoch: 8 });

      beforeEach(() => void own(key));

      test("takes it back no more than one that was gathered, and is not_registered, too, which is no refusal", async () => {
        let refusals = 0;
        Object.assign(harness.connection, { noteRefusal: () => (refusals += 1) });
        ed("beat", "agent.heartbeat");
        takeOver();
        await until("it is answered", () => harness.connection.intake === undefined);
        expect([harness.errors, refusals, counts()]).toEqual([["not_registered"], 0, [0, 0]]);
      });

      test("goes to acceptance behind a register that takes it back", async () => {
        const requested: Registrar["requested"] = () => harness.connection.agents.apply(ALICE, { kind: "requested" });
        Object.assign(harness.parts.registrar, { requested });
        ed("again", "agent.register");
        ed("beat", "agent.heartbeat");
        takeOver();
        await until("both are sent to Redis", () => harness.accepting.length + harness.errors.length === 2);
        expect([harness.errors, harness.accepting.map(({ envelope }) => envelope.id)]).toEqual([[], ["again", "beat"]]);
      });
    });

    test("takes none to a connection that its pod lets go", () => {
      own(key);
      beat();
      Object.assign(harness.parts.registrar, { canTake: () => false });
      harness.gathered[0]?.answered(null);
      expect([harness.errors, counts()]).toEqual([["unavailable"], [1, 0]]);
    });

    test("is unavailable while a release may take what it would be granted", () => {
      harness.awaitsRelease = true;
      beat();
      expect([harness.errors, counts()]).toEqual([["unavailable"], [0, 0]]);
    });

    test("is discarded when its connection closes meanwhile", () => {
      own(key);
      beat();
      Object.assign(harness.connection, { isClosing: true });
      harness.gathered[0]?.answered(null);
      expect([harness.errors, counts(), harness.connection.intake]).toEqual([[], [1, 0], undefined]);
    });
  });
});
