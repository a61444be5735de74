import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { freePort } from "../../test/support/free-port.ts";
import { until } from "../../test/support/until.ts";
import { AnswerTooLarge, type HttpAnswer, HttpClient } from "../src/http-client.ts";
import { FIRST_START, REGISTER_WITHIN_MS } from "../src/limits.ts";
import { shared } from "./fixture.ts";
import { errorOf, record, testAgent, WholeStage } from "./kit.ts";
import { SELF_SIGNED } from "./self-signed.ts";
import { answerLookUps, holdWaits, LONG_MS, said, setTime, Waits } from "./times.ts";

const stage = shared(new WholeStage("alice", "bob"));
const servers: Server[] = [];

afterEach(async () => {
  jest.restoreAllMocks();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  }
});

async function portOf(server: Server): Promise<number> {
  servers.push(server);
  await once(server.listen(0, "127.0.0.1"), "listening");
  return (server.address() as AddressInfo).port;
}

/** Answers every upgrade with this status. @param asked is called for each. */
async function refusing(status: number, headers = "", asked = () => {}): Promise<string> {
  const server = createServer();
  const answer = `HTTP/1.1 ${status} No\r\n${headers}content-length: 0\r\n\r\n`;
  server.on("upgrade", (_, socket) => {
    asked();
    // Whoever has read the answer may reset the connection.
    socket.on("error", () => {}).end(answer);
  });
  return `http://127.0.0.1:${await portOf(server)}`;
}

describe("A first start that cannot succeed is rejected at once, and says why", () => {
  test("where nobody vouches for the certificate", async () => {
    const port = await portOf(createTlsServer(SELF_SIGNED));
    const error = await errorOf(stage.connector("alice", `https://localhost:${port}`).start());
    expect(error).toMatchObject({ retry: "fix", cause: { code: "DEPTH_ZERO_SELF_SIGNED_CERT" } });
  });
});

describe("A first start whose upgrade is answered by something else", () => {
  test.each([403, 200])("with %d goes on for a while, tells why, and ends with that", async (status) => {
    const asked = jest.fn();
    const alice = stage.connector("alice", await refusing(status, "", asked));
    const { errors } = record(alice);
    const started = errorOf(alice.start());
    await until("two attempts were told", () => errors.length > 1);
    expect(alice.state.status).toBe("reconnecting");
    setTime(FIRST_START, "refusedUpgradeMs", 0);
    expect(await started).toMatchObject({ code: "unreachable", retry: "fix" });
    const told = { code: "unreachable", message: expect.stringContaining(String(status)) };
    expect(errors).toEqual(errors.map(() => expect.objectContaining(told)));
    expect(alice.state.status).toBe("closed");
    expect(asked).toHaveBeenCalledTimes(errors.length);
  });

  test.each([
    ["", undefined, 60_000],
    [", however late, where the start may take as long as it likes", Infinity, 0],
  ])("is online as soon as the relay answers%s", async (_, timeoutMs, refusedMs) => {
    setTime(FIRST_START, "refusedUpgradeMs", refusedMs);
    const proxy = await stage.proxy(stage.url);
    proxy.refusesWith = 403;
    const alice = stage.connector("alice", proxy.url);
    const { errors } = record(alice);
    const started = alice.start({ timeoutMs });
    await until("a refusal was told", () => errors.length > 0);
    proxy.refusesWith = undefined;
    await started;
    expect(alice.state.status).toBe("online");
  });

  test("follows no redirect", async () => {
    const asked = jest.fn();
    const elsewhere = await refusing(404, "", asked);
    const alice = stage.connector("alice", await refusing(301, `location: ${elsewhere}/ws\r\n`));
    const { errors } = record(alice);
    void alice.start();
    await until("two attempts were told", () => errors.length > 1);
    expect(errors[0]).toMatchObject({ message: expect.stringContaining(`${elsewhere}/ws`) });
    expect(asked).not.toHaveBeenCalled();
  });

  test("waits for as long as that asks for", async () => {
    const alice = stage.connector("alice", await refusing(503, "retry-after: 7\r\n"));
    const { errors } = record(alice);
    void alice.start();
    await until("a refusal was told", () => errors.length > 0);
    expect(alice.state).toMatchObject({ status: "reconnecting", retryInMs: expect.any(Number) });
    const { retryInMs } = alice.state as { retryInMs: number };
    expect(retryInMs).toBeGreaterThanOrEqual(7000);
  });
});

