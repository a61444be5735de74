import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { Redis } from "ioredis";
import { Secrets } from "../../../test/support/admin.ts";
import { RedisMonitor } from "../../../test/support/test-redis.ts";
import { until } from "../../../test/support/until.ts";
import { Connector, type ConnectorOptions, type CredentialWithKeys } from "../../src/index.ts";
import { RENEWAL } from "../../src/limits.ts";
import { ACME, GLOBEX, IssuerStage, type Party, party, secondsFromNow } from "../credentials/parties.ts";
import { shared } from "../fixture.ts";
import { errorOf, next, record, testAgent } from "../kit.ts";
import { setTime, waitForLookUps } from "../times.ts";

const SECRET = "the plan of the day";
const PINNED = { trust: { issuers: [ACME, GLOBEX] } };
const stage = shared(new IssuerStage());
let people: { ann: Party; bob: Party };
let ann: Connector;
let bob: Connector;

beforeEach(async () => {
  waitForLookUps();
  setTime(RENEWAL, "earliest", 0.02);
  setTime(RENEWAL, "latest", 0.05);
  people = { ann: await party("agent://acme.ann"), bob: await party("agent://globex.bob") };
});

afterEach(() => {
  jest.restoreAllMocks();
});

/** The next is asked for in a second. */
const soonDue = () => ({ exp: secondsFromNow(20) });

async function meet(anns: Partial<ConnectorOptions> = PINNED, bobs: Partial<ConnectorOptions> = PINNED): Promise<void> {
  ann = await stage.join(people.ann, stage.url, anns);
  bob = await stage.join(people.bob, stage.front.url, bobs);
}

describe("A sealed message", () => {
  test("is read by its recipient alone: Redis, the log and the frames have a ciphertext", async () => {
    const { host } = new URL(stage.front.url);
    stage.front.lead((await stage.relay.startWsConnector({ RELAY_PUBLIC_HOSTS: host })).url);
    const seen: string[] = [];
    const client = new Redis(stage.relay.redis.adminAddress, { lazyConnect: true });
    const monitor = await RedisMonitor.open(client, ({ args }) => seen.push(args.join(" ")));
    stage.front.toAgent = (frame) => frame[seen.push(JSON.stringify(frame)) && "frame"] && frame;
    ann = await stage.join(people.ann, stage.front.url, PINNED);
    bob = await stage.join(people.bob, stage.front.url, PINNED);
    await ann.send(bob.agent, { message: SECRET }, { seal: true, taskId: "t-1" });
    const delivery = await next(bob);
    expect(delivery).toMatchObject({ payload: { message: SECRET }, sealed: true, verified: "agent", issuer: "acme" });
    const { ct } = (delivery.envelope.payload as { sealed: { ct: string } }).sealed;
    await until("the ciphertext went through Redis", () => seen.some((text) => text.includes(ct)));
    monitor.close();
    client.disconnect();
    expect(stage.relay.log.length).toBeGreaterThan(0);
    expect(new Secrets({ SECRET }).in([...seen, ...stage.relay.log].join("\n"))).toEqual([]);
  });

  test("keeps its place among others to the same agent, and what it was when it was sent", async () => {
    await meet();
    const payload = { n: 0 };
    const sent = [ann.send(bob.agent, payload, { seal: true }), ann.send(bob.agent, { n: 1 })];
    payload.n = 7;
    await Promise.all([...sent, ann.send(bob.agent, { n: 2 }, { seal: true })]);
    const read = [await next(bob), await next(bob), await next(bob)];
    expect(read.map(({ payload: { n }, sealed }) => [n, sealed])).toEqual([
      [0, true],
      [1, false],
      [2, true],
    ]);
  });

  test("need not be asked for where all are to be sealed; sessions are not", async () => {
    await meet({ ...PINNED, seal: "required" });
    await ann.send(bob.agent, { message: SECRET }, { seal: false });
    expect(await next(bob)).toMatchObject({ payload: { message: SECRET }, sealed: true });
    await ann.requestSession(bob.agent, { purpose: "talk" });
    expect(await next(bob)).toMatchObject({ type: "session.request", payload: { purpose: "talk" } });
  });

  test("waits for a connection, and is sealed then", async () => {
    bob = await stage.join(people.bob, stage.url, PINNED);
    const { agent, key, token } = people.ann;
    await using later = new Connector({ url: stage.url, agent, key, credential: await token(), ...PINNED });
    const sent = later.send(bob.agent, {}, { seal: true });
    await later.start();
    expect(await sent).toMatchObject({ duplicate: false });
    expect((await next(bob)).sealed).toBe(true);
  });
});

