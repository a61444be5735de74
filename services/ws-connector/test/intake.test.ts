import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { SignatureVerifier } from "relay-runtime/verification/signature-verifier.ts";
import type { Acceptance, DeliveryAcceptance } from "relay-window/acceptance/acceptance.ts";
import type { Principal } from "relay-window/limits/principals.ts";
import { ED25519, KEYS, signed } from "../../../shared/protocol/test/intake/support.ts";
import { until } from "../../../test/support/until.ts";
import type { Registrar } from "../src/agents/registrar.ts";
import { IntakeHarness, register } from "./intake-harness.ts";
import { online } from "./registrar-harness.ts";

let harness: IntakeHarness;
const verifier = new SignatureVerifier();
beforeAll(() => verifier.start());
afterAll(() => verifier.stop());
beforeEach(() => {
  harness = new IntakeHarness(verifier);
});

const delivered: DeliveryAcceptance = {
  ...{ outcome: "accepted", about: "delivery", delivery: "online" },
  ...{ sessionId: null, sessionStatus: null, acceptedAt: 0 },
};

describe("a connection has no intake", () => {
  test("before it sends anything, and once each of its envelopes is answered", () => {
    expect(harness.connection.intake).toBeUndefined();
    harness.receive(register("a"));
    harness.receive(register("b"));
    harness.accepting[0]?.done(online(1));
    expect(harness.connection.intake).toBeDefined();
    harness.accepting[1]?.done(online(1));
    expect(harness.connection.intake).toBeUndefined();
  });

  test("when its envelope is refused at once", () => {
    harness.receive({ id: "a" });
    expect([harness.errors, harness.connection.intake]).toEqual([["invalid_envelope"], undefined]);
  });

  test("when its envelope is refused on another thread", async () => {
    const { sig } = signed({ key_id: "alice-ed" }, ED25519);
    harness.receive({ ...signed({ key_id: "alice-ed", ts: Date.now() }, ED25519), sig });
    expect(harness.connection.intake).toBeDefined();
    await until("it is refused", () => harness.errors.length > 0);
    expect([harness.errors, harness.connection.intake]).toEqual([["bad_signature"], undefined]);
  });
});

test("a connection with more than 256 envelopes without an answer is not read until one is answered", () => {
  let isRead = true;
  const pause = () => {
    isRead = false;
  };
  const resume = () => {
    isRead = true;
  };
  Object.assign(harness.connection, { pause, resume });
  for (let n = 0; n < 256; n += 1) harness.receive(register(`register-${n}`));
  expect(isRead).toBe(true);
  harness.receive(register("register-256"));
  expect(isRead).toBe(false);
  harness.accepting[0]?.done(online(1));
  expect(isRead).toBe(true);
});

describe("an envelope under the key that a register on its way to Redis may bring", () => {
  const KEY_ID = `jkt-${"a".repeat(43)}`;

  beforeEach(() => {
    const requested: Registrar["requested"] = ({ agents }, { envelope }) =>
      void agents.apply(envelope.from, { kind: "requested" });
    const answered: Registrar["answered"] = ({ agents }, { envelope, key }) =>
      void agents.apply(envelope.from, { kind: "granted", epoch: 1, key, heardAt: 0 });
    Object.assign(harness.parts.registrar, { requested, answered });
    harness.receive(register("first"));
    harness.receive(signed({ id: "behind", key_id: KEY_ID, ts: Date.now() }));
    expect([harness.errors, harness.accepting.length]).toEqual([[], 1]);
  });

  test("is taken in when the register is answered and has brought the key", () => {
    const brought = { ...KEYS.ring.signingKey("alice-hmac", Date.now()), keyId: KEY_ID };
    Object.assign(harness.connection, { credentials: { keyOf: () => brought } });
    harness.accepting.pop()?.done(online(1));
    expect([harness.errors, harness.accepting.map(({ envelope }) => envelope.id)]).toEqual([[], ["behind"]]);
  });

  test("is refused when the register is answered and has brought no key", () => {
    harness.accepting.pop()?.done(online(1));
    expect([harness.errors, harness.accepting]).toEqual([["unknown_key"], []]);
  });
});

