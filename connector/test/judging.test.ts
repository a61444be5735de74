import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../test/support/until.ts";
import { Clock } from "../src/clock.ts";
import { Conversations } from "../src/conversations.ts";
import { Emitter } from "../src/emitter.ts";
import type { HttpAnswer, HttpClient } from "../src/http-client.ts";
import { Inbox } from "../src/inbox.ts";
import type { ConnectorOptions, Delivery, RelayError } from "../src/index.ts";
import { MANIFEST, MAX_SENDERS } from "../src/limits.ts";
import type { OwnEnvelopes } from "../src/own-envelopes.ts";
import { Peers } from "../src/peers.ts";
import type { PresenceWatch } from "../src/presence-watch.ts";
import { SessionRecords } from "../src/receipts/session-records.ts";
import { plaintextOf, sealPayload } from "../src/sealing/sealed-payload.ts";
import { newSealingKey, SealingKeys } from "../src/sealing/sealing-keys.ts";
import type { Envelope } from "../src/types.ts";
import { BOB, envelopeOf, issued, type Keys, NOW, newKeys, RECORD, SECONDS, sessionOf } from "./credentials/kit.ts";
import { said } from "./times.ts";

/** What alice's connector makes of what a relay hands over, which may lie: of whom it is, of when, and of its own keys. */

const [ALICE, BOB_ID, STRANGER] = ["agent://alice", "agent://acme.bob", "agent://stranger"];
const [EVE, EVIL, GATEWAY] = [await newKeys(), await newKeys(), await newKeys()];
const SEALING = await newSealingKey();
const sealingKeys = await SealingKeys.from([SEALING]);
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const YEAR_MS = 365 * 24 * HOUR_MS;

const cnf = (keys: Keys) => ({ cnf: { jwk: { kty: "OKP", crv: "Ed25519", x: keys.x } } });
const byEvil = (claims: object = {}) => issued({ iss: "evil", ...claims }, { kid: EVIL.thumbprint }, EVIL);
const recordOf = (issuer: string, ...agents: string[]) => ({ issuer, keys: [{ public_key: EVIL.x }], agents });
/** Bob's key, pinned. */
const PINNED_KEY = { [BOB_ID]: [{ keyId: "bob-1", alg: "ed25519", publicKey: BOB.x }] } as const;
const underPinnedKey = (fields: Partial<Envelope> = {}) => envelopeOf(BOB, fields, "bob-1");
const PINNED_ISSUER = { issuers: [RECORD] };

const GATEWAY_ID = `gateway-${createHash("sha256").update(GATEWAY.x).digest("base64url").slice(0, 22)}`;
const gatewayKey = ({ x }: Keys, key_id = GATEWAY_ID) => ({ key_id, alg: "ed25519", public_key: x });
const byGateway = (fields: Partial<Envelope> = {}, keys = GATEWAY) => envelopeOf(keys, fields, GATEWAY_ID);

/** What the relay says over HTTP. */
let manifest: () => HttpAnswer | Promise<HttpAnswer>;
let lookUp: (path: string) => string | undefined | Promise<string | undefined>;
let asked: string[];

beforeEach(() => {
  jest.spyOn(Date, "now").mockReturnValue(NOW);
  [manifest, lookUp, asked] = [() => said({}), () => undefined, []];
});
afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

async function ask(path: string): Promise<HttpAnswer> {
  asked.push(path);
  if (path === MANIFEST.path) return await manifest();
  const credential = await lookUp(path);
  return credential === undefined ? said({ code: "unknown_agent" }, 404) : said({ credential });
}

