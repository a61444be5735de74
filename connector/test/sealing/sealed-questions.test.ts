import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import type { Connector, ConnectorOptions } from "../../src/index.ts";
import { ACME, GLOBEX, IssuerStage, type Party, party } from "../credentials/parties.ts";
import { shared } from "../fixture.ts";
import { errorOf, next, record } from "../kit.ts";
import { holdWaits, LONG_MS, waitForLookUps } from "../times.ts";

const PINNED = { trust: { issuers: [ACME, GLOBEX] } };
const stage = shared(new IssuerStage());
let people: { ann: Party; bob: Party };
let ann: Connector;
let bob: Connector;

beforeEach(async () => {
  waitForLookUps();
  people = { ann: await party("agent://acme.ann"), bob: await party("agent://globex.bob") };
});

afterEach(() => {
  jest.restoreAllMocks();
});

async function meet(anns: Partial<ConnectorOptions> = PINNED, bobs: Partial<ConnectorOptions> = PINNED): Promise<void> {
  ann = await stage.join(people.ann, stage.front.url, anns);
  bob = await stage.join(people.bob, stage.url, bobs);
}

describe("A sealed question", () => {
  test("is replied to sealed, without being asked for, and whatever the reply says", async () => {
    await meet();
    for (const options of [{}, { seal: false }]) {
      const asked = ann.ask(bob.agent, { secret: 1 }, { seal: true });
      const question = await next(bob);
      expect(question).toMatchObject({ sealed: true, payload: { secret: 1 } });
      await question.reply({ secret: 2 }, options);
      expect(await asked).toMatchObject({ sealed: true, payload: { secret: 2 }, verified: "agent", issuer: "globex" });
    }
  });

  test.each([
    ["asked for", PINNED, true],
    ["of a connector that seals all", { ...PINNED, seal: "required" as const }, undefined],
  ])("%s gets no reply that others could read on its way: that is a delivery like any other", async (_, anns, seal) => {
    await meet(anns);
    const heard = record(ann).deliveries;
    const asked = ann.ask(bob.agent, {}, { seal });
    const { from, envelope, reply } = await next(bob);
    await bob.send(from, { open: true }, { type: "message.reply", taskId: envelope.task_id });
    await until("it came", () => heard.length === 1);
    await reply({ open: false });
    expect((await asked).payload).toEqual({ open: false });
    expect(heard).toMatchObject([{ payload: { open: true } }]);
  });

  test("cannot be replied to by an agent who does not know the asker's issuer", async () => {
    await meet(PINNED, { trust: { issuers: [GLOBEX] } });
    const timeIsOver = holdWaits();
    const asked = ann.ask(bob.agent, {}, { seal: true, timeoutMs: LONG_MS });
    const errors = record(bob).errors;
    await until("bob dropped it", () => errors.length === 1);
    expect(errors).toMatchObject([{ code: "unopenable_delivery" }]);
    timeIsOver();
    expect(await errorOf(asked)).toMatchObject({ code: "timeout", outcome: "unknown" });
  });
});

describe("A question of an agent that wants all to be verified", () => {
  test("gets the reply of an agent whose issuer it pinned", async () => {
    await meet({ ...PINNED, requireVerified: true });
    const asked = ann.ask(bob.agent, {});
    await (await next(bob)).reply({ n: 1 });
    expect(await asked).toMatchObject({ verified: "agent", issuer: "globex" });
  });

  test("gets none from another, whose reply is dropped and told of", async () => {
    await meet({ trust: { issuers: [ACME] }, requireVerified: true });
    const errors = record(ann).errors;
    const timeIsOver = holdWaits();
    const asked = ann.ask(bob.agent, {}, { timeoutMs: LONG_MS });
    await (await next(bob)).reply({ n: 1 });
    await until("the reply is dropped", () => errors.length === 1);
    timeIsOver();
    expect(await errorOf(asked)).toMatchObject({ code: "timeout", outcome: "unknown" });
    expect(errors).toMatchObject([{ code: "unverified_delivery" }]);
  });
});

describe("A reply of an agent whose issuer is pinned", () => {
  test("does not count while its credential cannot be had: the relay may have made it", async () => {
    await meet();
    const heard = record(ann).deliveries;
    stage.front.lookUp = async () => undefined;
    const timeIsOver = holdWaits();
    const asked = ann.ask(bob.agent, {}, { timeoutMs: LONG_MS });
    await (await next(bob)).reply({ n: 1 });
    await until("the reply came", () => heard.length === 1);
    timeIsOver();
    expect(await errorOf(asked)).toMatchObject({ code: "timeout" });
    expect(heard).toMatchObject([{ verified: "unverified", payload: { n: 1 } }]);
  });

  test("counts under an issuer that only the relay names, where none is pinned", async () => {
    await meet({ trust: { issuers: [ACME] } });
    const asked = ann.ask(bob.agent, {});
    await (await next(bob)).reply({ n: 1 });
    expect(await asked).toMatchObject({ verified: "relay_issuer", issuer: "globex" });
  });
});
