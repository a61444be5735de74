import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { SignatureVerifier } from "runtime/verification/signature-verifier.ts";
import type { Acceptance, PresenceAcceptance } from "window/acceptance/acceptance.ts";
import { ED25519, signed } from "../../../shared/protocol/test/intake/support.ts";
import { until } from "../../../test/support/until.ts";
import type { Connection } from "../src/connection.ts";
import type { Registrar } from "../src/registrar.ts";
import { IntakeHarness, register } from "./intake-harness.ts";
import { online } from "./registrar-harness.ts";

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
    const { registrar } = harness.dependencies;
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
    harness.dependencies.batch.flush();
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

  test("of which more comes than a touch goes to acceptance after all", () => {
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
      Object.assign(harness.dependencies.registrar, { touched: refuse, answered: refuse });
      own(key);
      beat();
      harness.dependencies.batch.flush();
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
      Object.assign(harness.dependencies.registrar, { requested });
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
    Object.assign(harness.dependencies.registrar, { canTake: () => false });
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
