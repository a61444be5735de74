import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { TestIssuer } from "../../../test/support/issuer.ts";
import { until } from "../../../test/support/until.ts";
import { Connector, type ConnectorOptions, type CredentialWithKeys } from "../../src/index.ts";
import { FIRST_START, RENEWAL } from "../../src/limits.ts";
import { shared } from "../fixture.ts";
import { record, untilState } from "../kit.ts";
import { setTime, waitForLookUps } from "../times.ts";
import { ACME, acme, GLOBEX, IssuerStage, type Party, party, secondsFromNow } from "./parties.ts";

/** The next is asked for after a second at most: the rest is for a machine that stands still. */
const LIFE_SECONDS = 10;

const stage = shared(new IssuerStage());
const brief = () => ({ exp: secondsFromNow(LIFE_SECONDS) });
/** The waits after three failures end well before its own end. */
const soonDue = () => ({ exp: secondsFromNow(20) });

beforeAll(() => {
  // Long before its end, so that a busy machine is in time, too.
  setTime(RENEWAL, "earliest", 0.05);
  setTime(RENEWAL, "latest", 0.1);
  setTime(FIRST_START, "unknownKeyMs", 0);
});

afterAll(() => {
  jest.restoreAllMocks();
});

/** The callback's answers in turn; the last one again and again. */
function inTurn(...answers: readonly (() => Promise<string>)[]): () => Promise<string> {
  let asked = 0;
  return () => (answers[Math.min(asked++, answers.length - 1)] as () => Promise<string>)();
}

/** Sends again and again, until its end. */
function traffic(from: Connector, to: string) {
  const answers: Promise<{ duplicate: boolean }>[] = [];
  const timer = setInterval(() => answers.push(from.send(to, { n: answers.length })), 10);
  return { answers, end: () => clearInterval(timer) };
}

/** Joins under a credential of a few seconds, with a callback for those after it. */
async function joins(ann: Party, credential: ConnectorOptions["credential"], url = stage.front.url) {
  return await stage.join(ann, url, { credential });
}

const registers = (agent: string) =>
  stage.front.sent.filter(({ type, from }) => type === "agent.register" && from === agent);

describe("A credential is renewed", () => {
  afterAll(() => stage.clear());

  test.concurrent("under traffic, as credentials end: nothing lost, nothing twice, in order", async () => {
    const bob = await stage.join(await party("agent://globex.bob"), stage.url);
    const { deliveries } = record(bob);
    const person = await party("agent://acme.ann");
    // Those of one second are the same.
    const issued = new Set<string>();
    const ann = await joins(person, async () => {
      const token = await person.token(brief());
      issued.add(token);
      return token;
    });
    const heard = record(ann);
    const { answers, end } = traffic(ann, bob.agent);
    await until("two were issued", () => issued.size > 1);
    const second = Date.now();
    await until("two have ended", () => Date.now() > second + LIFE_SECONDS * 1000);
    end();
    const acks = await Promise.all(answers);
    await until("all are delivered", () => deliveries.length >= answers.length);
    expect(acks.filter(({ duplicate }) => duplicate)).toEqual([]);
    expect(deliveries.map(({ payload }) => payload.n)).toEqual(answers.map((_, n) => n));
    expect(heard).toMatchObject({ states: [], notices: [], errors: [] });
    const isRegistered = (token: string) => registers(ann.agent).some(({ payload }) => payload.credential === token);
    await until("each that was issued is registered with", () => [...issued].every(isRegistered));
  });

  test.concurrent("by asking again where the callback fails, gives another's, or the same", async () => {
    const person = await party("agent://acme.amy");
    const first = await person.token(soonDue());
    const same = async () => first;
    const listening = Promise.withResolvers<void>();
    const fails = async () => await listening.promise.then(() => Promise.reject(new Error("not now")));
    const another = async () => (await acme.agent(person.agent)).credential;
    const ann = await joins(
      person,
      inTurn(same, fails, another, same, () => person.token()),
    );
    const before = registers(ann.agent).length;
    const { errors, states } = record(ann);
    listening.resolve();
    await until("it has registered again", () => registers(ann.agent).length > before);
    expect(errors).toMatchObject([{ code: "invalid_credential" }, { code: "invalid_credential" }]);
    expect(states).toEqual([]);
  });

  test.concurrent("and where the relay refuses the new one, the agent stays, and asks for another", async () => {
    const person = await party("agent://acme.abe");
    const listening = Promise.withResolvers<void>();
    const stranger = async () => await listening.promise.then(() => ofStranger(person));
    const ann = await joins(
      person,
      inTurn(
        () => person.token(soonDue()),
        stranger,
        () => person.token(),
      ),
    );
    const before = registers(ann.agent).length;
    const { errors, states } = record(ann);
    listening.resolve();
    await until("it has registered with a third", () => registers(ann.agent).length > before + 1);
    expect(errors).toMatchObject([{ code: "invalid_credential", message: expect.stringMatching(/^unknown_issuer:/) }]);
    expect(states).toEqual([]);
  });

  test.concurrent("after a register that was refused: it is tried again with another", async () => {
    const person = await party("agent://acme.art");
    const stranger = await ofStranger(person);
    const ann = await joins(
      person,
      inTurn(
        async () => stranger,
        () => person.token(),
      ),
    );
    expect(ann.state.status).toBe("online");
  });

  test.concurrent("after a register that was refused, or else the connector ends: the same is not tried again", async () => {
    const person = await party("agent://acme.ada");
    const stranger = await ofStranger(person);
    const { agent, key } = person;
    await using ada = new Connector({ url: stage.url, agent, key, credential: async () => stranger });
    await expect(ada.start()).rejects.toMatchObject({ code: "invalid_credential" });
  });
});