async function alice(options: Partial<ConnectorOptions> = {}) {
  const { trust, requireVerified } = options;
  const [clock, emitter, sessions] = [new Clock(), new Emitter(), new SessionRecords(ALICE)];
  const peers = new Peers({
    trust,
    http: { ask } as unknown as HttpClient,
    relay: "relay.example",
    clock,
    requireVerified,
  });
  await peers.start();
  const { verifier } = peers;
  const message = async () => ({ envelopeId: "e-1", duplicate: false, delivery: { canDeliverRealtime: true } });
  const ownEnvelopes = { message, check: () => {} } as unknown as OwnEnvelopes;
  const terms = { ownEnvelopes, presence: {} as PresenceWatch, verifier, sealsAll: false, maxAsks: 9 };
  const conversations = new Conversations(terms);
  const inbox = new Inbox({
    ...{ options: { agent: ALICE, ...options } as ConnectorOptions, peers, sealingKeys, sessions },
    ...{ conversations, clock, emitter },
  });
  const heard = { deliveries: [] as Delivery[], errors: [] as RelayError[], overflows: 0 };
  emitter.on("delivery", (delivery) => heard.deliveries.push(delivery));
  emitter.on("error", (error) => heard.errors.push(error));
  emitter.on("overflow", () => (heard.overflows += 1));
  const receive = (envelope: unknown, sessionId?: string) =>
    inbox.receive({ frame: "deliver", envelope, sessionId } as Parameters<Inbox["receive"]>[0]);
  /** What is delivered, or the code of the error that it is dropped with; undefined for neither. */
  const judged = async (envelope: unknown, sessionId?: string) => {
    const { deliveries, errors } = heard;
    const before = deliveries.length + errors.length;
    receive(envelope, sessionId);
    await new Promise<void>((then) => inbox.afterDeliveries(then));
    return deliveries.length + errors.length === before ? undefined : (errors.pop()?.code ?? deliveries.at(-1));
  };
  return { ...heard, heard, clock, peers, sessions, conversations, inbox, receive, judged };
}

describe("With a pinned issuer nothing is believed of its agents, whatever the relay lies", () => {
  test.each<[string, () => void]>([
    [
      "in its manifest: the issuer has another key",
      () => {
        manifest = () => said({ issuers: [recordOf("acme", "agent://acme.*")] });
        lookUp = () => issued(cnf(EVE), { kid: EVIL.thumbprint }, EVIL);
      },
    ],
    ...[BOB_ID, "*"].map((agents): [string, () => void] => [
      `in its manifest: another issuer has ${agents}`,
      () => {
        manifest = () => said({ issuers: [recordOf("evil", agents)] });
        lookUp = () => byEvil(cnf(EVE));
      },
    ]),
    ["with a credential of another key", () => (lookUp = () => issued())],
    ["with a credential of another agent", () => (lookUp = () => issued({ ...cnf(EVE), sub: "agent://acme.eve" }))],
    ["with a credential that another key signed", () => (lookUp = () => issued(cnf(EVE), {}, EVIL))],
    ["with a credential for other relays", () => (lookUp = () => issued({ ...cnf(EVE), aud: "elsewhere.example" }))],
    [
      "with a credential that has ended",
      () => (lookUp = () => issued({ ...cnf(EVE), iat: SECONDS - 7200, exp: SECONDS - 3000 })),
    ],
    ["with none at all", () => {}],
  ])("%s", async (_, lies) => {
    lies();
    const strict = await alice({ trust: PINNED_ISSUER, requireVerified: true });
    expect(await strict.judged(envelopeOf(EVE))).toBe("unverified_delivery");
    const lenient = await alice({ trust: PINNED_ISSUER });
    expect(await lenient.judged(envelopeOf(EVE))).toMatchObject({ verified: "unverified" });
  });

  test("and of an agent that nobody pinned it is believed as much as the relay, which is not enough for proof", async () => {
    manifest = () => said({ issuers: [recordOf("evil", BOB_ID)] });
    lookUp = () => byEvil(cnf(EVE));
    expect(await (await alice()).judged(envelopeOf(EVE))).toMatchObject({ verified: "relay_issuer", issuer: "evil" });
    const strict = await alice({ trust: { issuers: [{ ...RECORD, agents: ["*"] }] }, requireVerified: true });
    expect(await strict.judged(envelopeOf(EVE))).toBe("unverified_delivery");
  });

  test("nor is anybody looked up whom no pinned issuer may hold, where all is to be verified", async () => {
    lookUp = () => issued();
    const strict = await alice({ trust: PINNED_ISSUER, requireVerified: true });
    expect(await strict.judged(envelopeOf(EVE, { from: STRANGER }))).toBe("unverified_delivery");
    expect(asked).toEqual([]);
    expect(await strict.judged(envelopeOf(BOB))).toMatchObject({ verified: "agent", issuer: "acme" });
  });

  test.each([
    ["names the asked agent", [BOB_ID], undefined],
    ["has all others", ["*"], undefined],
    ["names another", ["agent://other"], "reply"],
  ])("nor a reply that it makes up, where the issuer %s", async (_, agents, expected) => {
    const { conversations, judged, deliveries } = await alice({ trust: { issuers: [{ ...RECORD, agents }] } });
    const randomId = jest.spyOn(crypto, "randomUUID").mockReturnValueOnce("t-0-0-0-0");
    const got = conversations.ask(BOB_ID, {}, {}).then(() => "reply");
    randomId.mockRestore();
    await judged(envelopeOf(EVE, { type: "message.reply", task_id: "t-0-0-0-0" }));
    expect(await Promise.race([got, new Promise((soon) => setImmediate(soon))])).toBe(expected);
    expect(deliveries.map(({ verified }) => verified)).toEqual(expected === undefined ? ["unverified"] : []);
    void got.catch(() => {});
    conversations.end(new Error("over") as RelayError);
  });
});