describe("Nothing is sealed, nor sent,", () => {
  test("to an agent whom no pinned issuer vouches for", async () => {
    await meet({ trust: { issuers: [ACME] } });
    expect(await errorOf(ann.send(bob.agent, {}, { seal: true }))).toMatchObject({
      code: "recipient_unverified",
      outcome: "refused",
    });
    expect(await errorOf(ann.send("agent://globex.nobody", {}, { seal: true }))).toMatchObject({
      code: "recipient_unknown",
      retry: "later",
    });
  });

  test("with a key of HMAC", async () => {
    const { agent, key } = testAgent("carol-hmac");
    const carol = new Connector({ url: stage.url, agent, key });
    expect(await errorOf(carol.send("agent://globex.bob", {}, { seal: true }))).toMatchObject({ code: "invalid_key" });
    expect(() => new Connector({ url: stage.url, agent, key, seal: "required" })).toThrow(TypeError);
  });

  test.each([
    ["of 23,001 bytes", { a: "x".repeat(22_993) }, "frame_too_large"],
    ["that is no JSON", { a: 1n }, "invalid_envelope"],
  ])("%s", async (_, payload, code) => {
    await meet();
    expect(await errorOf(ann.send(bob.agent, payload, { seal: true }))).toMatchObject({ code });
  });

  test.each([[true], [false]])("whose one member is called sealed (seal: %s)", async (seal) => {
    await meet();
    const sent = ann.send(bob.agent, { sealed: "it is not", absent: undefined }, { seal });
    expect(await errorOf(sent)).toMatchObject({ code: "invalid_envelope" });
    expect(await ann.send(bob.agent, { sealed: 1, more: 2 })).toMatchObject({ duplicate: false });
  });
});

describe("A sealed delivery is dropped as unopenable", () => {
  async function expectUnopenable(): Promise<void> {
    const { errors, deliveries } = record(bob);
    await ann.send(bob.agent, {}, { seal: true });
    await until("it is dropped", () => errors.length > 0);
    expect(errors).toMatchObject([{ code: "unopenable_delivery" }]);
    expect(deliveries).toEqual([]);
  }

  test("without its key", async () => {
    await meet(PINNED, { ...PINNED, sealingKeys: [] });
    await expectUnopenable();
  });

  test("from a sender whom only the relay vouches for", async () => {
    await meet(PINNED, { trust: { issuers: [GLOBEX] } });
    await expectUnopenable();
  });
});

test("A former sealing key opens what was sealed to it", async () => {
  const [present] = (await party("agent://globex.bob")).sealingKeys;
  await meet(PINNED, { ...PINNED, sealingKeys: [present as never, ...people.bob.sealingKeys] });
  await ann.send(bob.agent, { n: 1 }, { seal: true });
  expect(await next(bob)).toMatchObject({ sealed: true, payload: { n: 1 } });
});

describe("A credential whose sealing key its agent does not have", () => {
  test("is refused at the start", async () => {
    const joining = stage.join(people.bob, stage.url, { sealingKeys: people.ann.sealingKeys });
    expect(await errorOf(joining)).toMatchObject({ code: "invalid_credential" });
  });

  test("is not taken in a renewal: others go on to seal to the key that opens", async () => {
    const { bob: person } = people;
    const renewed = await party(person.agent);
    const tokens = [await person.token(soonDue()), renewed.token];
    const credential = async () => {
      const next = tokens.shift();
      return typeof next === "string" ? next : { credential: await renewed.token(), key: renewed.key };
    };
    await meet(PINNED, { ...PINNED, credential });
    const { errors, deliveries } = record(bob);
    await until("it was asked for", () => errors.length > 0);
    expect(errors[0]).toMatchObject({ code: "invalid_credential" });
    await ann.send(bob.agent, { n: 1 }, { seal: true });
    await until("it is opened", () => deliveries.length > 0);
    expect(deliveries).toMatchObject([{ sealed: true, payload: { n: 1 } }]);
  });
});

test("A renewal with a new sealing key opens what is sealed to it, and what was sealed to the one before", async () => {
  const { bob: person } = people;
  const renewed = await party(person.agent);
  let next: CredentialWithKeys = {
    credential: await person.token(soonDue()),
  };
  await meet(PINNED, { ...PINNED, credential: async () => next });
  const { deliveries, errors, states } = record(bob);
  await ann.send(bob.agent, { n: 0 }, { seal: true });
  next = { credential: await renewed.token(), key: renewed.key, sealingKeys: renewed.sealingKeys };
  const registers = () => stage.front.sent.filter(({ type, from }) => type === "agent.register" && from === bob.agent);
  await until("it is renewed", () => registers().some(({ payload }) => payload.credential === next.credential));
  // Ann looked the former credential up, and seals to it for five minutes.
  await ann.send(bob.agent, { n: 1 }, { seal: true });
  const cleo = await stage.join(await party("agent://acme.cleo"), stage.url, PINNED);
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
