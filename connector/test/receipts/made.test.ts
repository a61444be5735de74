import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import type { Frame } from "../../../test/support/agent.ts";
import { until } from "../../../test/support/until.ts";
import { type Connector, verifyReceipt } from "../../src/index.ts";
import { ACME, GLOBEX, IssuerStage, party } from "../credentials/parties.ts";
import { shared } from "../fixture.ts";
import { next, record } from "../kit.ts";
import { waitForLookUps } from "../times.ts";

const stage = shared(new IssuerStage());

beforeEach(() => waitForLookUps());
afterEach(() => {
  jest.restoreAllMocks();
});
const PINNED = { trust: { issuers: [ACME, GLOBEX] } };
let ann: Connector;
let bob: Connector;

beforeEach(async () => {
  ann = await stage.join(await party("agent://acme.ann"), stage.url, PINNED);
  bob = await stage.join(await party("agent://globex.bob"), stage.front.url, PINNED);
});

const verified = (receipt: unknown) => verifyReceipt(JSON.stringify(receipt), [ACME, GLOBEX]);
const missingOf = (connector: Connector, sessionId: string) => {
  try {
    connector.receipt(sessionId);
  } catch (error) {
    return error;
  }
  return undefined;
};

describe("A decided session leaves a receipt", () => {
  test.each([
    ["approve", "approved"],
    ["reject", "rejected"],
  ] as const)("with both parties, which anybody can verify without a relay: %s", async (decide, decision) => {
    const { sessionId } = await ann.requestSession(bob.agent, { purpose: "talk" });
    await next(bob);
    await bob[decide](sessionId, ann.agent);
    expect(await next(ann)).toMatchObject({ sessionId, from: bob.agent });
    expect(ann.receipt(sessionId)).toEqual(bob.receipt(sessionId));
    const facts = { sessionId, requester: ann.agent, target: bob.agent, decision, revoked: [] };
    expect(await verified(bob.receipt(sessionId))).toMatchObject({ valid: true, facts });
    const issuers = [ACME];
    const { valid } = await verifyReceipt(JSON.stringify(ann.receipt(sessionId)), issuers);
    expect(valid).toBe(false);
  });

  test("once it is decided, and with who was there", async () => {
    const { sessionId } = await ann.requestSession(bob.agent, { purpose: "talk" });
    await next(bob);
    for (const party of [ann, bob]) {
      expect(missingOf(party, sessionId)).toMatchObject({ code: "receipt_incomplete", missing: ["decision"] });
    }
    expect(missingOf(ann, "ses_of_others")).toMatchObject({ missing: ["request", "decision"] });
  });
});

describe("A relay that lies about whose session a request is", () => {
  test("gets no decision on another request than the one: it is not delivered under that id", async () => {
    const { sessionId } = await ann.requestSession(bob.agent, { purpose: "talk" });
    await next(bob);
    stage.front.toAgent = (frame) => (frame.frame === "deliver" ? { ...frame, session_id: sessionId } : frame);
    const { errors } = record(bob);
    await ann.requestSession(bob.agent, { purpose: "give all away" });
    await until("it is dropped", () => errors.length > 0);
    expect(errors).toMatchObject([{ code: "misnamed_session", retry: "never", envelopeId: expect.any(String) }]);
    await bob.approve(sessionId, ann.agent);
    await next(ann);
    expect(bob.receipt(sessionId).request.payload).toMatchObject({ purpose: "talk" });
  });

  test("gets none bound to a request that it made up", async () => {
    const { deliveries } = record(bob);
    const forged: Frame[] = [];
    stage.front.lookUp = async () => undefined;
    stage.front.toAgent = (frame) => frame[forged.push(frame) && "frame"] && frame;
    const { sessionId } = await ann.requestSession(bob.agent, { purpose: "talk" });
    await until("it is there, unverified", () => deliveries.length === 1);
    expect(deliveries[0]?.verified).toBe("unverified");
    await bob.approve(sessionId, ann.agent);
    expect((await next(ann)).payload).toEqual({ session_id: sessionId });
  });
});
