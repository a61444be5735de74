import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { SessionLimit } from "protocol/contract/rate-limits.ts";
import type { KeyStore } from "runtime/key-store.ts";
import { KeyRefusals } from "runtime/metrics/key-refusals.ts";
import { Tally } from "runtime/metrics/service-metrics.ts";
import { EnvelopeVerifier } from "runtime/verification/envelope-verifier.ts";
import { SignatureVerifier } from "runtime/verification/signature-verifier.ts";
import type { Acceptance, AcceptanceItem, Prepared } from "window/acceptance/acceptance.ts";
import type { Acceptor } from "window/acceptance/acceptor.ts";
import type { Principal } from "window/principal.ts";
import { ED25519, KEYS, signed } from "../../../shared/protocol/test/intake/support.ts";
import { until } from "../../../test/support/until.ts";
import { Authority } from "../src/authority.ts";
import type { Connection } from "../src/connection.ts";
import { type IntakeDependencies, receiveText } from "../src/intake.ts";
import { Ownership } from "../src/ownership.ts";
import type { Registrar } from "../src/registrar.ts";
import { online } from "./registrar-harness.ts";

/** Codes of the error frames. */
let errors: string[];
let connection: Connection;
/** What was sent to acceptance. */
const BASE_URL = "https://relay.example";
let accepting: AcceptanceItem[];
/** What the preparation of the last session envelope comes to. */
let prepared: PromiseWithResolvers<Acceptance | Prepared>;
let dependencies: IntakeDependencies;

const verifier = new SignatureVerifier();
beforeAll(() => verifier.start());
afterAll(() => verifier.stop());

beforeEach(() => {
  errors = [];
  accepting = [];
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
  dependencies = {
    authority: new Authority({ keys, hosts: new Set() }),
    verifier: new EnvelopeVerifier(verifier),
    acceptor: {
      accept: (item: AcceptanceItem) => accepting.push(item),
      needsPreparation: ({ kind }: Pick<AcceptanceItem, "kind">) => kind !== "message",
      prepare: () => prepared.promise,
    } as unknown as Acceptor,
    registrar: { canTake: () => true, requested: () => {}, answered: () => {} } as unknown as Registrar,
    refusals: new Tally(),
    baseUrl: BASE_URL,
    keyRefusals: new KeyRefusals(),
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
    return [...dependencies.keyRefusals].length;
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
