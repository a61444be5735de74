import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { SenderCredentials } from "../../src/credentials/sender-credentials.ts";
import type { HttpAnswer } from "../../src/http-client.ts";
import { LOOK_UP } from "../../src/limits.ts";
import { BOB, CLAIMS, issued, NOW } from "./kit.ts";

const QUERY = { agent: "agent://acme.bob", keyId: `jkt-${BOB.thumbprint}` };

const answer = (status: number, body: unknown): HttpAnswer => ({
  status,
  headers: {},
  text: typeof body === "string" ? body : JSON.stringify(body),
});
const found = (claims: object = {}) => answer(200, { ok: true, credential: issued(claims) });
const none = answer(404, { ok: false, code: "unknown_agent" });

let paths: string[];
let respond: (path: string, signal: AbortSignal) => Promise<HttpAnswer>;
let credentials: SenderCredentials;

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ["queueMicrotask"] });
  paths = [];
  respond = () => Promise.resolve(found());
  credentials = new SenderCredentials((path, signal) => {
    paths.push(path);
    return respond(path, signal);
  });
});
afterEach(() => {
  credentials.stop();
  jest.useRealTimers();
});

const find = (time = NOW) => credentials.find(QUERY, time);
const never = () => new Promise<HttpAnswer>(() => {});
const agentNo = (number: number) => credentials.find({ agent: `agent://acme.a${number}` }, NOW);

describe("A sender's credential", () => {
  test("is looked up once a key, and again after five minutes", async () => {
    expect(await Promise.all([find(), find()])).toMatchObject([QUERY, QUERY]);
    expect(await find()).toMatchObject(QUERY);
    expect(paths).toEqual([`/v1/agents/acme.bob/credential?key_id=jkt-${BOB.thumbprint}`]);
    jest.advanceTimersByTime(LOOK_UP.againAfterMs - 1);
    await find();
    expect(paths).toHaveLength(1);
    jest.advanceTimersByTime(1);
    await find();
    expect(paths).toHaveLength(2);
  });

  test("is asked for by any key when none is named", async () => {
    expect(await credentials.find({ agent: QUERY.agent }, NOW)).toMatchObject(QUERY);
    expect(paths).toEqual(["/v1/agents/acme.bob/credential"]);
  });

  test("that the relay does not have is not asked for again at once, but within seconds", async () => {
    respond = () => Promise.resolve(none);
    expect([await find(), await find()]).toEqual([undefined, undefined]);
    jest.advanceTimersByTime(LOOK_UP.soonAgainAfterMs - 1);
    await find();
    expect(paths).toHaveLength(1);
    jest.advanceTimersByTime(1);
    respond = () => Promise.resolve(found());
    expect(await find()).toMatchObject(QUERY);
  });

  test("that has ended is looked up again, at most every five seconds", async () => {
    await find();
    jest.advanceTimersByTime(LOOK_UP.soonAgainAfterMs);
    const ended = CLAIMS.exp * 1000;
    respond = () => Promise.resolve(found({ iat: CLAIMS.exp - 60, exp: CLAIMS.exp + 60 }));
    expect(await find(ended)).toMatchObject({ expiresAt: ended + 60_000 });
    expect(await find(ended + 60_000)).toMatchObject({ expiresAt: ended + 60_000 });
    expect(paths).toHaveLength(2);
  });

  test.each([
    ["an error", () => Promise.resolve(answer(503, {}))],
    ["no connection", () => Promise.reject(new TypeError("fetch failed"))],
    ["what is not JSON", () => Promise.resolve(answer(200, "<html>"))],
    ["what is no credential", () => Promise.resolve(answer(200, { credential: "a.b.c" }))],
    ["another agent's", () => Promise.resolve(found({ sub: "agent://acme.eve" }))],
    ["another key's", () => Promise.resolve(found({ cnf: { jwk: { ...CLAIMS.cnf.jwk, x: "AAAA".padEnd(43, "Q") } } }))],
  ])("is not known after an answer of %s, which is no verdict and is asked again soon", async (_, response) => {
    respond = response;
    expect(await find()).toBeUndefined();
    jest.advanceTimersByTime(LOOK_UP.soonAgainAfterMs - 1);
    expect(await find()).toBeUndefined();
    expect(paths).toHaveLength(1);
    jest.advanceTimersByTime(1);
    respond = () => Promise.resolve(found());
    expect(await find()).toMatchObject(QUERY);
  });

  test("stays known when a later look-up fails", async () => {
    await find();
    jest.advanceTimersByTime(LOOK_UP.againAfterMs);
    respond = () => Promise.reject(new TypeError("fetch failed"));
    expect(await find()).toMatchObject(QUERY);
    expect(paths).toHaveLength(2);
  });
});

