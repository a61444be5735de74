import { afterAll, describe, expect, test } from "@jest/globals";
import { TestIssuer } from "../../../test/support/issuer.ts";
import { until } from "../../../test/support/until.ts";
import { Connector, type ConnectorOptions, type CredentialWithKeys } from "../../src/index.ts";
import { shared } from "../fixture.ts";
import { record, untilState } from "../kit.ts";
import { ACME, acme, GLOBEX, IssuerStage, type Party, party, secondsFromNow } from "./parties.ts";

const LIFE_SECONDS = 5;
const EXPIRIES = 3;
const PACE = { aSecond: 200, everyMs: 10, mostPending: 500 } as const;

const stage = shared(new IssuerStage());
const brief = () => ({ iat: secondsFromNow(0), exp: secondsFromNow(LIFE_SECONDS) });
/** The next is asked for in one to eight seconds; the waits after three failures end well before its own end. */
const soonDue = () => ({ iat: secondsFromNow(-8), exp: secondsFromNow(12) });
const WITHIN_MS = 15_000;

/** The callback's answers in turn; the last one again and again. */
function inTurn(...answers: readonly (() => Promise<string>)[]): () => Promise<string> {
  let asked = 0;
  return () => (answers[Math.min(asked++, answers.length - 1)] as () => Promise<string>)();
}

/**
 * Sends what the time that has passed owes, until its end. That tells how many a second were answered by then, and whether the machine was too busy
 * for so many: ticks came late, by a twentieth of the time or more.
 */
function traffic(from: Connector, to: string) {
  const answers: Promise<{ duplicate: boolean }>[] = [];
  const begun = performance.now();
  let [last, lateMs, answered] = [begun, 0, 0];
  const timer = setInterval(() => {
    const now = performance.now();
    lateMs += Math.max(0, now - last - 2 * PACE.everyMs);
    last = now;
    const owed = ((now - begun) / 1000) * PACE.aSecond;
    while (answers.length < owed && answers.length - answered < PACE.mostPending) {
      const answer = from.send(to, { n: answers.length });
      answers.push(answer);
      answer.then(
        () => (answered += 1),
        () => {},
      );
    }
  }, PACE.everyMs);
  const end = () => {
    clearInterval(timer);
    const ms = performance.now() - begun;
    return { aSecond: (answered / ms) * 1000, isBusy: lateMs > ms / 20 };
  };
  return { answers, end };
}

/** Joins under a credential of a few seconds, with a callback for those after it. */
async function joins(ann: Party, credential: ConnectorOptions["credential"], url = stage.front.url) {
  return await stage.join(ann, url, { credential });
}

const registers = (agent: string) =>
  stage.front.sent.filter(({ type, from }) => type === "agent.register" && from === agent);

describe("A credential is renewed", () => {
  afterAll(() => stage.clear());

  test.concurrent("under traffic: 200 messages a second over three ends, nothing lost, nothing twice, in order", async () => {
    const bob = await stage.join(await party("agent://globex.bob"), stage.url);
    const { deliveries } = record(bob);
    const person = await party("agent://acme.ann");
    let issued = 0;
    const ann = await joins(person, async () => {
      issued += 1;
      return await person.token(brief());
    });
    const heard = record(ann);
    const before = registers(ann.agent).length;
    const end = Date.now() + EXPIRIES * LIFE_SECONDS * 1000;
    const sent = traffic(ann, bob.agent);
    const { answers } = sent;
    await until("three have ended", () => Date.now() > end && issued > EXPIRIES, 30_000);
    const { aSecond, isBusy } = sent.end();
    const acks = await Promise.all(answers);
    await until("all are delivered", () => deliveries.length >= answers.length);
    expect(acks.filter(({ duplicate }) => duplicate)).toEqual([]);
    expect(deliveries.map(({ payload }) => payload.n)).toEqual(answers.map((_, n) => n));
    expect(heard).toMatchObject({ states: [], notices: [], errors: [] });
    await until("each that was issued is registered with", () => registers(ann.agent).length - before === issued - 1);
    expect(isBusy ? PACE.aSecond : aSecond).toBeGreaterThanOrEqual(190);
  });

  test.concurrent("by asking again where the callback fails, gives another's, or the same", async () => {
    const person = await party("agent://acme.amy");
    const first = await person.token(soonDue());
    const same = async () => first;
    const fails = () => Promise.reject(new Error("not now"));
    const another = async () => (await acme.agent(person.agent)).credential;
    const ann = await joins(
      person,
      inTurn(same, fails, another, same, () => person.token()),
    );
    const before = registers(ann.agent).length;
    const { errors, states } = record(ann);
    await until("it has registered again", () => registers(ann.agent).length > before, WITHIN_MS);
    expect(errors).toMatchObject([{ code: "invalid_credential" }, { code: "invalid_credential" }]);
    expect(states).toEqual([]);
  });

  test.concurrent("and where the relay refuses the new one, the agent stays, and asks for another", async () => {
    const person = await party("agent://acme.abe");
    const stranger = async () => await ofStranger(person);
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
    await until("it has registered with a third", () => registers(ann.agent).length > before + 1, WITHIN_MS);
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
    await until("it has registered with the new key", () => newKey() !== undefined, WITHIN_MS);
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
    const sent = traffic(ann, bob.agent);
    const { answers } = sent;
    const end = Date.now() + LIFE_SECONDS * 1000;
    await until("two keys have ended", () => Date.now() > end && issued > 3, 30_000);
    sent.end();
    expect((await Promise.all(answers)).filter(({ duplicate }) => duplicate)).toEqual([]);
    await until("all are delivered", () => deliveries.length >= answers.length);
    expect(deliveries.map(({ payload }) => payload.n)).toEqual(answers.map((_, n) => n));
    expect(new Set(deliveries.map(({ envelope }) => envelope.key_id)).size).toBeGreaterThan(2);
    expect(heard).toMatchObject({ states: [], notices: [], errors: [] });
  });
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
    await until("it is back", () => states.at(-1) === "online", WITHIN_MS);
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
