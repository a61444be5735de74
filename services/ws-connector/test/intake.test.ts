import { Tally } from "@agent-relay/shared/metrics/service-metrics.ts";
import type { KeyStore } from "@agent-relay/shared/signing/key-store.ts";
import { Verifier } from "@agent-relay/shared/signing/verifier.ts";
import type { AcceptanceItem } from "@agent-relay/shared/window/acceptance.ts";
import type { Acceptor } from "@agent-relay/shared/window/acceptor.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { ED25519, RING, signed } from "../../../shared/test/intake/support.ts";
import { until } from "../../../test/support/until.ts";
import type { Connection } from "../src/connection.ts";
import { type IntakeDependencies, takeIn } from "../src/intake.ts";
import { Ownership } from "../src/ownership.ts";
import type { Registrar } from "../src/registrar.ts";
import { online } from "./registrar-bench.ts";

let said: string[];
let wait: number;
let connection: Connection;
/** What acceptance has and has not answered. */
let asked: AcceptanceItem[];
let dependencies: IntakeDependencies;

const verifier = new Verifier();
beforeAll(() => verifier.start());
afterAll(() => verifier.stop());

beforeEach(() => {
  said = [];
  wait = 0;
  asked = [];
  const agents = new Ownership("con_1");
  connection = {
    agents,
    isClosing: false,
    takeToken: () => wait,
    noteValid: () => {},
    noteRefusal: () => {},
    send: (text: string) => said.push(JSON.parse(text).code),
  } as unknown as Connection;
  dependencies = {
    keys: { ring: RING } as unknown as KeyStore,
    verifier,
    acceptor: { accept: (item: AcceptanceItem) => asked.push(item) } as unknown as Acceptor,
    registrar: { canTakeAgents: true, settle: () => {} } as unknown as Registrar,
    refusals: new Tally(),
  };
});

const receive = (envelope: object) => takeIn(connection, JSON.stringify(envelope), dependencies);
const register = (id: string) => signed({ id, type: "agent.register", payload: {}, ts: Date.now() });

describe("a connection has no intake", () => {
  test("before it sends anything, and once each of its envelopes is answered", () => {
    expect(connection.intake).toBeUndefined();
    receive(register("a"));
    receive(register("b"));
    asked[0]?.done(online(1));
    expect(connection.intake).toBeDefined();
    asked[1]?.done(online(1));
    expect(connection.intake).toBeUndefined();
  });

  test("when its envelope is refused at once", () => {
    receive({ id: "a" });
    expect([said, connection.intake]).toEqual([["invalid_envelope"], undefined]);
  });

  test("when its envelope is refused on another thread", async () => {
    const { sig } = signed({ key_id: "alice-ed" }, ED25519);
    receive({ ...signed({ key_id: "alice-ed", ts: Date.now() }, ED25519), sig });
    expect(connection.intake).toBeDefined();
    await until("it is refused", () => said.length > 0);
    expect([said, connection.intake]).toEqual([["bad_signature"], undefined]);
  });

  test("when its envelope is over the rate", () => {
    wait = 5;
    receive(register("a"));
    expect([said, connection.intake]).toEqual([["rate_limited"], undefined]);
  });
});
