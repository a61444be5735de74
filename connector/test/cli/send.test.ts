import { once } from "node:events";
import { chmod, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer, getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { RelayHttp } from "../../src/cli/relay-http.ts";
import { EDGE, gatewayTransport } from "../../src/cli/transport.ts";
import { FIRST_START } from "../../src/limits.ts";
import { shared } from "../fixture.ts";
import { errorOf, jsonLines, next, record, untilState } from "../kit.ts";
import { SELF_SIGNED } from "../self-signed.ts";
import { setTime, Waits } from "../times.ts";
import { BOB, CommandLine, expectFailure, HELLO, nowhere } from "./shell.ts";

afterEach(() => {
  jest.restoreAllMocks();
});

const line = shared(new CommandLine("alice", "bob-hmac"));

const as = (name: string) => ["--key", line.keyFile(name)];
const bob = () => line.stage.online("bob-hmac", line.url);

describe("relay send", () => {
  test("sends what its second word says, or what is piped in, and says that it was handed over", async () => {
    const receiver = await bob();
    const first = await line.run(["send", ...as("alice"), BOB, HELLO]);
    expect(first).toEqual({ code: 0, stdout: expect.stringContaining(BOB), stderr: "" });
    expect((await next(receiver)).payload).toEqual({ message: "Hello, Bob." });
    for (const words of [["-"], []]) {
      const { code } = await line.run(
        ["send", ...as("alice"), BOB, ...words, "--type", "message.note", "--task-id", "t"],
        {
          stdin: '{"piped":[1,2]}',
        },
      );
      expect(code).toBe(0);
      expect(await next(receiver)).toMatchObject({
        type: "message.note",
        payload: { piped: [1, 2] },
        envelope: { task_id: "t" },
      });
    }
  });

  test("says that nobody got it when the target was not online, and prints one line of JSON when asked", async () => {
    const text = await line.run(["send", ...as("alice"), "agent://nobody", HELLO]);
    expect(text).toMatchObject({ code: 0, stdout: expect.stringContaining("agent://nobody"), stderr: "" });
    const json = await line.run(["send", "--json", ...as("alice"), "agent://nobody", HELLO]);
    expect(jsonLines(json.stdout)).toEqual([
      {
        ok: true,
        sealed: false,
        envelope_id: expect.any(String),
        target_delivery: { status: "not_seen", can_deliver_realtime: false },
        via: "connection",
      },
    ]);
    expect(json.stderr).toBe("");
  });

  test("blames the payload alone, however the target is named", async () => {
    const named = await expectFailure(line, ["send", "--json", ...as("alice"), "bob-hmac", "hi"], 2, "usage");
    expect(named).toBe(await expectFailure(line, ["send", "--json", ...as("alice"), BOB, "hi"], 2, "usage"));
  });

  test("takes the name of an agent for its id, as request and status do", async () => {
    const receiver = await bob();
    expect((await line.run(["send", ...as("alice"), "bob-hmac", HELLO])).code).toBe(0);
    expect(await next(receiver)).toMatchObject({ from: "agent://alice" });
    const status = await line.run(["status", "--json", "bob-hmac"]);
    expect(jsonLines(status.stdout)).toMatchObject([{ agents: [{ agent_id: BOB, status: "online" }] }]);
    const request = await line.run(["request", "--json", ...as("alice"), "bob-hmac", "--purpose", "p"]);
    expect(jsonLines(request.stdout)).toMatchObject([{ target_delivery: { can_deliver_realtime: true } }]);
    for (const command of ["send", "request"]) {
      const purpose = command === "request" ? ["--purpose", "p"] : [HELLO];
      await expectFailure(line, [command, "--json", ...as("alice"), "Bob!", ...purpose], 2, "usage");
    }
    await expectFailure(line, ["status", "--json", "Bob!"], 2, "usage");
  });

  test("does not take an agent from another program, unless it is told to", async () => {
    const alice = await line.stage.online("alice", line.url);
    const { states } = record(alice);
    await expectFailure(line, ["send", "--json", ...as("alice"), BOB, HELLO], 6, "superseded_elsewhere");
    expect(states).toEqual([]);
    expect((await line.run(["send", "--take-over", ...as("alice"), BOB, HELLO])).code).toBe(0);
    await until("the other one ended", () => states.includes("closed"));
  });

  test("asks where RELAY_HTTP_URL says whether another program has the agent, where its address has the websocket alone", async () => {
    setTime(FIRST_START, "unknownKeyMs", 0);
    const pod = await line.stage.relay.startWsConnector();
    const alice = await line.stage.online("alice", line.url);
    const send = ["send", "--json", ...as("alice"), "--url", pod.url, BOB, HELLO];
    await expectFailure(line, send, 4, "not_a_relay");
    const env = { RELAY_HTTP_URL: line.url };
    expect(await line.run(send, { env })).toMatchObject({ code: 6 });
    await alice.close();
    expect(await line.run(send, { env })).toMatchObject({ code: 0 });
  });

  test("goes over HTTP with an API key, beside a connection of the same agent", async () => {
    const receiver = await bob();
    const alice = await line.stage.online("alice", line.url);
    const { states } = record(alice);
    const env = { RELAY_API_KEY: line.stage.agent("alice").apiKey, RELAY_AGENT: "agent://alice" };
    const { code, stdout } = await line.run(["send", "--json", BOB, HELLO], { env });
    expect([code, jsonLines(stdout)[0].via]).toEqual([0, "gateway"]);
    expect((await next(receiver)).verified).toBe("gateway");
    expect(states).toEqual([]);
    await expectFailure(line, ["send", "--json", BOB, '{"n":1}'], 2, "usage", env);
    const wrong = { ...env, RELAY_API_KEY: "rk_wrong" };
    const stderr = await expectFailure(line, ["send", "--json", BOB, HELLO], 7, "invalid_api_key", wrong);
    expect(stderr).not.toContain("rk_wrong");
  });

  test.each([
    [503, 0],
    [403, 0],
    [404, 4],
  ])("outlasts an edge that has no relay for a moment, and no wrong address: %d", async (status, code) => {
    const relay = new URL(line.url);
    let refusals = 0;
    const edge = createTcpServer((client) => {
      client.on("error", () => {});
      if (refusals < 4) {
        refusals += 1;
        client.once("data", () => client.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`));
        return;
      }
      client
        .pipe(connect(Number(relay.port), relay.hostname))
        .on("error", () => {})
        .pipe(client);
    });
    await once(edge.listen(0, "127.0.0.1"), "listening");
    const url = `http://127.0.0.1:${(edge.address() as AddressInfo).port}`;
    const said = await line.run(["send", "--json", "--url", url, ...as("alice"), BOB, HELLO]);
    edge.close();
    const events = jsonLines(said.stderr).map(({ event, code }) => [event, code]);
    expect([said.code, events]).toEqual([code, [[code === 0 ? "waiting" : "error", "unreachable"]]]);
  });

  test("tells by exit code and error code why nothing was sent, and without --json in one line of text", async () => {
    const send = (...args: string[]) => ["send", "--json", ...args];
    const url = await nowhere();
    const unreachable = await expectFailure(line, send("--url", url, ...as("alice"), BOB, HELLO), 4, "unreachable");
    expect(unreachable).toContain(url);
    await expectFailure(line, send("--url", "ftp://127.0.0.1", ...as("alice"), BOB, HELLO), 2, "usage");
    await expectFailure(line, send(BOB, HELLO), 7, "invalid_key");
    const noAgent = await expectFailure(line, send(BOB, HELLO), 7, "invalid_key", { RELAY_API_KEY: "rk_x" });
    expect(noAgent).toContain("RELAY_AGENT");
    await expectFailure(line, send("--key", "none.json", BOB, HELLO), 7, "invalid_key");
    await expectFailure(line, send(...as("alice"), BOB, "no json"), 2, "usage");
    await expectFailure(line, send(...as("alice"), "agent://BOB", HELLO), 2, "usage");
    await expectFailure(line, send(...as("alice"), "--type", "Mail", BOB, HELLO), 2, "invalid_envelope");
    const asText = await line.run(["send", "--url", url, ...as("alice"), BOB, HELLO]);
    expect(asText).toEqual({ code: 4, stdout: "", stderr: expect.stringMatching(/^relay: .+\n$/) });
  });

  test("refuses an address with a password or a query, names what gave it, and prints neither", async () => {
    const send = ["send", "--json", ...as("alice")];
    for (const address of [
      "http://user:secret@127.0.0.1",
      "http://127.0.0.1?token=secret",
      "https://127.0.0.1:99999",
    ]) {
      const told = await Promise.all([
        expectFailure(line, [...send, "--url", address, BOB, HELLO], 2, "usage"),
        expectFailure(line, [...send, BOB, HELLO], 2, "usage", { RELAY_URL: address }),
        expectFailure(line, [...send, BOB, HELLO], 2, "usage", { RELAY_HTTP_URL: address }),
      ]);
      const names = ["--url", "RELAY_URL", "RELAY_HTTP_URL"];
      expect(told).toEqual(names.map((name) => expect.stringContaining(`${name}: The `)));
      expect(told.join()).not.toContain("secret");
    }
  });

  test("with --wait-online waits until the target can be delivered to, and then says what both connectors say", async () => {
    const proxy = await line.stage.proxy(line.url);
    const { presence } = proxy;
    let asked = 0;
    const congested = async () => {
      asked += 1;
      return JSON.stringify({ ok: true, status: "online", can_deliver_realtime: false });
    };
    const waits = new Waits();
    const expectVain = async (args: string[], env = {}) => {
      const askedBefore = asked;
      const vain = [...args, "--json", "--url", proxy.url, BOB, HELLO, "--wait-online", "3000"];
      const failing = expectFailure(line, vain, 5, "target_not_online", env);
      await until("it asks again after an answer", () => asked > askedBefore + 1);
      waits.endBetween(2_900_000, 3_000_000);
      await failing;
    };
    proxy.presence = async (path) => await (path.endsWith("alice") ? presence(path) : congested());
    const { apiKey } = line.stage.agent("alice");
    const overHttp = { RELAY_API_KEY: apiKey, RELAY_AGENT: "agent://alice" };
    for (const command of ["send", "ask"]) await expectVain([command, ...as("alice")]);
    await expectVain(["send"], overHttp);
    expect(proxy.sent.filter(({ type }) => type === "message.send")).toEqual([]);
    await expectFailure(line, ["send", "--json", ...as("alice"), BOB, HELLO, "--wait-online", "0"], 2, "usage");
  });
});

test.each([`send ${BOB} -`, "inspect -"])(
  "relay %s ends with the first signal while it reads standard input",
  async (words) => {
    const command = line.begin([...words.split(" "), "--json"], { RELAY_KEY_FILE: line.keyFile("alice") });
    command.stdin.write("{");
    await until("it reads", () => command.stdin.readableLength === 0);
    void command.stop();
    await until("it has ended", () => command.code !== undefined).finally(() => command.stdin.end());
    expect(command.code).toBe(130);
    expect(command.reports).toMatchObject([{ event: "error", code: "aborted", outcome: "refused" }]);
  },
);

describe("Secrets", () => {
  test("are refused on the command line, and are not repeated", async () => {
    const secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I";
    const option = [["--private-key", secret], [`--secret=${secret}`], ["--key", secret], ["--api-key", "rk_x"]];
    for (const args of [...option.map((words) => ["send", ...words, BOB, HELLO]), ["status", secret]]) {
      const stderr = await expectFailure(line, [...args, "--json"], 2, "usage");
      expect(stderr).not.toContain(secret);
    }
  });

  test("in a file that others may read are warned of, and used", async () => {
    await chmod(line.keyFile("alice"), 0o644);
    const { code, stderr } = await line.run(["send", "--json", ...as("alice"), BOB, HELLO]);
    await chmod(line.keyFile("alice"), 0o600);
    expect(code).toBe(0);
    expect(jsonLines(stderr)).toMatchObject([{ event: "warning" }]);
  });

  test("in a broken key file are not quoted", async () => {
    const secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I";
    const broken = join(line.folder, "broken.json");
    for (const text of [
      `{"private_key":"${secret}`,
      `{"agent_id":"agent://a","key_id":"a","alg":"ed25519","secret":"${secret}"}`,
    ]) {
      await writeFile(broken, text, { mode: 0o600 });
      const { code, stderr } = await line.run(["send", "--key", broken, BOB, HELLO]);
      expect(code).toBe(7);
      expect(stderr).not.toContain(secret);
    }
  });
});

describe("What is sent with an API key", () => {
  type Answering = (request: IncomingMessage, answer: ServerResponse) => void;

  const refusal = (status: number, code: string): Answering => {
    const retry = status === 401 ? "fix" : "later";
    return (_, answer) => void answer.writeHead(status).end(JSON.stringify({ ok: false, code, retry, detail: "No." }));
  };
  /** An edge says it in the place of the relay. */
  const edge =
    (status: number): Answering =>
    (_, answer) =>
      void answer.writeHead(status).end("<html>");
  const cutOff: Answering = (request) => void request.socket.destroy();
  const accepted: Answering = (_, answer) => {
    const target_delivery = { status: "online", can_deliver_realtime: true };
    answer.writeHead(202).end(JSON.stringify({ ok: true, envelope_id: "e-1", target_delivery }));
  };

  /** Of each request that came, its Idempotency-Key. */
  let keys: unknown[];
  let answers: Answering[];
  const gateway = createServer((request, answer) => {
    keys.push(request.headers["idempotency-key"]);
    request.resume().on("end", () => answers.shift()?.(request, answer));
  });

  beforeEach(async () => {
    [keys, answers] = [[], []];
    await once(gateway.listen(0, "127.0.0.1"), "listening");
  });
  afterEach(async () => {
    gateway.closeAllConnections();
    await new Promise((closed) => gateway.close(closed));
  });

  const address = () => `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;

  /** Sends a message with an API key. */
  function sends(url: string, signal = new AbortController().signal) {
    const transport = gatewayTransport("agent://alice", "rk_x", new RelayHttp(url, { env: {}, signal }), signal);
    return transport.send({ to: "agent://bob", payload: { message: "hi" } });
  }

  test.each<[string, string, Answering[]]>([
    ["no answer comes, twice", "unreachable", [cutOff, cutOff]],
    ["the relay cannot tell", "unavailable", [refusal(503, "unavailable")]],
    ["the relay has failed", "internal_error", [refusal(500, "internal_error")]],
    [
      "the first request is still in progress",
      "idempotency_in_progress",
      [cutOff, refusal(409, "idempotency_in_progress")],
    ],
    ["no answer comes, and then a refusal for the moment", "rate_limited", [cutOff, refusal(429, "rate_limited")]],
    ["an edge fails, twice", "unreachable", [edge(502), edge(504)]],
  ])("has an unknown outcome where %s, and says how to go on", async (_, code, given) => {
    setTime(EDGE, "outlastedMs", 0);
    answers = [...given];
    const error = await errorOf(sends(address()));
    expect(error).toMatchObject({ code, outcome: "unknown", retry: "later" });
    expect(error.hint).toContain("ask the target before you send it again");
    expect(keys).toEqual(given.map(() => keys[0]));
  });

  test.each<[string, Answering[]]>([
    ["an edge fails, and then refuses", [edge(502), edge(403)]],
    ["no answer comes, and then a redirect", [cutOff, edge(302)]],
    ["an edge shows a page", [edge(200), edge(200)]],
    ["an edge gives up on it", [edge(408), edge(408)]],
  ])("has an unknown outcome also where %s", async (_, given) => {
    setTime(EDGE, "outlastedMs", 0);
    answers = [...given];
    expect(await errorOf(sends(address()))).toMatchObject({ code: "unreachable", outcome: "unknown" });
  });

  test("has an unknown outcome where TLS breaks behind the request", async () => {
    const authorities = getCACertificates();
    setDefaultCACertificates([SELF_SIGNED.cert]);
    const clients: Socket[] = [];
    const secure = createTlsServer({ ...SELF_SIGNED, maxVersion: "TLSv1.2" }, (socket) => {
      socket.once("data", () => clients.at(-1)?.end("This is no TLS."));
    });
    await once(secure.listen(0, "127.0.0.1"), "listening");
    const front = createTcpServer((client) => {
      clients.push(client);
      const back = connect((secure.address() as AddressInfo).port, "127.0.0.1");
      client
        .on("error", () => {})
        .pipe(back)
        .on("error", () => {})
        .pipe(client, { end: false });
      client.on("close", () => back.destroy());
    });
    await once(front.listen(0, "127.0.0.1"), "listening");
    const error = await errorOf(sends(`https://localhost:${(front.address() as AddressInfo).port}`));
    setDefaultCACertificates(authorities);
    for (const client of clients) client.destroy();
    await Promise.all([secure, front].map((server) => new Promise((closed) => server.close(closed))));
    expect(error).toMatchObject({ code: "unreachable", outcome: "unknown" });
    expect(error.message).toContain("does not speak TLS");
  });

  test("has an unknown outcome where it is interrupted while it waits for the answer", async () => {
    const caller = new AbortController();
    const sending = errorOf(sends(address(), caller.signal));
    await until("it is sent", () => keys.length === 1);
    caller.abort();
    expect(await sending).toMatchObject({ code: "aborted", outcome: "unknown" });
  });

  test.each<[string, string, Answering[]]>([
    ["the relay refuses it for the moment", "rate_limited", [refusal(429, "rate_limited")]],
    ["what came to the relay twice is refused for good", "invalid_api_key", [cutOff, refusal(401, "invalid_api_key")]],
    ["an edge lets nobody in", "unreachable", [edge(403), edge(403)]],
  ])("is refused where %s", async (_, code, given) => {
    setTime(EDGE, "outlastedMs", 0);
    answers = [...given];
    const error = await errorOf(sends(address()));
    expect(error).toMatchObject({ code, outcome: "refused" });
    // It may not be what was meant.
    expect(error.hint.includes("RELAY_API_KEY")).toBe(code === "invalid_api_key");
  });

  test("is refused where no connection came about", async () => {
    expect(await errorOf(sends(await nowhere()))).toMatchObject({ code: "unreachable", outcome: "refused" });
  });

  test("outlasts an edge whose relay is away for a moment, with one Idempotency-Key, and no wrong address", async () => {
    answers = [edge(503), edge(403), edge(502), accepted];
    expect(await sends(address())).toMatchObject({ envelope_id: "e-1" });
    expect(keys).toEqual(Array(4).fill(keys[0]));
    answers = [edge(404), edge(404), accepted];
    expect(await errorOf(sends(address()))).toMatchObject({ code: "unreachable", retry: "fix" });
  });

  test("is accepted once where the first answer was lost: the second request has its Idempotency-Key", async () => {
    answers = [cutOff, accepted];
    expect(await sends(address())).toMatchObject({ envelope_id: "e-1" });
    expect(keys).toEqual([expect.any(String), keys[0]]);
  });
});

/** Bob's program replies to every message. */
const bobReplies = () => line.listen("bob-hmac", "--reply", "--exec", 'echo "{\\"to\\":\\"$RELAY_FROM\\"}"');

test("relay ask prints the payload of the reply, and with --json who vouches for it", async () => {
  await bobReplies();
  const { code, stdout, stderr } = await line.run(["ask", ...as("alice"), BOB, HELLO]);
  expect([code, jsonLines(stdout), stderr]).toEqual([0, [{ to: "agent://alice" }], ""]);
  const json = await line.run(["ask", "--json", ...as("alice"), "bob-hmac", "--type", "message.note"], {
    stdin: HELLO,
  });
  expect(jsonLines(json.stdout)).toMatchObject([
    { ok: true, via: "connection", verified: "unverified", envelope: { from: BOB, payload: { to: "agent://alice" } } },
  ]);
});

test("relay ask goes through the relay listen of its agent, which prints everything but the reply", async () => {
  await bobReplies();
  const listener = await line.listen("alice");
  const { code, stdout } = await line.run(["ask", "--json", ...as("alice"), BOB, HELLO]);
  expect([code, jsonLines(stdout)]).toMatchObject([0, [{ via: "listener", envelope: { type: "message.reply" } }]]);
  await line.run(["send", ...as("alice"), BOB, HELLO]);
  await listener.prints(1);
  expect(listener.lines).toHaveLength(1);
});

test("relay ask ends with 5 when there is no reply in time, and at once when nobody received it", async () => {
  const bob = await line.stage.online("bob-hmac", line.url);
  const ask = (to: string, ...more: string[]) => line.run(["ask", "--json", ...as("alice"), to, HELLO, ...more]);
  const waits = new Waits();
  const asking = ask(BOB, "--timeout", "3000");
  expect(await next(bob)).toMatchObject({ payload: { message: "Hello, Bob." } });
  await waits.begun(2_900_000, 2_999_999);
  waits.endBetween(2_900_000, 3_000_000);
  const late = await asking;
  expect([late.code, late.stdout, jsonLines(late.stderr).at(-1)]).toMatchObject([5, "", { code: "timeout" }]);
  const nobody = await ask("agent://nobody");
  expect([nobody.code, jsonLines(nobody.stderr)]).toMatchObject([5, [{ code: "target_not_online", retry: "later" }]]);
  for (const more of [["--timeout", "0"], ["--timeout", "soon"], ["word"]])
    expect((await ask(BOB, ...more)).code).toBe(2);
});

test("what relay ask waited for when it was interrupted is printed by its relay listen", async () => {
  const bob = await line.stage.online("bob-hmac", line.url);
  const listener = await line.listen("alice");
  const asking = line.begin(["ask", ...as("alice"), BOB, HELLO]);
  const question = await next(bob);
  expect(await asking.stop()).toBe(130);
  await until("the question is over", async () => {
    await question.reply({ late: true });
    return listener.lines.length > 0;
  });
  expect(listener.lines[0]).toMatchObject({ event: "delivery", envelope: { payload: { late: true } } });
});

test("a program in any language asks by a line, and is answered by the reply", async () => {
  await bobReplies();
  const listener = await line.listen("alice", "--stdin");
  const ask = (request: object) => listener.stdin.write(`${JSON.stringify(request)}\n`);
  ask({ to: BOB, ask: { n: 1 }, timeout_ms: 20_000, ref: "a" });
  await listener.prints(1);
  expect(listener.lines[0]).toMatchObject({
    event: "reply",
    ref: "a",
    verified: "unverified",
    envelope: { from: BOB },
  });
  ask({ to: "agent://nobody", ask: {} });
  await listener.prints(2);
  expect(listener.lines[1]).toMatchObject({ event: "refused", ref: 2, code: "target_not_online", outcome: "refused" });
  expect(listener.lines[1].hint).toMatch(/^(?!.*--).*wait_online_ms/);
  // A command that goes through it is told of its own option.
  const { code, stderr } = await line.run(["ask", ...as("alice"), "agent://nobody", HELLO, "--json"]);
  expect([code, jsonLines(stderr).at(-1)]).toMatchObject([5, { code: "target_not_online" }]);
  expect(jsonLines(stderr).at(-1).hint).toMatch(/^(?!.*wait_online_ms).*--wait-online/);
  for (const timeout_ms of ["soon", -5, 1e300]) ask({ to: BOB, ask: {}, timeout_ms });
  await listener.prints(5);
  const refused = listener.lines.slice(2).map(({ event, ref, code }) => ({ event, ref, code }));
  expect(refused).toEqual([3, 4, 5].map((ref) => ({ event: "refused", ref, code: "usage" })));
});

test("relay ask through a relay listen gets the reply that comes after a restart of the relay", async () => {
  const bob = await line.stage.online("bob-hmac", line.url);
  // He is told of each attempt to reconnect.
  bob.on("error", () => {});
  const listener = await line.listen("alice");
  const asking = line.begin(["ask", "--json", ...as("alice"), BOB, HELLO, "--timeout", "60"]);
  const question = await next(bob);
  await line.shut();
  await listener.reported("reconnecting");
  await line.serve();
  await untilState(bob, "online", 20_000);
  await question.reply({ celsius: 21 }, { waitOnline: 20_000 });
  const answer = { via: "listener", envelope: { payload: { celsius: 21 } } };
  expect([await asking.end(), asking.lines]).toMatchObject([0, [answer]]);
});