describe("A start that may yet succeed goes on, and tells the cause of each failed attempt", () => {
  test.each([
    [
      "a port that speaks TLS",
      async () => `http://127.0.0.1:${await portOf(createTlsServer(SELF_SIGNED))}`,
      "ECONNRESET",
    ],
    ["a relay without room", async () => await refusing(503), undefined],
  ])("%s", async (_, url, cause) => {
    const alice = stage.connector("alice", await url());
    const { errors } = record(alice);
    void alice.start();
    await until("two attempts were told", () => errors.length > 1);
    expect(errors[0]).toMatchObject({ code: "unreachable", retry: "later", hint: expect.any(String) });
    expect((errors[0]?.cause as { code?: string } | undefined)?.code).toBe(cause);
    const again = { status: "reconnecting", reason: "unreachable", closeCode: 1006, retryInMs: expect.any(Number) };
    expect(alice.state).toMatchObject(again);
  });

  test.each([Infinity, 2 ** 31])(
    "for as long as that takes where its time is %d, which no timer holds",
    async (startTimeoutMs) => {
      const port = await freePort();
      const alice = stage.connector("alice", `http://127.0.0.1:${port}`, { startTimeoutMs });
      const started = alice.start();
      const { errors } = record(alice);
      await until("two attempts were told", () => errors.length > 1);
      expect(alice.state.status).toBe("reconnecting");
      await alice.close();
      await expect(started).rejects.toMatchObject({ code: "closed" });
    },
  );

  test("and its time no longer counts once it is registered", async () => {
    const alice = stage.connector("alice", stage.url);
    const timers = jest.spyOn(globalThis, "clearTimeout");
    const set = jest.spyOn(globalThis, "setTimeout");
    await alice.start({ timeoutMs: 123_456 });
    const timer = set.mock.results[set.mock.calls.findIndex(([, ms]) => ms === 123_456)]?.value;
    expect(timers.mock.calls).toContainEqual([timer]);
  });
});

test("An agent that was online before outlasts what would end a first start", async () => {
  setTime(FIRST_START, "refusedUpgradeMs", 0);
  const proxy = await stage.proxy(stage.url);
  const alice = await stage.online("alice", proxy.url);
  const { errors } = record(alice);
  proxy.refusesWith = 404;
  proxy.cut();
  await until("two refusals were told", () => errors.filter(({ retry }) => retry === "fix").length > 1);
  expect(alice.state.status).toBe("reconnecting");
});

describe("A start under an agent that is online elsewhere", () => {
  test("is refused for its key where that is not the agent's: it could not take it over", async () => {
    setTime(FIRST_START, "lookAgainMs", 1);
    const first = await stage.online("bob", stage.url);
    const wrong = { ...testAgent("bob").key, keyId: stage.agent("bob").keyId };
    const second = stage.connector("bob", stage.url, { key: wrong });
    await expect(second.start()).rejects.toMatchObject({ code: "bad_signature", retry: "fix" });
    expect(first.state.status).toBe("online");
  });

  test("is none right after the former one ended, nor does a reconnect ever ask", async () => {
    const proxy = await stage.proxy(stage.url);
    for (let round = 0; round < 3; round += 1) await (await stage.online("alice", stage.url)).close();
    const alice = await stage.online("alice", proxy.url);
    const asked = jest.spyOn(HttpClient.prototype, "ask");
    const { states } = record(alice);
    proxy.cut();
    await until("it is back", () => states.at(-1) === "online");
    expect(asked).not.toHaveBeenCalled();
  });

  test.each<[string, string, () => HttpAnswer | Promise<HttpAnswer>]>([
    ["is not answered", "unreachable", () => Promise.reject(new Error("socket hang up"))],
    ["is answered by a proxy in front of it", "unreachable", () => said("<html>", 502)],
    ["has a presence and a status that is none of a presence", "unreachable", () => said({ status: "offline" }, 503)],
    [
      "meets the limit of its address, for a minute",
      "rate_limited",
      () => said({ code: "rate_limited", retry: "later", retry_after_ms: 60_000 }),
    ],
  ])("takes nothing over where the look-up %s: it ends with its time, and that error", async (_, code, answer) => {
    const first = await stage.online("bob", stage.url);
    answerLookUps(answer);
    const second = stage.connector("bob", stage.url);
    const { errors } = record(second);
    const timeIsOver = holdWaits();
    const started = errorOf(second.start({ timeoutMs: LONG_MS }));
    await until("why it waits is told", () => errors.length > 0);
    timeIsOver();
    expect(await started).toMatchObject({ code: "timeout", outcome: "refused", cause: { code } });
    expect([errors[0], first.state.status]).toMatchObject([{ code, retry: "later" }, "online"]);
  });

  const OTHERS: readonly [string, HttpAnswer | AnswerTooLarge][] = [
    ["has the websocket alone", said({ code: "not_found", retry: "never" }, 404)],
    ["is a proxy that lets nobody in", said("<html>", 403)],
    ["is a page", said("<html>")],
    ["is a page of any size", new AnswerTooLarge(said(""))],
    ["is another API", said({ code: "forbidden" }, 401)],
    ["leads elsewhere", said("", 302)],
    ["tells of a presence that is none", said({ ok: true, status: "elsewhere" })],
  ];

  test.each(OTHERS)("is refused, and the other stays, where what answers over HTTP %s", async (_, answer) => {
    setTime(FIRST_START, "unknownKeyMs", 0);
    const first = await stage.online("bob", stage.url);
    answerLookUps(() => {
      if (answer instanceof AnswerTooLarge) throw answer;
      return answer;
    });
    const error = await errorOf(stage.connector("bob", stage.url).start());
    expect(error).toMatchObject({ code: "not_a_relay", retry: "fix", outcome: "refused" });
    expect(error.message).toContain(stage.url);
    expect(error.message).toContain(String(answer.status));
    expect(error.hint.includes("takeOver")).toBe(answer.status === 200 || answer.status === 404);
    expect(first.state.status).toBe("online");
  });

  test("waits for the relay to answer over HTTP where it may take as long as it likes", async () => {
    setTime(FIRST_START, "unknownKeyMs", 0);
    const pages = [said("<html>", 403), said("<html>", 403)];
    answerLookUps(async (_, ask) => pages.shift() ?? (await ask()));
    const alice = stage.connector("alice", stage.url, { startTimeoutMs: Infinity });
    await alice.start();
    expect([alice.state.status, pages]).toEqual(["online", []]);
  });

  test("looks where the relay answers over HTTP, if that is told", async () => {
    setTime(FIRST_START, "unknownKeyMs", 0);
    setTime(FIRST_START, "lookAgainMs", 1);
    const pod = await stage.relay.startWsConnector();
    const first = await stage.online("bob", stage.url);
    await expect(stage.connector("bob", pod.url).start()).rejects.toMatchObject({ code: "not_a_relay" });
    const second = stage.connector("bob", pod.url, { httpUrl: stage.url });
    await expect(second.start()).rejects.toMatchObject({ code: "superseded_elsewhere" });
    await first.close();
    await stage.online("bob", pod.url, { httpUrl: stage.url });
  });
});

