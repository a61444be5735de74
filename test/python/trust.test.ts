import { beforeEach, describe, expect, test } from "@jest/globals";
import { type Connector, type Delivery, verifyReceipt } from "../../connector/src/index.ts";
import {
  ACME,
  GLOBEX,
  IssuerStage,
  type Party,
  party,
  secondsFromNow,
} from "../../connector/test/credentials/parties.ts";
import type { Frame } from "../support/agent.ts";
import { TestIssuer } from "../support/issuer.ts";
import { until } from "../support/until.ts";
import { withPython } from "./python-connector.ts";

const SECRET = "the plan of the day";
const PINNED = { issuers: [ACME, GLOBEX] };
const { stage, python } = withPython(new IssuerStage());
let ann: Party;
let bob: Party;
beforeEach(async () => {
  ann = await party("agent://acme.ann");
  bob = await party("agent://globex.bob");
});

/** Bob, in Python. @param tokens what his credential callback gives in turn. */
async function inPython(options: object = {}, tokens?: readonly string[]): Promise<void> {
  const { privateKey } = bob.key as { privateKey: string };
  await python.online("bob", {
    ...{ url: stage.front.url, agent: bob.agent, key: { alg: "ed25519", private_key: privateKey } },
    ...{ sealing_keys: bob.sealingKeys.map((pair) => pair.privateKey), trust: PINNED },
    ...{ tokens: tokens ?? [await bob.token()], ...options },
  });
}

async function firstOf(connector: Connector): Promise<Delivery> {
  for await (const delivery of connector) return delivery;
  throw new Error("no delivery");
}

const delivered = async (what: string, fits: (delivery: Frame) => boolean): Promise<Frame> =>
  (await python.tells(what, ({ delivery }) => delivery !== undefined && fits(delivery))).delivery;