describe("Of an agent whose key is pinned", () => {
  test.each<[string, (envelope: Envelope) => object]>([
    ["payload", () => ({ payload: { n: 2 } })],
    ["type", () => ({ type: "message.other" })],
    ["task", () => ({ task_id: "other" })],
    ["time", ({ ts }) => ({ ts: ts + 1 })],
    ["id", () => ({ id: "other" })],
    ["signature", ({ sig }) => ({ sig: `${sig.slice(1)}A` })],
    ["signature's alphabet", ({ sig }) => ({ sig: `${sig}=` })],
    ["signature's algorithm", () => ({ sig: "A".repeat(43) })],
  ])("a delivery is dropped when its %s was changed on the way, and the true one still comes", async (_, change) => {
    const { judged } = await alice({ trust: PINNED_KEY });
    const envelope = underPinnedKey();
    expect(await judged({ ...envelope, ...change(envelope) })).toBe("forged_delivery");
    expect(await judged(envelope)).toMatchObject({ verified: "agent" });
  });

  test("a delivery has no member that was not signed", async () => {
    const { judged } = await alice({ trust: PINNED_KEY });
    const { envelope, verified } = (await judged({ ...underPinnedKey(), admin: true })) as Delivery;
    expect([verified, "admin" in envelope]).toEqual(["agent", false]);
  });

  test("another key is not believed, nor the same key of another agent, and no key without a credential is looked up", async () => {
    const { judged } = await alice({ trust: PINNED_KEY });
    for (const envelope of [envelopeOf(EVE, {}, "eve-1"), underPinnedKey({ from: STRANGER })])
      expect(await judged(envelope)).toMatchObject({ verified: "unverified", from: envelope.from });
    expect(asked).toEqual([]);
  });
});

