import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { SessionLimit } from "protocol/contract/rate-limits.ts";
import type { KeyStore } from "runtime/key-store.ts";
import { createLogger } from "runtime/logging.ts";
import { KeyRefusals } from "runtime/metrics/key-refusals.ts";
import { Tally } from "runtime/metrics/service-metrics.ts";
import { EnvelopeVerifier } from "runtime/verification/envelope-verifier.ts";
import { SignatureVerifier } from "runtime/verification/signature-verifier.ts";
import type { Acceptance, AcceptanceItem, Prepared, PresenceAcceptance } from "window/acceptance/acceptance.ts";
import type { Acceptor } from "window/acceptance/acceptor.ts";
import type { Principal } from "window/principal.ts";
import { ED25519, KEYS, signed } from "../../../shared/protocol/test/intake/support.ts";
import { until } from "../../../test/support/until.ts";
import { Answers } from "../src/answers.ts";
import { Authority } from "../src/authority.ts";
import type { Connection } from "../src/connection.ts";
import { DecisionRepeats } from "../src/decision-repeats.ts";
import type { GatheredHeartbeat, Heartbeats } from "../src/heartbeats.ts";
import { type IntakeDependencies, receiveText } from "../src/intake.ts";
import { IntakeBatch } from "../src/intake-batch.ts";
import { Ownership } from "../src/ownership.ts";
import type { Registrar } from "../src/registrar.ts";
import { online } from "./registrar-harness.ts";

/** Codes of the error frames. */
let errors: string[];
let connection: Connection;
/** What was sent to acceptance. */
const BASE_URL = "https://relay.example";
let accepting: AcceptanceItem[];
let gathered: GatheredHeartbeat[];
/** What the preparation of the last session envelope comes to. */
let prepared: PromiseWithResolvers<Acceptance | Prepared>;
let dependencies: IntakeDependencies;
let keyRefusals: KeyRefusals;
/** Whether a release may take what the connection is granted now. */
let awaitsRelease: boolean;

const verifier = new SignatureVerifier();
beforeAll(() => verifier.start());
afterAll(() => verifier.stop());

beforeEach(() => {
  errors = [];
  accepting = [];
  gathered = [];
  awaitsRelease = false;
  prepared = Promise.withResolvers();
  const agents = new Ownership("con_1");
  connection = {
    agents,
    isClosing: false,
    allAnswered: () => Object.assign(connection, { intake: undefined }),
    noteValid: () => {},
    noteRefusal: () => {},
    resume: () => {},
    send: (text: string) => errors.push(JSON.parse(text).code),
  } as unknown as Connection;
  const keys = KEYS as unknown as KeyStore;
  const authority = new Authority({ keys, hosts: new Set() });
  keyRefusals = new KeyRefusals();
  dependencies = {
    authority,
    verifier: new EnvelopeVerifier(verifier),
    acceptor: {
      accept: (item: AcceptanceItem) => accepting.push(item),
      needsPreparation: ({ kind }: Pick<AcceptanceItem, "kind">) => kind !== "message",
      prepare: () => prepared.promise,
    } as unknown as Acceptor,
    decisionRepeats: new DecisionRepeats({ accept: (item) => accepting.push(item) }),
    registrar: {
      canTake: () => true,
      awaitsRelease: () => awaitsRelease,
      requested: () => {},
      answered: () => {},
      touched: () => {},
    } as unknown as Registrar,
    heartbeats: { gather: (heartbeat: GatheredHeartbeat) => gathered.push(heartbeat) } as unknown as Heartbeats,
    batch: new IntakeBatch({ logger: createLogger({ service: "test", level: "silent" }) }),
    answers: new Answers({ authority, refusals: new Tally(), keyRefusals, baseUrl: BASE_URL }),
  };
});

const receive = (envelope: object) => receiveText(connection, JSON.stringify(envelope), dependencies);
const register = (id: string) => signed({ id, type: "agent.register", payload: {}, ts: Date.now() });

describe("a connection has no intake", () => {
  test("before it sends anything, and once each of its envelopes is answered", () => {
    expect(connection.intake).toBeUndefined();
    receive(register("a"));
    receive(register("b"));
    accepting[0]?.done(online(1));
    expect(connection.intake).toBeDefined();
    accepting[1]?.done(online(1));
    expect(connection.intake).toBeUndefined();
  });

  test("when its envelope is refused at once", () => {
    receive({ id: "a" });
    expect([errors, connection.intake]).toEqual([["invalid_envelope"], undefined]);
  });

  test("when its envelope is refused on another thread", async () => {
    const { sig } = signed({ key_id: "alice-ed" }, ED25519);
    receive({ ...signed({ key_id: "alice-ed", ts: Date.now() }, ED25519), sig });
    expect(connection.intake).toBeDefined();
    await until("it is refused", () => errors.length > 0);
    expect([errors, connection.intake]).toEqual([["bad_signature"], undefined]);
  });
});