describe("A Python agent with a credential", () => {
  test("is known by a pinned issuer to one in TypeScript, and the other way round", async () => {
    await inPython();
    const connector = await stage.join(ann, stage.url, { trust: PINNED });
    await connector.send(bob.agent, { n: 1 });
    expect(await delivered("ann's", ({ payload }) => payload.n === 1)).toMatchObject({
      verified: "agent",
      issuer: "acme",
    });
    await python.call("bob", "send", [ann.agent, { n: 2 }]);
    expect(await firstOf(connector)).toMatchObject({ payload: { n: 2 }, verified: "agent", issuer: "globex" });
  });

  test("believes an issuer that only the relay names less, and nobody when it wants pinned ones only", async () => {
    await inPython({ trust: {} });
    const connector = await stage.join(ann, stage.url);
    await connector.send(bob.agent, { n: 1 });
    expect(await delivered("ann's", () => true)).toMatchObject({ verified: "relay_issuer", issuer: "acme" });
    await inPython({ trust: {}, require_verified: true, take_over: true });
    await connector.send(bob.agent, { n: 2 });
    const isDropped = ({ problem }: { problem?: { code: string; message: string } }) =>
      problem?.code === "unverified_delivery" && problem.message.includes(ann.agent);
    await python.tells("what was dropped", isDropped);
  });

  test("asks sealed questions, gets sealed replies, and nobody on the way reads either", async () => {
    const seen: string[] = [];
    stage.front.toAgent = (frame) => frame[seen.push(JSON.stringify(frame)) && "frame"] && frame;
    await inPython();
    const connector = await stage.join(ann, stage.url, { trust: PINNED });
    const asked = python.call("bob", "ask", [ann.agent, { message: SECRET }], { seal: true });
    const question = await firstOf(connector);
    expect(question).toMatchObject({ payload: { message: SECRET }, sealed: true, verified: "agent" });
    const reply = { type: "message.reply", taskId: question.envelope.task_id as string } as const;
    await connector.send(bob.agent, { message: "open" }, reply);
    await delivered("the open reply", ({ payload }) => payload.message === "open");
    await question.reply({ message: `${SECRET}!` });
    expect(await asked).toMatchObject({ payload: { message: `${SECRET}!` }, sealed: true, verified: "agent" });
    expect([...seen, ...stage.front.sent.map((one) => JSON.stringify(one))].join()).not.toContain(SECRET);
  });

  test("replies sealed to what was sealed", async () => {
    await inPython();
    python.echo("bob");
    const connector = await stage.join(ann, stage.url, { trust: PINNED });
    expect(await connector.ask(bob.agent, { n: 1 }, { seal: true })).toMatchObject({ payload: { n: 1 }, sealed: true });
    const open = await connector.ask(bob.agent, { n: 2 });
    expect([open.payload, open.sealed]).toEqual([{ n: 2 }, false]);
  });

  test("seals to nobody whom no pinned issuer vouches for, and drops what it cannot open", async () => {
    await inPython({ trust: {} });
    const sealed = python.call("bob", "send", [ann.agent, {}], { seal: true });
    await expect(sealed).rejects.toMatchObject({ details: { code: "recipient_unverified", outcome: "refused" } });
    const connector = await stage.join(ann, stage.url, { trust: PINNED });
    await connector.send(bob.agent, { n: 1 }, { seal: true });
    await python.tells("what was dropped", ({ problem }) => problem?.code === "unopenable_delivery");
  });

  test("takes no made-up reply of an agent that a pinned issuer has as one of all others", async () => {
    await inPython({ trust: { issuers: [{ ...ACME, agents: ["*"] }] } });
    const connector = await stage.join(ann, stage.url);
    stage.front.toAgent = (frame) => {
      const { type, from, to, task_id } = stage.front.sent.at(-1) as Frame;
      const made = { id: "made-up", type: "message.reply", from: to, to: from, task_id, payload: {} };
      const envelope = { ...made, ts: Date.now(), key_id: "none", sig: "none" };
      if (frame.frame === "ack" && type === "message.send") stage.front.tell({ frame: "deliver", envelope });
      return frame;
    };
    const asked = python.call("bob", "ask", [ann.agent, {}]);
    expect(await delivered("the reply", () => true)).toMatchObject({ verified: "unverified", type: "message.reply" });
    await (await firstOf(connector)).reply({ is: "ann's" });
    expect(await asked).toMatchObject({ payload: { is: "ann's" }, verified: "agent" });
  });

  test("renews its credential on the same connection, and says what the relay said of none", async () => {
    const before = stage.front.sent.length;
    // It is due already: the callback is asked again until it has another.
    await inPython({}, [await bob.token({ iat: secondsFromNow(-6000), exp: secondsFromNow(600) })]);
    const registers = () => stage.front.sent.slice(before).filter(({ type }) => type === "agent.register");
    await python.call("bob", "give_tokens", [await bob.token()]);
    await until("it registers with the next", () => registers().length === 2);
    expect(registers()[1]?.payload.credential).not.toBe(registers()[0]?.payload.credential);
    expect(python.told.map(({ state }) => state).filter(Boolean)).toEqual(["connecting", "online"]);
    const ended = { iat: secondsFromNow(-8), exp: secondsFromNow(-2) };
    await expect(inPython({ take_over: true }, [await bob.token(ended)])).rejects.toMatchObject({
      details: { code: "invalid_credential", retry: "fix" },
    });
  });

  test("is let in at its first start when its issuer is admitted meanwhile", async () => {
    const initech = new TestIssuer("initech");
    bob = await party("agent://initech.bob", initech);
    const started = inPython();
    await python.tells("the refusal", ({ problem }) => problem?.message.startsWith("unknown_issuer"));
    await stage.list([ACME, GLOBEX, initech.record([bob.agent])]);
    await started;
    await stage.list([ACME, GLOBEX]);
  });

  test("comes back after a revocation with another credential alone", async () => {
    await inPython({}, [await bob.token({ iat: secondsFromNow(-600) }), await bob.token()]);
    const revoked = [{ agent: bob.agent, issued_before: new Date(Date.now() - 60_000).toISOString() }];
    await stage.list([ACME, { ...GLOBEX, revoked }]);
    await python.tells("why", ({ notice, members }) => notice === "released" && members.reason === "revoked");
    await until("it is back", () => python.told.filter(({ state }) => state === "online").length === 2);
    await stage.list([ACME, GLOBEX]);
  });
});