describe("what a call says of the congestion of its connection is said again once it is over", () => {
  let isCongested: boolean;
  let said: boolean[];
  const call = (type: string) => {
    harness.receive(signed({ id: type, type, payload: {}, ts: Date.now() }));
    const heartbeat = harness.gathered[0];
    if (heartbeat === undefined)
      return { item: harness.accepting[0], end: () => harness.accepting[0]?.done({ outcome: "unavailable" }) };
    return { item: heartbeat.item, end: () => heartbeat.answered({ outcome: "unavailable" }) };
  };

  beforeEach(() => {
    isCongested = true;
    said = [];
    Object.defineProperty(harness.connection, "isCongested", { get: () => isCongested });
    Object.assign(harness.connection, { congestionChanged: () => said.push(isCongested) });
    const requested: Registrar["requested"] = (_, { key }) => {
      harness.connection.agents.apply("agent://alice", { kind: "granted", epoch: 7, key, heardAt: 0 });
    };
    Object.assign(harness.parts.registrar, { requested });
  });

  test.each(["agent.register", "agent.heartbeat"])("where it is not true any more: of an %s", (type) => {
    if (type === "agent.heartbeat") {
      harness.receive(register("first"));
      harness.accepting.pop()?.done(online(7));
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

describe("The time of an ack", () => {
  let clockMs: number;
  beforeEach(() => {
    clockMs = 1000;
    jest.spyOn(performance, "now").mockImplementation(() => clockMs);
    harness.connection.agents.apply("agent://alice", { kind: "granted", epoch: 1, key: "alice-hmac", heardAt: 0 });
  });
  afterEach(() => void jest.restoreAllMocks());
  const answer = (acceptance: Acceptance, afterMs: number) => {
    clockMs += afterMs;
    harness.accepting.shift()?.done(acceptance);
  };

  test("is measured from when its envelope came in, of each of those that are answered together", () => {
    harness.receive(signed({ id: "first", ts: Date.now() }));
    clockMs += 2;
    harness.receive(register("second"));
    answer(delivered, 3);
    answer(online(1), 0);
    expect(harness.acks).toEqual([0.005, 0.003]);
  });

  test("covers the wait for what has to be prepared", async () => {
    const payload = { purpose: "test", ttl_minutes: 5 };
    harness.receive(signed({ id: "request", type: "session.request", payload, ts: Date.now() }));
    clockMs += 2;
    harness.prepared.resolve({
      kind: "request",
      ...{ pendingElsewhere: 0, pendingOfRequesterElsewhere: 0, openedElsewhere: 0, openedByPrincipalElsewhere: 0 },
    });
    await harness.prepared.promise;
    answer(delivered, 3);
    expect(harness.acks).toEqual([0.005]);
  });

  test("is not measured of a refusal, nor of a heartbeat, which waits for others", () => {
    harness.receive(signed({ id: "message", ts: Date.now() }));
    answer({ outcome: "unavailable" }, 3);
    harness.receive(signed({ id: "beat", type: "agent.heartbeat", payload: {}, ts: Date.now() }));
    answer(online(1), 3);
    expect([harness.accepting, harness.acks]).toEqual([[], []]);
  });
});

describe("What an envelope costs is told to be its signer's", () => {
  const own = (key: string) =>
    harness.connection.agents.apply("agent://alice", { kind: "granted", epoch: 1, key, heardAt: 0 });
  const ALICE = "key:alice-hmac agent://alice";

  test("once, of a message of an agent that the connection has", () => {
    own("alice-hmac");
    harness.receive(signed({ id: "message", ts: Date.now() }));
    expect(harness.signers).toEqual([ALICE]);
  });

  test("once, of a heartbeat, gathered or not, and of a register, when it has given the agent", () => {
    harness.receive(register("a"));
    expect(harness.signers).toEqual([]);
    harness.accepting.pop()?.done(online(1));
    expect(harness.signers).toEqual([ALICE]);
    own(KEYS.ring.signingKey("alice-hmac", Date.now())?.identity as string);
    harness.receive(signed({ id: "b", type: "agent.heartbeat", payload: {}, ts: Date.now() }));
    harness.parts.batch.flush();
    harness.gathered[0]?.answered({ outcome: "unavailable" });
    expect(harness.signers).toEqual([ALICE, ALICE]);
  });

  test("once, of a heartbeat that was gathered, and goes on to acceptance", () => {
    own(KEYS.ring.signingKey("alice-hmac", Date.now())?.identity as string);
    harness.receive(signed({ id: "b", type: "agent.heartbeat", payload: {}, ts: Date.now() }));
    harness.gathered[0]?.answered(null);
    harness.accepting[0]?.done(online(2));
    expect(harness.signers).toEqual([ALICE]);
  });

  test.each([
    ["a message of an agent that the connection has not", () => harness.receive(signed({ id: "a", ts: Date.now() }))],
    [
      "the repeat of a register that another connection sent",
      () => {
        harness.receive(register("a"));
        harness.accepting[0]?.done({ ...online(1), outcome: "duplicate", epoch: null });
      },
    ],
  ])("never, of what whoever was handed it can send again: %s", (_, replay) => {
    replay();
    expect(harness.signers).toEqual([]);
  });
});

describe("An envelope that cannot be taken in through a fault of the relay", () => {
  const SECRET = "what nobody may read in a log";
  const fault = () => {
    throw new Error(`a fault of ours about ${SECRET}`);
  };
  const own = () => {
    const key = KEYS.ring.signingKey("alice-hmac", Date.now())?.identity as string;
    harness.connection.agents.apply("agent://alice", { kind: "granted", epoch: 1, key, heardAt: 0 });
  };
  const once = (object: object, name: string) => {
    const was = object[name as keyof object];
    const failing = () => {
      Object.assign(object, { [name]: was });
      return fault();
    };
    Object.assign(object, { [name]: failing });
  };
  const heartbeat = (id: string) => signed({ id, type: "agent.heartbeat", payload: {}, ts: Date.now() });
  const ed = (id: string) => signed({ id, key_id: "alice-ed", ts: Date.now() }, ED25519);
  /** Until the returned function is called. */
  const failChecks = () => {
    const { authority } = harness.parts;
    const { known } = authority;
    Object.defineProperty(authority, "known", { get: fault, configurable: true });
    return () => Object.defineProperty(authority, "known", { value: known });
  };
  /** Code and envelope of each error frame. */
  let answers: string[];

  beforeEach(() => {
    answers = [];
    const send = (text: string) => answers.push(`${JSON.parse(text).envelope_id} ${JSON.parse(text).code}`);
    Object.assign(harness.connection, { send });
    const requested: Registrar["requested"] = ({ agents }, { envelope }) =>
      void agents.apply(envelope.from, { kind: "requested" });
    Object.assign(harness.parts.registrar, { requested });
  });

  test.each<[string, () => void | Promise<void>]>([
    [
      "a text whose checks fail",
      () => {
        const mend = failChecks();
        harness.receive(signed({ id: "broken", ts: Date.now() }));
        mend();
      },
    ],
    [
      "a text that waited for its key, and whose checks fail on the answer of a thread",
      async () => {
        own();
        harness.receive(ed("before"));
        harness.receive({ ...signed({ id: "broken", ts: Date.now() }), key_id: `jkt-${"a".repeat(43)}` });
        const mend = failChecks();
        await until("it is answered", () => answers.length > 0);
        mend();
        harness.accepting.pop()?.done({ outcome: "abandoned" });
      },
    ],
    [
      "a text whose signature cannot be verified",
      () => {
        once(harness.parts.verifier, "verify");
        harness.receive(signed({ id: "broken", ts: Date.now() }));
      },
    ],
    [
      "a message that cannot be handed on",
      () => {
        own();
        once(harness.parts.acceptor, "accept");
        harness.receive(signed({ id: "broken", ts: Date.now() }));
      },
    ],
    [
      "a register that cannot be handed on",
      () => {
        once(harness.parts.acceptor, "accept");
        harness.receive(register("broken"));
      },
    ],
    [
      "a register whose answer fails",
      () => {
        once(harness.parts.registrar, "answered");
        harness.receive(register("broken"));
        harness.accepting.pop()?.done(online(1));
      },
    ],
    [
      "a heartbeat that cannot be gathered",
      () => {
        own();
        once(harness.parts.heartbeats, "gather");
        harness.receive(heartbeat("broken"));
        harness.parts.batch.flush();
      },
    ],
    [
      "a heartbeat whose answer fails",
      () => {
        own();
        once(harness.parts.registrar, "heard");
        harness.receive(heartbeat("broken"));
        harness.parts.batch.flush();
        harness.gathered.pop()?.answered(online(1));
      },
    ],
  ])("gets internal_error, counted, without a word of it in the log, and the next is taken in: %s", async (_, fail) => {
    await fail();
    expect([answers, [...harness.refusals]]).toEqual([["broken internal_error"], [["internal_error", 1]]]);
    expect([harness.log.length, harness.log.join().includes(SECRET)]).toEqual([1, false]);
    expect([harness.log[0], harness.connection.intake]).toEqual([expect.stringContaining("at "), undefined]);
    expect(harness.connection.agents.hasPending).toBe(false);
    own();
    harness.receive(signed({ id: "next", ts: Date.now() }));
    expect(harness.accepting.map(({ envelope }) => envelope.id)).toEqual(["next"]);
  });

  test("keeps nothing behind it where it is a register whose answer fails, which may have given the agent", () => {
    once(harness.parts.registrar, "answered");
    harness.receive(register("broken"));
    harness.receive(signed({ id: "behind", ts: Date.now() }));
    harness.accepting.pop()?.done(online(1));
    expect([answers, harness.connection.intake]).toEqual([
      ["broken internal_error", "behind not_registered"],
      undefined,
    ]);
    expect(harness.connection.agents.routes()).toMatchObject([{ agent: "agent://alice", epoch: null }]);
  });
});

describe.each([
  ["not_registered", "a message of an agent that is not registered there", {}],
  ["key_not_allowed", "a message for another agent than its key's", { from: "agent://bob" }],
])("%s: %s", (code, _what, changes) => {
  const refusalsCounted = async (principal: Principal | undefined) => {
    Object.assign(harness.connection, { principal });
    harness.receive(signed({ id: "message", ts: Date.now(), ...changes }));
    await until("it is refused", () => harness.errors.length > 0);
    expect(harness.errors).toEqual([code]);
    return [...harness.keyRefusals].length;
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

test("A refusal counts for the key that signed on another's connection, where that has an agent by that key", async () => {
  const key = KEYS.ring.signingKey("alice-hmac", Date.now())?.identity as string;
  harness.connection.agents.apply("agent://alice", { kind: "granted", epoch: 1, key, heardAt: 0 });
  Object.assign(harness.connection, { principal: "key:bob-1" });
  harness.receive(signed({ id: "message", ts: Date.now() }));
  harness.accepting[0]?.done({ outcome: "not_accepted_by_target" });
  expect([...harness.keyRefusals]).toEqual([["key alice-hmac", 1]]);
});