describe("a heartbeat", () => {
  const ALICE = "agent://alice";
  const beat = () => receive(signed({ id: "beat", type: "agent.heartbeat", payload: {}, ts: Date.now() }));
  const own = (key: string) => connection.agents.apply(ALICE, { kind: "granted", epoch: 7, key, heardAt: 0 });
  /** The key of the agent, as the connection knows it from a register. */
  let key: string;
  const counts = () => [gathered.length, accepting.length];

  beforeEach(() => {
    let verifiedKey = "";
    const requested: Registrar["requested"] = (_, verified) => {
      verifiedKey = verified.key;
    };
    const { registrar } = dependencies;
    Object.assign(registrar, { requested });
    receive(register("first"));
    accepting.pop()?.done(online(7));
    key = verifiedKey;
  });

  test("is gathered when its connection owns the agent, under the key that it has", () => {
    own(key);
    beat();
    expect(counts()).toEqual([1, 0]);
    expect(gathered[0]).toMatchObject({ epoch: 7, item: { envelope: { id: "beat" } } });
  });

  test.each<[string, () => void]>([
    ["the connection does not own the agent", () => {}],
    ["the agent's key is another one so far", () => own("another")],
    [
      "a register waits for its answer",
      () => {
        own(key);
        connection.agents.apply(ALICE, { kind: "requested" });
      },
    ],
    [
      "one had none",
      () => {
        own(key);
        connection.agents.apply(ALICE, { kind: "requested" });
        connection.agents.apply(ALICE, { kind: "unanswered", key });
      },
    ],
  ])("goes to acceptance at once where %s", (_, given) => {
    given();
    beat();
    expect(counts()).toEqual([0, 1]);
  });

  test("of a registered connection waits for others, and was heard when it came in", () => {
    own(key);
    Object.assign(connection, { principal: "key:alice-hmac" });
    beat();
    const cameBefore = performance.now();
    expect([counts(), connection.intake]).toEqual([[0, 0], undefined]);
    while (performance.now() < cameBefore + 2);
    dependencies.batch.flush();
    expect(counts()).toEqual([1, 0]);
    expect(gathered[0]?.heardAt).toBeLessThanOrEqual(cameBefore);
  });

  test("is taken in before what follows it", () => {
    own(key);
    Object.assign(connection, { principal: "key:alice-hmac" });
    beat();
    receive(signed({ id: "message", ts: Date.now() }));
    expect(counts()).toEqual([1, 1]);
    expect(gathered[0]).toMatchObject({ item: { envelope: { id: "beat" } } });
  });

  test("keeps the intake of its connection until it is answered", () => {
    own(key);
    beat();
    expect(connection.intake).toBeDefined();
    gathered[0]?.answered(online(7));
    expect(connection.intake).toBeUndefined();
  });

  test("of which more comes than a touch goes to acceptance after all", () => {
    own(key);
    beat();
    gathered[0]?.answered(null);
    expect(counts()).toEqual([1, 1]);
    expect(connection.intake).toBeDefined();
    accepting[0]?.done(online(8));
    expect(connection.intake).toBeUndefined();
  });

  test("takes no agent back that its connection has lost meanwhile", () => {
    own(key);
    beat();
    connection.agents.apply(ALICE, { kind: "superseded", epoch: 8 });
    gathered[0]?.answered(null);
    expect([errors, counts(), connection.intake]).toEqual([["not_registered"], [1, 0], undefined]);
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
          connection.agents.apply(ALICE, { kind: "superseded", epoch: 8 });
          gathered[0]?.answered(null);
        },
      ],
      [
        "where it was told while the call was under way",
        () => gathered[0]?.answered(NOT_REGISTERED as unknown as PresenceAcceptance),
      ],
      [
        "where Redis knows of it first",
        () => {
          gathered[0]?.answered(null);
          accepting[0]?.done(NOT_REGISTERED);
        },
      ],
    ])("%s", (_, lose) => {
      let refusals = 0;
      Object.assign(connection, { principal: "key:alice-hmac", noteRefusal: () => (refusals += 1) });
      Object.assign(dependencies.registrar, { touched: refuse, answered: refuse });
      own(key);
      beat();
      dependencies.batch.flush();
      lose();
      expect([errors, refusals, [...keyRefusals]]).toEqual([["not_registered"], 0, []]);
    });
  });

  describe("whose signature is being checked while another connection takes its agent over", () => {
    const ed = (id: string, type: string) =>
      receive(signed({ id, type, payload: {}, ts: Date.now(), key_id: "alice-ed" }, ED25519));
    const takeOver = () => connection.agents.apply(ALICE, { kind: "superseded", epoch: 8 });

    beforeEach(() => void own(key));

    test("takes it back no more than one that was gathered, and is not_registered, too, which is no refusal", async () => {
      let refusals = 0;
      Object.assign(connection, { noteRefusal: () => (refusals += 1) });
      ed("beat", "agent.heartbeat");
      takeOver();
      await until("it is answered", () => connection.intake === undefined);
      expect([errors, refusals, counts()]).toEqual([["not_registered"], 0, [0, 0]]);
    });

    test("goes to acceptance behind a register that takes it back", async () => {
      const requested: Registrar["requested"] = () => connection.agents.apply(ALICE, { kind: "requested" });
      Object.assign(dependencies.registrar, { requested });
      ed("again", "agent.register");
      ed("beat", "agent.heartbeat");
      takeOver();
      await until("both are sent to Redis", () => accepting.length + errors.length === 2);
      expect([errors, accepting.map(({ envelope }) => envelope.id)]).toEqual([[], ["again", "beat"]]);
    });
  });

  test("takes none to a connection that its pod lets go", () => {
    own(key);
    beat();
    Object.assign(dependencies.registrar, { canTake: () => false });
    gathered[0]?.answered(null);
    expect([errors, counts()]).toEqual([["unavailable"], [1, 0]]);
  });

  test("is unavailable while a release may take what it would be granted", () => {
    awaitsRelease = true;
    beat();
    expect([errors, counts()]).toEqual([["unavailable"], [0, 0]]);
  });

  test("is discarded when its connection closes meanwhile", () => {
    own(key);
    beat();
    Object.assign(connection, { isClosing: true });
    gathered[0]?.answered(null);
    expect([errors, counts(), connection.intake]).toEqual([[], [1, 0], undefined]);
  });
});