describe("A recipient's credential", () => {
  const recipient = () => credentials.findRecipient(QUERY.agent, NOW, performance.now());

  test("that there was none of is asked for again by whoever needs it next, once a second at most", async () => {
    respond = () => Promise.resolve(none);
    expect(await recipient()).toBeUndefined();
    await jest.advanceTimersByTimeAsync(1);
    const waiting = recipient();
    await jest.advanceTimersByTimeAsync(LOOK_UP.recipientAgainAfterMs - 2);
    expect(paths).toHaveLength(1);
    respond = () => Promise.resolve(found());
    await jest.advanceTimersByTimeAsync(1);
    expect(await waiting).toMatchObject(QUERY);
    expect(paths).toHaveLength(2);
  });

  test("that there is none of is one question for all who need it meanwhile", async () => {
    respond = () => Promise.resolve(none);
    await recipient();
    await jest.advanceTimersByTimeAsync(1);
    const neededAt = performance.now();
    const both = Promise.all([recipient(), recipient()]);
    await jest.advanceTimersByTimeAsync(LOOK_UP.recipientAgainAfterMs);
    expect([await both, paths.length]).toEqual([[undefined, undefined], 2]);
    expect(await credentials.findRecipient(QUERY.agent, NOW, neededAt)).toBeUndefined();
    expect(paths).toHaveLength(2);
  });

  test("whose look-up began before it was needed is waited for, however long it takes, without asking for it meanwhile", async () => {
    const slow = Promise.withResolvers<HttpAnswer>();
    respond = () => slow.promise;
    void recipient();
    await jest.advanceTimersByTimeAsync(1);
    const looks = jest.spyOn(credentials, "find");
    const waiting = recipient();
    await jest.advanceTimersByTimeAsync(LOOK_UP.recipientAgainAfterMs + 500);
    expect([looks.mock.calls.length, paths.length]).toEqual([1, 1]);
    slow.resolve(found());
    await jest.advanceTimersByTimeAsync(0);
    expect(await waiting).toMatchObject(QUERY);
  });

  test("is nobody's once the connector has stopped, however soon after the last look-up", async () => {
    respond = () => Promise.resolve(none);
    await recipient();
    await jest.advanceTimersByTimeAsync(1);
    const waiting = recipient();
    credentials.stop();
    await jest.advanceTimersByTimeAsync(0);
    expect([await waiting, paths.length]).toEqual([undefined, 1]);
  });

  test("that is found is kept for five minutes", async () => {
    expect(await Promise.all([recipient(), recipient()])).toMatchObject([QUERY, QUERY]);
    jest.advanceTimersByTime(LOOK_UP.againAfterMs - 1);
    expect(await recipient()).toMatchObject(QUERY);
    expect(paths).toHaveLength(1);
  });
});