describe("What a gateway made", () => {
  test("is verified by the key that its id names, in the manifest, and is no proof until that id is pinned", async () => {
    manifest = () => said({ gateway_keys: [gatewayKey(GATEWAY)] });
    expect(await (await alice()).judged(byGateway())).toMatchObject({ verified: "gateway", from: BOB_ID });
    const strict = await alice({ requireVerified: true });
    strict.receive(byGateway());
    await until("it is dropped", () => strict.errors.length > 0);
    expect(strict.errors).toMatchObject([
      { code: "unverified_delivery", message: expect.stringContaining(GATEWAY_ID) },
    ]);
    expect(strict.errors[0]?.hint).toContain("trust.gateways");
    const pinning = await alice({ requireVerified: true, trust: { gateways: [GATEWAY_ID] } });
    expect(await pinning.judged(byGateway())).toMatchObject({ verified: "gateway" });
    expect(await pinning.judged({ ...byGateway(), payload: { changed: true } })).toBe("forged_delivery");
    manifest = () => said({ gateway_keys: [gatewayKey(EVE)] });
    const deceived = await alice({ requireVerified: true, trust: { gateways: [GATEWAY_ID] } });
    expect(await deceived.judged(byGateway({}, EVE))).toBe("unverified_delivery");
  });

  test("under a key that no manifest lists is unverified, and asks for the manifest but once in a while", async () => {
    manifest = () => said("no JSON");
    const { judged } = await alice();
    for (let n = 0; n < 3; n += 1) expect(await judged(byGateway())).toMatchObject({ verified: "unverified" });
    expect(asked).toEqual([MANIFEST.path]);
  });

  test("is judged by the keys of a minute ago at most, since the relay may have revoked one", async () => {
    let now = 1_000_000;
    jest.spyOn(performance, "now").mockImplementation(() => now);
    const { judged } = await alice();
    const answers: [afterMs: number, answer: HttpAnswer, verified: string][] = [
      [0, said({ gateway_keys: [gatewayKey(GATEWAY)] }), "gateway"],
      [60_000, said({ ok: false, code: "unavailable" }, 503), "gateway"],
      [59_000, said({ gateway_keys: [] }), "gateway"],
      [1000, said({ gateway_keys: [] }), "unverified"],
    ];
    for (const [afterMs, answer, verified] of answers) {
      now += afterMs;
      manifest = () => answer;
      expect(await judged(byGateway())).toMatchObject({ verified });
    }
  });

  test("waits a second for a manifest that does not come, and is delivered without it", async () => {
    jest.useFakeTimers({ doNotFake: ["Date", "setImmediate", "queueMicrotask"] });
    manifest = () => new Promise(() => {});
    const { judged, deliveries } = await alice();
    const judging = judged(byGateway());
    await jest.advanceTimersByTimeAsync(999);
    expect(deliveries).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    expect(await judging).toMatchObject({ verified: "unverified" });
  });
});

describe("Of when an envelope is", () => {
  test.each([
    ["eleven minutes old", 11 * MINUTE_MS, {}, "stale_delivery"],
    ["eleven minutes of the future", -11 * MINUTE_MS, {}, "stale_delivery"],
    ["nine minutes old", 9 * MINUTE_MS, {}, { verified: "agent" }],
    ["a year old, where no limit is wanted", YEAR_MS, { maxDeliveryAgeMs: 0 }, { verified: "agent" }],
  ])("%s", async (_, age, options, expected) => {
    const { judged } = await alice({ trust: PINNED_KEY, ...options });
    const result = await judged(underPinnedKey({ ts: NOW - age }));
    if (typeof expected === "string") expect(result).toBe(expected);
    else expect(result).toMatchObject(expected);
  });

  test.each([
    ["a year", YEAR_MS, YEAR_MS, "clock_untrusted"],
    ["sixteen minutes", 16 * MINUTE_MS, 16 * MINUTE_MS, "clock_untrusted"],
    ["fifteen minutes, by as much as a clock may be off", 290_000, 15 * MINUTE_MS, "stale_delivery"],
  ])("a relay that lies makes nothing recent that was signed %s ago", async (_, off, age, code) => {
    const { judged, clock } = await alice({ trust: PINNED_KEY });
    clock.measure(NOW - off);
    expect(await judged(underPinnedKey({ ts: NOW - age }))).toBe(code);
  });

  test("nothing is verified by a clock that nobody can trust, nor later, nor is anything sealed by it", async () => {
    const { judged, clock, peers } = await alice({ trust: PINNED_KEY });
    clock.measure(NOW - 6 * MINUTE_MS);
    const envelope = underPinnedKey();
    expect(await judged(envelope)).toMatchObject({ verified: "unverified" });
    await expect(peers.sealingKeyOf(BOB_ID, 0)).rejects.toMatchObject({ code: "clock_untrusted" });
    clock.measure(NOW);
    expect(await judged(envelope)).toBeUndefined();
    const strict = await alice({ trust: PINNED_KEY, requireVerified: true });
    strict.clock.measure(NOW - 6 * MINUTE_MS);
    expect(await strict.judged(underPinnedKey())).toBe("clock_untrusted");
  });
});