describe("what a call says of the congestion of its connection is said again once it is over", () => {
  let isCongested: boolean;
  let said: boolean[];
  const call = (type: string) => {
    receive(signed({ id: type, type, payload: {}, ts: Date.now() }));
    const heartbeat = gathered[0];
    if (heartbeat === undefined)
      return { item: accepting[0], end: () => accepting[0]?.done({ outcome: "unavailable" }) };
    return { item: heartbeat.item, end: () => heartbeat.answered({ outcome: "unavailable" }) };
  };

  beforeEach(() => {
    isCongested = true;
    said = [];
    Object.defineProperty(connection, "isCongested", { get: () => isCongested });
    Object.assign(connection, { congestionChanged: () => said.push(isCongested) });
    const requested: Registrar["requested"] = (_, { key }) => {
      connection.agents.apply("agent://alice", { kind: "granted", epoch: 7, key, heardAt: 0 });
    };
    Object.assign(dependencies.registrar, { requested });
  });

  test.each(["agent.register", "agent.heartbeat"])("where it is not true any more: of an %s", (type) => {
    if (type === "agent.heartbeat") {
      receive(register("first"));
      accepting.pop()?.done(online(7));
    }
    const { item, end } = call(type);
    expect(item?.isCongested?.()).toBe(true);
    isCongested = false;
    end();
    expect(said).toEqual([false]);
  });

  test("and only there", () => {
    const { item, end } = call("agent.register");
    expect(item?.isCongested?.()).toBe(true);
    end();
    expect(said).toEqual([]);
  });

  test("unless the call was never made", () => {
    const { end } = call("agent.register");
    isCongested = false;
    end();
    expect(said).toEqual([]);
  });
});