describe("A credential is renewed with another key", () => {
  afterAll(() => stage.clear());

  test.concurrent("and envelopes without an answer go out again under the old one, on a new connection too", async () => {
    const bob = await stage.join(await party("agent://globex.bob"), stage.url);
    const { deliveries } = record(bob);
    const [person, renewed] = [await party("agent://acme.rekeyed"), await party("agent://acme.rekeyed")];
    let next: CredentialWithKeys = { credential: await person.token(soonDue()) };
    const ann = await joins(person, async () => next);
    const heard = record(ann);
    const [{ key_id: oldKey }] = registers(ann.agent) as [{ key_id: string }];
    let isHeldBack = true;
    stage.front.toAgent = (frame) => (isHeldBack && frame.target_delivery !== undefined ? undefined : frame);
    const first = ann.send(bob.agent, { n: 0 });
    await until("it is delivered", () => deliveries.length > 0);
    next = { credential: await renewed.token(), key: renewed.key, sealingKeys: renewed.sealingKeys };
    const newKey = () => registers(ann.agent).find(({ key_id }) => key_id !== oldKey)?.key_id;
    await until("it has registered with the new key", () => newKey() !== undefined);
    const sent = stage.front.sent.length;
    stage.front.cut();
    isHeldBack = false;
    await until("it is noticed", () => heard.states.length > 0);
    const second = ann.send(bob.agent, { n: 1 });
    expect([(await first).duplicate, (await second).duplicate]).toEqual([true, false]);
    const types = stage.front.sent.slice(sent).map(({ type, key_id }) => [type, key_id === oldKey ? "old" : "new"]);
    expect(types).toEqual([
      ["agent.register", "old"],
      ["agent.register", "new"],
      ["message.send", "old"],
      ["message.send", "new"],
    ]);
    await until("both are delivered", () => deliveries.length >= 2);
    expect(deliveries.map(({ payload }) => payload.n)).toEqual([0, 1]);
    expect([heard.errors, heard.states]).toEqual([[], ["reconnecting", "online"]]);
  });

  test.concurrent("under traffic: nothing lost, nothing twice, in order", async () => {
    const bob = await stage.join(await party("agent://globex.bea"), stage.url);
    const { deliveries } = record(bob);
    const person = await party("agent://acme.ann");
    let issued = 0;
    const renewed = async () => {
      issued += 1;
      if (issued === 1) return await person.token(brief());
      const { key, sealingKeys, token } = await party(person.agent);
      return { credential: await token(brief()), key, sealingKeys };
    };
    const ann = await joins(person, renewed, stage.url);
    const heard = record(ann);
    const { answers, end } = traffic(ann, bob.agent);
    await until("two keys were used", () => issued > 2);
    const second = Date.now();
    await until("two keys have ended", () => Date.now() > second + LIFE_SECONDS * 1000);
    end();
    expect((await Promise.all(answers)).filter(({ duplicate }) => duplicate)).toEqual([]);
    await until("all are delivered", () => deliveries.length >= answers.length);
    expect(deliveries.map(({ payload }) => payload.n)).toEqual(answers.map((_, n) => n));
    expect(new Set(deliveries.map(({ envelope }) => envelope.key_id)).size).toBeGreaterThan(2);
    expect(heard).toMatchObject({ states: [], notices: [], errors: [] });
  });
});