describe("A relay that does not answer", () => {
  test("is waited for a second, then its answer helps later deliveries", async () => {
    const slow = Promise.withResolvers<HttpAnswer>();
    respond = () => slow.promise;
    const waiting = find();
    await jest.advanceTimersByTimeAsync(LOOK_UP.waitMs - 1);
    expect(await Promise.race([waiting, "waits"])).toBe("waits");
    await jest.advanceTimersByTimeAsync(1);
    expect(await waiting).toBeUndefined();
    slow.resolve(found());
    expect(await find()).toMatchObject(QUERY);
    expect(paths).toHaveLength(1);
  });

  test("has no more than sixteen questions at once, and others get their turn", async () => {
    const answers = Array.from({ length: LOOK_UP.atOnce + 1 }, () => Promise.withResolvers<HttpAnswer>());
    respond = () => (answers[paths.length - 1] as PromiseWithResolvers<HttpAnswer>).promise;
    const asked = answers.map((_, number) => agentNo(number));
    await jest.advanceTimersByTimeAsync(0);
    expect(paths).toHaveLength(LOOK_UP.atOnce);
    answers[0]?.resolve(none);
    await asked[0];
    await jest.advanceTimersByTimeAsync(0);
    expect(paths).toHaveLength(LOOK_UP.atOnce + 1);
    await jest.advanceTimersByTimeAsync(LOOK_UP.waitMs);
    await Promise.all(asked);
  });

  test("gets no more questions once the connector has stopped", async () => {
    let signal: AbortSignal | undefined;
    respond = (_, given) => {
      signal = given;
      return never();
    };
    const waiting = find();
    await jest.advanceTimersByTimeAsync(0);
    credentials.stop();
    expect(signal?.aborted).toBe(true);
    await jest.advanceTimersByTimeAsync(LOOK_UP.waitMs);
    expect(await waiting).toBeUndefined();
  });
});

test("What is kept is bounded: what was needed longest ago goes first", async () => {
  respond = () => Promise.resolve(none);
  await find();
  await agentNo(0);
  for (let number = 1; number < LOOK_UP.maxKept - 1; number += 1) await agentNo(number);
  await find();
  await agentNo(LOOK_UP.maxKept);
  const before = paths.length;
  await find();
  expect(paths).toHaveLength(before);
  await agentNo(0);
  expect(paths).toHaveLength(before + 1);
});

describe("A flood of strangers", () => {
  const { perMinute, maxKept, atOnce } = LOOK_UP.strangers;
  const stranger = (number: number) => credentials.find({ agent: `agent://evil.a${number}` }, NOW, "stranger");
  const flood = async (number: number) => {
    for (let n = 0; n < number; n += 1) await stranger(n);
  };

  test("uses up its own share of a minute's look-ups, and nothing of known agents'", async () => {
    respond = () => Promise.resolve(none);
    await flood(perMinute + 50);
    expect(paths).toHaveLength(perMinute);
    respond = () => Promise.resolve(found());
    expect(await find()).toMatchObject(QUERY);
    jest.advanceTimersByTime(60_000);
    await stranger(perMinute + 50);
    expect(paths).toHaveLength(perMinute + 2);
  });

  test("is asked about once each, and takes the place of none that is known, though it once was a stranger", async () => {
    expect(await credentials.find(QUERY, NOW, "stranger")).toMatchObject(QUERY);
    credentials.isKnown(QUERY);
    respond = () => Promise.resolve(none);
    await stranger(0);
    await stranger(0);
    expect(paths).toHaveLength(2);
    await flood(maxKept + 1);
    const before = paths.length;
    expect(await credentials.find(QUERY, NOW, "stranger")).toMatchObject(QUERY);
    expect(paths).toHaveLength(before);
  });

  test("leaves turns to known agents where the relay does not answer", async () => {
    respond = never;
    const waiting = Array.from({ length: LOOK_UP.atOnce * 2 }, (_, n) => stranger(n));
    await jest.advanceTimersByTimeAsync(0);
    expect(paths).toHaveLength(atOnce);
    respond = () => Promise.resolve(found());
    expect(await find()).toMatchObject(QUERY);
    await jest.advanceTimersByTimeAsync(LOOK_UP.waitMs);
    await Promise.all(waiting);
  });
});