describe("what is in flight when the connection closes", () => {
  const close = () => Object.assign(connection, { isClosing: true });
  const isAbandoned = () => accepting.map(({ envelope, abandoned }) => [envelope.id, abandoned?.()]);
  const inEffect: Prepared = { kind: "decision", state: "a", decidedAt: String(Date.now()) };
  const decision = { id: "decision", type: "session.approve", payload: { session_id: `ses_00${"0".repeat(24)}` } };

  beforeEach(() => {
    connection.agents.apply("agent://alice", { kind: "granted", epoch: 1, key: "alice-hmac", heardAt: 0 });
  });

  test("is dropped before it goes to Redis", () => {
    receive(signed({ id: "message", ts: Date.now() }));
    expect(isAbandoned()).toEqual([["message", false]]);
    close();
    expect(isAbandoned()).toEqual([["message", true]]);
  });

  test("is not even sent to acceptance behind a session decision, which itself goes on to its requester", async () => {
    receive(signed({ ...decision, ts: Date.now() }));
    receive(signed({ id: "behind", ts: Date.now() }));
    close();
    prepared.resolve(inEffect);
    await until("the decision goes on", () => accepting.length > 0);
    expect(isAbandoned()).toEqual([["decision", false]]);
  });

  test("is taken to its requester again when it is a decision in effect whose requester's shard is away in the last step", async () => {
    receive(signed({ ...decision, ts: Date.now() }));
    close();
    prepared.resolve(inEffect);
    await until("the decision goes on", () => accepting.length > 0);
    accepting.splice(0)[0]?.done({ outcome: "unavailable" });
    dependencies.decisionRepeats.flush(performance.now());
    expect(accepting.map(({ envelope, prepared }) => [envelope.id, prepared])).toEqual([["decision", inEffect]]);
    expect(isAbandoned()).toEqual([["decision", undefined]]);
  });

  test("ends there when it is a session decision that the session's partition refused", async () => {
    receive(signed({ ...decision, ts: Date.now() }));
    close();
    prepared.resolve({ outcome: "session_closed" });
    await until("nothing is in flight", () => connection.intake === undefined);
    expect(accepting).toEqual([]);
  });

  test("is dropped, and opens no session, when it is a request that was counted over several partitions", async () => {
    const payload = { purpose: "p" };
    receive(signed({ id: "request", type: "session.request", payload, ts: Date.now() }));
    close();
    prepared.resolve({
      kind: "request",
      pendingElsewhere: 0,
      pendingOfRequesterElsewhere: 0,
      openedElsewhere: 0,
      openedByPrincipalElsewhere: 0,
    });
    await until("the request goes on", () => accepting.length > 0);
    expect(isAbandoned()).toEqual([["request", true]]);
  });
});

describe.each([
  ["not_registered", "a message of an agent that is not registered there", {}],
  ["key_not_allowed", "a message for another agent than its key's", { from: "agent://bob" }],
])("%s: %s", (code, _what, changes) => {
  const refusalsCounted = async (principal: Principal | undefined) => {
    Object.assign(connection, { principal });
    receive(signed({ id: "message", ts: Date.now(), ...changes }));
    await until("it is refused", () => errors.length > 0);
    expect(errors).toEqual([code]);
    return [...keyRefusals].length;
  };

  test.each([undefined, "key:bob-1", "issuer:alice-hmac"] as const)(
    "counts for nobody when whoever was handed it sends it again, on a connection of %s",
    async (principal) => {
      expect(await refusalsCounted(principal)).toBe(0);
    },
  );

  test("counts for its key on a connection of the key's holder", async () => {
    expect(await refusalsCounted("key:alice-hmac")).toBe(1);
  });
});

describe("a session request beyond a bound", () => {
  /** The error frame when acceptance refuses for `limit`. */
  const refusalFrame = (limit: SessionLimit): object => {
    let frame = {};
    const send = (text: string) => {
      frame = JSON.parse(text);
    };
    Object.assign(connection, { send });
    connection.agents.apply("agent://alice", { kind: "granted", epoch: 1, key: "alice-hmac", heardAt: 0 });
    receive(signed({ id: "message", ts: Date.now() }));
    accepting[0]?.done({ outcome: "rate_limited", limit, retryAfterMs: 60_000 });
    return frame;
  };

  test("is told when to come again, and is no refusal of the kind that closes a connection", () => {
    let refusals = 0;
    Object.assign(connection, { noteRefusal: () => (refusals += 1) });
    expect(refusalFrame("pending_sessions")).toMatchObject({
      code: "rate_limited",
      hint: expect.stringContaining("60000 ms"),
      retry_after_ms: 60_000,
    });
    expect(refusals).toBe(0);
  });

  test.each([
    ["pending_sessions", undefined, "max_pending_sessions_per_key", 200],
    ["pending_sessions", "acme", "max_pending_sessions_per_key", 5000],
    ["agent_pending_sessions", "acme", "max_pending_sessions_per_key", 200],
    ["key_opened_sessions", undefined, "sessions_opened_per_minute_per_key", 600],
    ["key_opened_sessions", "acme", "sessions_opened_per_minute_per_key", 15_000],
    ["opened_sessions", "acme", "sessions_opened_per_minute", 60],
  ] as const)("is told the bound that held: %s, issuer %s", (limit, issuer, name, most) => {
    const entry = { ...KEYS.ring.signingKey("alice-hmac", Date.now()), issuer };
    const ring = { signingKey: () => entry, issuers: {} };
    Object.defineProperty(dependencies.authority, "known", { value: { ...KEYS, ring } });
    expect(refusalFrame(limit)).toMatchObject({ message: expect.stringMatching(`${name} .*: ${most}\\.`) });
  });

  test("is answered for by the key that signed it", () => {
    connection.agents.apply("agent://alice", { kind: "granted", epoch: 1, key: "alice-hmac", heardAt: 0 });
    const envelope = signed({ id: "message", ts: Date.now() });
    receive(envelope);
    expect(accepting[0]?.principal).toBe(`key:${envelope.key_id}`);
  });
});