test("A renewal with a new sealing key opens what is sealed to it, and what was sealed to the one before", async () => {
  waitForLookUps();
  const pinned = { trust: { issuers: [ACME, GLOBEX] } };
  const ann = await stage.join(await party("agent://acme.ann"), stage.url, pinned);
  const person = await party("agent://globex.bob");
  const renewed = await party(person.agent);
  let next: CredentialWithKeys = { credential: await person.token(soonDue()) };
  const bob = await stage.join(person, stage.front.url, { ...pinned, credential: async () => next });
  const { deliveries, errors, states } = record(bob);
  await ann.send(bob.agent, { n: 0 }, { seal: true });
  next = { credential: await renewed.token(), key: renewed.key, sealingKeys: renewed.sealingKeys };
  await until("it is renewed", () =>
    registers(bob.agent).some(({ payload }) => payload.credential === next.credential),
  );
  // Ann looked the former credential up, and seals to it for five minutes.
  await ann.send(bob.agent, { n: 1 }, { seal: true });
  const cleo = await stage.join(await party("agent://acme.cleo"), stage.url, pinned);
  await until(
    "the relay has it",
    async () => (await cleo.send(bob.agent, { n: 2 }, { seal: true })).delivery !== undefined,
  );
  await until("all are opened", () => deliveries.length === 3);
  expect(deliveries.map(({ payload, sealed }) => [payload.n, sealed])).toEqual([0, 1, 2].map((n) => [n, true]));
  const kids = deliveries.map(({ envelope }) => (envelope.payload as { sealed: { kid: string } }).sealed.kid);
  expect([kids[0] === kids[1], new Set(kids).size]).toEqual([true, 2]);
  expect([errors, states]).toEqual([[], []]);
});

describe("After a credential was revoked", () => {
  const revoke = async (agent: string) => {
    const issued_before = new Date(Date.now() + 10_000).toISOString();
    await stage.list([{ ...ACME, revoked: [{ agent, issued_before }] }, GLOBEX]);
  };

  test("the agent is back with a newer one", async () => {
    const person = await party("agent://acme.ann");
    const first = await person.token();
    const ann = await joins(
      person,
      inTurn(
        async () => first,
        () => person.token({ iat: secondsFromNow(30) }),
      ),
    );
    const { states, notices } = record(ann);
    await revoke(person.agent);
    await until("it is back", () => states.at(-1) === "online");
    expect(states).toEqual(["reconnecting", "online"]);
    expect(notices).toEqual([{ kind: "released", reason: "revoked" }]);
  });

  test("a callback that fails is asked again until it answers", async () => {
    const person = await party("agent://acme.amy");
    const first = await person.token();
    const fails = () => Promise.reject(new Error("not now"));
    const ann = await joins(
      person,
      inTurn(
        async () => first,
        fails,
        fails,
        () => person.token({ iat: secondsFromNow(30) }),
      ),
    );
    const { states, errors } = record(ann);
    await revoke(person.agent);
    await until("it is back", () => states.at(-1) === "online");
    expect(errors).toMatchObject([{ code: "invalid_credential" }, { code: "invalid_credential" }]);
  });

  test.each([
    ["same", "the callback gives the same", (token: string) => async () => token],
    ["none", "there is no callback", (token: string) => token],
  ])("the connector ends: %s, %s", async (name, _, source) => {
    const person = await party(`agent://acme.${name}`);
    const ann = await joins(person, source(await person.token()));
    await revoke(person.agent);
    await untilState(ann, "closed");
    expect(ann.state).toMatchObject({ error: { code: "key_revoked", closeCode: 4403 } });
  });
});

/** A credential for the party's key of an issuer that the relay does not know. */
async function ofStranger({ agent, token }: Party): Promise<string> {
  const { cnf } = JSON.parse(Buffer.from((await token()).split(".")[1] as string, "base64url").toString());
  return (await new TestIssuer("initech").agent(agent, { cnf })).credential;
}