describe("An id of a sender", () => {
  test("is delivered once, also under another key", async () => {
    const { judged } = await alice({ trust: PINNED_KEY });
    const envelope = underPinnedKey();
    expect(await judged(envelope)).toMatchObject({ verified: "agent" });
    expect(await judged({ ...envelope, key_id: "another", payload: { n: 2 } })).toBeUndefined();
  });

  test("of a pinned agent is remembered, and a new one is not old, for any number of senders that a relay makes up", async () => {
    const { judged, receive, deliveries, errors } = await alice({ trust: PINNED_KEY, maxInbox: 2 * MAX_SENDERS });
    const former = underPinnedKey();
    expect(await judged(former)).toMatchObject({ verified: "agent" });
    const made = {
      id: "1",
      type: "message.send",
      to: ALICE,
      payload: {},
      ts: NOW + 5 * MINUTE_MS,
      key_id: "k",
      sig: "s",
    };
    for (let n = 0; n <= MAX_SENDERS; n += 1) receive({ ...made, from: `agent://stranger-${n}` });
    expect(await judged(underPinnedKey())).toMatchObject({ verified: "agent" });
    expect(await judged(former)).toBeUndefined();
    expect([deliveries.length, errors]).toEqual([MAX_SENDERS + 3, []]);
  });
});

describe("Of a session", () => {
  const SESSION = `ses_${"0".repeat(26)}`;

  test.each([
    ["an id of one is that of a decision", SESSION, SESSION],
    ["a text of any other form is not remembered", "x".repeat(20_000), undefined],
  ])("%s", async (_, session_id, sessionId) => {
    const { judged } = await alice({ trust: PINNED_KEY });
    const decision = underPinnedKey({ type: "session.approve", payload: { session_id } });
    expect(((await judged(decision)) as Delivery).sessionId).toBe(sessionId);
  });

  test("no decision is bound to a request that the relay may have made up", async () => {
    const request = envelopeOf(BOB, { type: "session.request", payload: { purpose: "talk" } });
    const id = sessionOf(request);
    const { judged, sessions } = await alice({ trust: PINNED_ISSUER });
    expect(await judged(request, id)).toMatchObject({ verified: "unverified", sessionId: id });
    expect(sessions.requestOf(id, BOB_ID)).toBeUndefined();
    lookUp = () => issued();
    const informed = await alice({ trust: PINNED_ISSUER });
    expect(await informed.judged(request, id)).toMatchObject({ verified: "agent" });
    expect(informed.sessions.requestOf(id, BOB_ID)).toMatchObject({ ts: NOW });
  });
});

test("What is sealed is opened of a sender whom a pinned issuer vouches for, and of no other", async () => {
  const surroundings = { id: "s-1", type: "message.send", from: BOB_ID, to: ALICE };
  const payload = { ...(await sealPayload(plaintextOf({ secret: 1 }), surroundings, SEALING.publicKey)) };
  lookUp = () => issued();
  manifest = () => said({ issuers: [RECORD] });
  const sealed = envelopeOf(BOB, { ...surroundings, payload });
  expect(await (await alice()).judged(sealed)).toBe("unopenable_delivery");
  const pinning = await alice({ trust: PINNED_ISSUER });
  expect(await pinning.judged(sealed)).toMatchObject({ sealed: true, payload: { secret: 1 } });
});

test("A delivery waits for the look-up of its own sender only, and those of a sender keep their order", async () => {
  const answered = Promise.withResolvers<string>();
  lookUp = (path) => (path.includes("acme.bob") ? answered.promise : issued({ ...cnf(EVE), sub: "agent://acme.eve" }));
  const { receive, deliveries } = await alice({ trust: PINNED_ISSUER });
  for (const n of [1, 2, 3]) receive(envelopeOf(BOB, { payload: { n } }));
  receive(envelopeOf(EVE, { from: "agent://acme.eve", payload: { n: 0 } }));
  await until("eve's is there", () => deliveries.length > 0);
  answered.resolve(issued());
  await until("bob's are there", () => deliveries.length === 4);
  expect(deliveries.map(({ payload, verified }) => [payload.n, verified])).toEqual(
    [0, 1, 2, 3].map((n) => [n, "agent"]),
  );
});

test("An agent that listens, and does not read, loses nothing", async () => {
  const { judged, deliveries, heard } = await alice({ trust: PINNED_KEY, maxInbox: 2 });
  for (let n = 0; n < 5; n += 1) await judged(underPinnedKey());
  expect([deliveries.length, heard.overflows]).toEqual([5, 0]);
});