describe("A start of an agent whose presence the relay cannot tell for the moment", () => {
  /** More often than an agent must be seen online to count as held elsewhere. */
  const TIMES = 7;

  function untold(times: number): void {
    let left = times;
    answerLookUps(async (_, ask) => {
      left -= 1;
      return left < 0 ? await ask() : said({ code: "unavailable", retry: "later", retry_after_ms: 5 });
    });
  }

  test("waits until it can, and says why meanwhile", async () => {
    untold(TIMES);
    const alice = stage.connector("alice", stage.url);
    const { errors } = record(alice);
    await alice.start();
    expect(errors.map(({ code }) => code)).toEqual(Array(TIMES).fill("unavailable"));
  });

  test("waits while an edge that is being changed answers for it, and says so", async () => {
    const pages = [said("404 page not found", 404), said("<html>", 403)];
    answerLookUps(async (_, ask) => pages.shift() ?? (await ask()));
    const alice = stage.connector("alice", stage.url);
    const { errors } = record(alice);
    await alice.start();
    expect(errors.map(({ code }) => code)).toEqual(["not_a_relay", "not_a_relay"]);
  });

  test("outlasts the time in which a connection has to register", async () => {
    untold(Number.POSITIVE_INFINITY);
    const waits = new Waits();
    const alice = stage.connector("alice", stage.url);
    const { states, errors } = record(alice);
    const started = alice.start();
    await until("it waits to register", () => errors.length > 0);
    await waits.end(REGISTER_WITHIN_MS);
    await until("its first connection is given up", () => states.includes("reconnecting"));
    jest.restoreAllMocks();
    await started;
    expect(states).not.toContain("closed");
  });

  test("ends nobody's connection when it can", async () => {
    setTime(FIRST_START, "lookAgainMs", 1);
    const first = await stage.online("bob", stage.url);
    untold(TIMES);
    const second = stage.connector("bob", stage.url);
    await expect(second.start()).rejects.toMatchObject({ code: "superseded_elsewhere" });
    expect(first.state.status).toBe("online");
  });

  test("ends with its time, for that reason", async () => {
    untold(Number.POSITIVE_INFINITY);
    const alice = stage.connector("alice", stage.url);
    const { errors } = record(alice);
    const timeIsOver = holdWaits();
    const started = alice.start({ timeoutMs: LONG_MS });
    started.catch(() => {});
    await until("why it waits is told", () => errors.length > 0);
    timeIsOver();
    await expect(started).rejects.toMatchObject({
      code: "timeout",
      cause: { code: "unavailable" },
    });
  });
});