describe("A receipt", () => {
  test("of a session between the two languages is the same to both, and verified by both", async () => {
    await inPython();
    const connector = await stage.join(ann, stage.url, { trust: PINNED });
    const requested = connector.requestSession(bob.agent, { purpose: "to trade", ttlMinutes: 5 });
    const { session_id } = await delivered("the request", ({ type }) => type === "session.request");
    await python.call("bob", "approve", [session_id, ann.agent]);
    expect((await requested).sessionId).toBe(session_id);
    await firstOf(connector);
    const own = connector.receipt(session_id);
    const theirs = await python.call("bob", "receipt", [session_id]);
    expect(theirs).toEqual(own);
    const facts = { requester: ann.agent, target: bob.agent, decision: "approved" };
    expect(await verifyReceipt(JSON.stringify(theirs), [ACME, GLOBEX] as never)).toMatchObject({ valid: true, facts });
    const verify = async (receipt: object) =>
      await python.call("bob", "verify_receipt", [JSON.stringify(receipt), [ACME, GLOBEX]]);
    expect(await verify(own)).toMatchObject({ facts: { ...facts, session_id }, problem: null });
    const marked = `\ufeff${JSON.stringify(own)}`;
    expect(await python.call("bob", "verify_receipt", [marked, [ACME, GLOBEX]])).toMatchObject({ facts });
    expect(await verifyReceipt(marked, [ACME, GLOBEX] as never)).toMatchObject({ valid: true, facts });
    for (const [receipt, problem] of spoilt(own)) {
      expect(await verify(receipt)).toMatchObject({ facts: null, problem });
      expect(await verifyReceipt(JSON.stringify(receipt), [ACME, GLOBEX] as never)).toMatchObject({ problem });
    }
  });

  test("of a session that Python asked for is built there, and says what it lacks before the decision", async () => {
    await inPython();
    const connector = await stage.join(ann, stage.url, { trust: PINNED });
    const { session_id } = await python.call("bob", "request_session", [ann.agent, "to trade"]);
    await expect(python.call("bob", "receipt", [session_id])).rejects.toMatchObject({
      details: { code: "receipt_incomplete", missing: ["decision"] },
    });
    await firstOf(connector);
    await connector.reject(session_id, bob.agent, "no");
    await delivered("the decision", ({ type }) => type === "session.reject");
    const receipt = JSON.stringify(await python.call("bob", "receipt", [session_id]));
    expect(await verifyReceipt(receipt, [ACME, GLOBEX] as never)).toMatchObject({ facts: { decision: "rejected" } });
  });
});

/** What both must refuse alike, and why. */
function spoilt(receipt: Frame): [Frame, object][] {
  const { request, decision, credentials } = receipt;
  const other = (text: string) => `${text.slice(0, -2)}${text.endsWith("AA") ? "Ag" : "AA"}`;
  return [
    [{ ...receipt, more: 1 }, { code: "malformed" }],
    [{ ...receipt, decision: { ...decision, from: "agent://globex.eve" } }, { code: "parties" }],
    [{ ...receipt, request: { ...request, payload: { purpose: "another" } } }, { code: "digest" }],
    [
      { ...receipt, decision: { ...decision, payload: { ...decision.payload, session_id: "ses_x" } } },
      { code: "session" },
    ],
    [
      { ...receipt, decision: { ...decision, ts: request.ts - 301_000 } },
      { code: "time", reason: "before_request" },
    ],
    [
      { ...receipt, decision: { ...decision, sig: other(decision.sig) } },
      { code: "signature", part: "decision" },
    ],
    [
      { ...receipt, credentials: [] },
      { code: "credential", part: "request", reason: "key_mismatch" },
    ],
    [
      { ...receipt, credentials: [credentials[0]] },
      { code: "credential", part: "decision", reason: "key_mismatch" },
    ],
  ];
}
