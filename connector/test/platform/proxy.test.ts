import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket as TcpSocket } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { WebSocketServer } from "ws";
import { freePort } from "../../../test/support/free-port.ts";
import { until } from "../../../test/support/until.ts";
import type { RelayError } from "../../src/errors.ts";
import { HttpClient } from "../../src/http-client.ts";
import { Connector } from "../../src/index.ts";
import { HELLO_WITHIN_MS, ONLINE_LOOK, PROXY, RETRY_AFTER_CAP_MS } from "../../src/limits.ts";
import { type AttemptFailure, isRefusedByProxy, unreachable } from "../../src/network-errors.ts";
import { proxyFor, targetOf } from "../../src/platform/proxy.ts";
import { Socket } from "../../src/socket.ts";
import { errorOf, testAgent } from "../kit.ts";
import { OF_RELAY, SELF_SIGNED } from "../self-signed.ts";
import { LONG_MS, setTime, Waits } from "../times.ts";

type Environment = Record<string, string>;
const { named, goesWithout, goesThrough, refused, answers } = JSON.parse(
  await readFile(new URL("../../../connector-python/tests/proxies.json", import.meta.url), "utf8"),
) as {
  named: [url: string, Environment, proxy: string | null][];
  goesWithout: [url: string, noProxy: string][];
  goesThrough: [url: string, noProxy: string][];
  refused: string[];
  answers: [says: string, what: string, retry: string][];
};

describe("The proxy for an address", () => {
  const PROXY = "http://proxy.example:3128";
  const both = (NO_PROXY: string) => ({ HTTPS_PROXY: PROXY, HTTP_PROXY: PROXY, NO_PROXY });

  test.each(named)("%s with %j is %s", (url, environment, proxy) => {
    const found = proxyFor(targetOf(new URL(url)), environment);
    expect(found && `${found.url.hostname}:${found.url.port || 80}`).toBe(proxy ?? undefined);
  });

  test.each(goesWithout)("%s is none with NO_PROXY=%s", (url, noProxy) => {
    expect(proxyFor(targetOf(new URL(url)), both(noProxy))).toBeUndefined();
  });

  test.each(goesThrough)("%s is one with NO_PROXY=%s", (url, noProxy) => {
    expect(proxyFor(targetOf(new URL(url)), both(noProxy))).toBeDefined();
    expect(proxyFor(targetOf(new URL(url)), { HTTPS_PROXY: PROXY, no_proxy: noProxy })).toBeDefined();
  });

  test.each(refused)("is refused where it is %s, which nothing repeats", (value) => {
    const told = errorIn(() => proxyFor(targetOf(new URL("https://relay.example")), { HTTPS_PROXY: value }));
    expect(told).toMatchObject({
      networkError: { retry: "fix", hint: expect.stringContaining("NO_PROXY=relay.example") },
    });
    expect(JSON.stringify(told)).not.toContain("proxy.example");
  });
});

/** A name that no name server knows: only the proxy does. */
const RELAY = "relay.example";
const { HTTPS_PROXY, HTTP_PROXY, NO_PROXY, https_proxy, http_proxy, no_proxy, ...rest } = process.env;
const servers: { close(): unknown; closeAllConnections?(): void }[] = [];
const sockets = new Set<TcpSocket>();
let asked: IncomingMessage[];
/** The port at which the host of every address is. */
let relayPort: number;

beforeEach(() => {
  asked = [];
  process.env = { ...rest };
});
afterEach(() => {
  process.env = { ...rest };
  jest.restoreAllMocks();
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  for (const server of servers.splice(0)) {
    server.closeAllConnections?.();
    server.close();
  }
});

/** @returns the port. */
async function listening(server: Server | ReturnType<typeof createTcpServer>): Promise<number> {
  servers.push(server);
  server.on("connection", (socket: TcpSocket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return (server.address() as AddressInfo).port;
}

/** A proxy that leads to the relay, or answers with this status. @returns its port. */
async function proxy(status = 200): Promise<number> {
  const server = createServer((request, answer) => {
    asked.push(request);
    answer.writeHead(400).end();
  });
  server.on("connect", (request: IncomingMessage, client: TcpSocket) => {
    asked.push(request);
    if (status !== 200) return void client.end(`HTTP/1.1 ${status} Any\r\ncontent-length: 2\r\n\r\nno`);
    const relay = connect(relayPort, "127.0.0.1", () => {
      client.write("HTTP/1.1 200 Any\r\n\r\n");
      relay.pipe(client).pipe(relay);
    });
    relay.on("error", () => client.destroy());
    client.on("error", () => relay.destroy());
  });
  return await listening(server);
}

/** A relay that says hello to websockets, and "here" over HTTP. */
async function relay(certificate?: typeof OF_RELAY): Promise<void> {
  const server = certificate ? createTlsServer(certificate) : createServer();
  server.on("request", ({ headers }, answer) => answer.end(`here, at ${headers.host}`));
  const websockets = new WebSocketServer({ server: server as Server });
  websockets.on("connection", (client) => client.send('{"frame":"hello"}'));
  relayPort = await listening(server as Server);
}

const BOUNDS = { timeoutMs: 20_000, maxBytes: 1000 };
const ask = (base: string, usesProxy = true) =>
  new HttpClient(base, usesProxy).ask("/x", BOUNDS, new AbortController().signal);

/** What comes first: a frame of the websocket, or why there is none. */
async function dial(url: string, usesProxy = true): Promise<string | AttemptFailure | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | AttemptFailure | undefined>();
  const events = {
    frame: ({ frame }: { frame: string }) => resolve(frame),
    closed: (_: number, why?: AttemptFailure) => resolve(why),
  };
  const socket = new Socket(url, usesProxy, events);
  socket.open();
  const first = await promise;
  await socket.close();
  return first;
}

describe("Through a proxy", () => {
  test("go websocket and look-ups, each with one CONNECT", async () => {
    await relay();
    process.env.HTTP_PROXY = `http://127.0.0.1:${await proxy()}`;
    expect(await dial(`ws://${RELAY}/ws`)).toBe("hello");
    expect(await ask(`http://${RELAY}:81`)).toMatchObject({ status: 200, text: `here, at ${RELAY}:81` });
    expect(asked.map(({ method, url }) => [method, url])).toEqual([
      ["CONNECT", `${RELAY}:80`],
      ["CONNECT", `${RELAY}:81`],
    ]);
  });

  test.each([RELAY, "10.9.8.7"])("TLS is the own one of %s: the proxy sees host and port", async (host) => {
    await relay(OF_RELAY);
    const trusted = getCACertificates();
    setDefaultCACertificates([OF_RELAY.cert, SELF_SIGNED.cert]);
    try {
      process.env.https_proxy = `127.0.0.1:${await proxy()}`;
      expect(await dial(`wss://${host}/ws`)).toBe("hello");
      expect(await ask(`https://${host}`)).toMatchObject({ status: 200, text: `here, at ${host}` });
      expect(asked.map(({ url }) => url)).toEqual([`${host}:443`, `${host}:443`]);
      // A certificate that is for localhost, as which the proxy is reached.
      await relay(SELF_SIGNED);
      expect(await dial(`wss://${host}/ws`)).toMatchObject({ code: "ERR_TLS_CERT_ALTNAME_INVALID" });
      await expect(ask(`https://${host}`)).rejects.toMatchObject({ code: "ERR_TLS_CERT_ALTNAME_INVALID" });
    } finally {
      setDefaultCACertificates(trusted);
    }
  });

  test.each([
    ["us%40er:p%3Ass", "us@er:p:ss"],
    ["caf%E9:p%FF", "caf\xe9:p\xff"],
    ["100%:%zz", "100%:%zz"],
    [":", ""],
  ])("goes the password that its address has, which is decoded byte by byte: %s", async (given, decoded) => {
    await relay();
    process.env.HTTP_PROXY = `http://${given}@127.0.0.1:${await proxy()}`;
    await ask(`http://${RELAY}`);
    const [, pair = ""] = asked[0]?.headers["proxy-authorization"]?.split(" ") ?? [];
    expect(Buffer.from(pair, "base64").toString("latin1")).toBe(decoded);
  });

  test("comes what follows its answer from the relay, though other answers come before that", async () => {
    const says = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Any\n\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhere";
    const port = await listening(createTcpServer((socket) => void socket.once("data", () => socket.write(says))));
    process.env.HTTP_PROXY = `http://127.0.0.1:${port}`;
    expect(await ask(`http://${RELAY}`)).toMatchObject({ status: 200, text: "here" });
  });

  test("goes nothing where the option says so", async () => {
    process.env.HTTP_PROXY = `http://127.0.0.1:${await proxy()}`;
    const unknown = { code: expect.stringMatching(/^(?:ENOTFOUND|EAI_AGAIN)$/) };
    expect(await dial("ws://relay.invalid/ws", false)).toMatchObject(unknown);
    await expect(ask("http://relay.invalid", false)).rejects.toMatchObject(unknown);
    const { agent, key } = testAgent("alice");
    const connector = new Connector({ url: "http://relay.invalid", agent, key, proxy: false });
    await expect(connector.checkOnline(agent)).rejects.toMatchObject({ cause: unknown });
    expect(asked).toEqual([]);
  });
});

/** What exceeds the bound of an answer. */
const ENDLESS: typeof answers = [
  ["HTTP/1.1 403 No\r\nx: ".padEnd(PROXY.maxBytes + 1), "answered with 403", "fix"],
  ["HTTP/1.1 200 OK\r\nx: ".padEnd(PROXY.maxBytes + 1), "does not speak HTTP", "fix"],
  ["HTTP/1.1 100 Continue\r\n\r\n".repeat(PROXY.maxBytes / 20), "does not speak HTTP", "fix"],
];

describe("A proxy that makes no connection is named", () => {
  async function toldOfLookUp(): Promise<RelayError> {
    const { agent, key } = testAgent("alice");
    return await errorOf(new Connector({ url: `http://${RELAY}`, agent, key }).checkOnline(agent));
  }

  /** The error of a websocket and of a look-up, which say the same. */
  async function told(): Promise<RelayError> {
    const look = await toldOfLookUp();
    const dialled = unreachable(`ws://${RELAY}`, (await dial(`ws://${RELAY}/ws`)) as AttemptFailure);
    expect([look.code, look.hint, look.retry]).toEqual(["unreachable", dialled.hint, dialled.retry]);
    expect(look.retryAfterMs).toBe(dialled.retryAfterMs);
    expect(look.message.split(": ").slice(1)).toEqual(dialled.message.split(": ").slice(1));
    return dialled;
  }

  test.each([
    [407, "fix", "does not take the user and the password of HTTP_PROXY"],
    [403, "fix", "ask who runs it"],
    [502, "later", "does not reach the relay"],
  ])("when it answers with %d: %s", async (status, retry, hint) => {
    const port = await proxy(status);
    process.env.HTTP_PROXY = `http://user:secret@127.0.0.1:${port}`;
    const error = await told();
    expect(error).toMatchObject({ retry, hint: expect.stringContaining(hint) });
    expect(error.message).toContain(`the proxy http://127.0.0.1:${port} of HTTP_PROXY answered with ${status}.`);
    expect(`${error.message} ${error.hint}`).not.toContain("secret");
    expect(asked).toHaveLength(2);
  });

  test("when it wants a password that it was not given", async () => {
    process.env.HTTP_PROXY = `http://127.0.0.1:${await proxy(407)}`;
    expect((await told()).hint).toContain("HTTP_PROXY=http://user:password@host:port");
  });

  test("and outlasted by a start without end, though by no other", async () => {
    process.env.HTTP_PROXY = `http://127.0.0.1:${await proxy(403)}`;
    const { agent, key } = testAgent("alice");
    const made = (startTimeoutMs?: number) => {
      const connector = new Connector({ url: `http://${RELAY}`, agent, key, startTimeoutMs });
      const errors: RelayError[] = [];
      connector.on("error", (error) => errors.push(error));
      return { connector, errors };
    };
    await expect(made().connector.start()).rejects.toMatchObject({ code: "unreachable", retry: "fix" });
    const { connector, errors } = made(Infinity);
    const started = errorOf(connector.start());
    await until("two attempts failed", () => errors.length > 1);
    await connector.close();
    expect((await started).code).toBe("closed");
  });

  test("when nothing listens there", async () => {
    process.env.http_proxy = `http://127.0.0.1:${await freePort()}`;
    const { message, hint, retry } = await told();
    expect([message, hint, retry]).toEqual([
      expect.stringMatching(/of http_proxy is not reachable: connection refused\.$/),
      expect.stringContaining(`name ${RELAY} in NO_PROXY`),
      "later",
    ]);
  });

  /** Says this to whoever asks. */
  async function saying(answer: string, ends = false): Promise<void> {
    const server = createTcpServer((socket) =>
      socket.once("data", () => (ends ? socket.end(answer) : socket.write(answer))),
    );
    process.env.HTTP_PROXY = `http://127.0.0.1:${await listening(server)}`;
  }

  test.each(["", "HTT", "HTTP/1.1 200 OK\r\nvia: a\r\n", "HTTP/1.1 100 Continue\r\n\r\n"])(
    "when it says %j and ends the connection",
    async (says) => {
      await saying(says, true);
      const { message, retry } = await told();
      expect([message, retry]).toEqual([expect.stringMatching(/of HTTP_PROXY ended the connection\.$/), "later"]);
    },
  );

  const rows = [...answers, ...ENDLESS].map((row) => [row[0].slice(0, 40), ...row] as const);
  test.each(rows)("when it says %j and nothing more", async (_, says, what, retry) => {
    setTime(ONLINE_LOOK.answer, "timeoutMs", LONG_MS);
    setTime(PROXY, "headersWithinMs", 0);
    await saying(says);
    const error = await toldOfLookUp();
    expect([error.message, error.retry]).toEqual([expect.stringContaining(`of HTTP_PROXY ${what}.`), retry]);
  });

  test("also if it ends the connection within the headers of its refusal", async () => {
    await saying("HTTP/1.1 403 No\r\nx", true);
    expect((await told()).message).toContain("answered with 403");
  });

  test("and left alone for as long as it asks, for a minute at most", async () => {
    await saying("HTTP/1.1 503 No\r\nvia: a\r\nRetry-After: \t7 \r\n\r\n");
    expect(await told()).toMatchObject({ retry: "later", retryAfterMs: 7000, hint: expect.stringContaining("in 7 s") });
    const { agent, key } = testAgent("alice");
    await using alice = new Connector({ url: `http://${RELAY}`, agent, key });
    alice.on("error", () => {});
    void errorOf(alice.start());
    await until("an attempt has failed", () => alice.state.status === "reconnecting");
    expect((alice.state as { retryInMs: number }).retryInMs).toBeGreaterThanOrEqual(7000);
    await saying(`HTTP/1.1 429 No\r\nretry-after:${"9".repeat(400)}\r\n\r\n`);
    expect(await told()).toMatchObject({ retryAfterMs: RETRY_AFTER_CAP_MS });
  });

  test("when it answers nothing for as long as the attempt may take", async () => {
    const waits = new Waits();
    setTime(ONLINE_LOOK.answer, "timeoutMs", 20);
    process.env.HTTP_PROXY = `http://127.0.0.1:${await listening(createTcpServer())}`;
    const { agent, key } = testAgent("alice");
    await using alice = new Connector({ url: `http://${RELAY}`, agent, key });
    const failed = new Promise<RelayError>((resolve) => alice.on("error", resolve));
    void errorOf(alice.start());
    await waits.end(HELLO_WITHIN_MS);
    for (const { message, retry } of [await failed, await toldOfLookUp()])
      expect([message, retry]).toEqual([expect.stringMatching(/of HTTP_PROXY does not answer\.$/), "later"]);
  });

  test("but not for a relay behind it that says nothing", async () => {
    relayPort = await listening(createTcpServer());
    setTime(ONLINE_LOOK.answer, "timeoutMs", 200);
    const connected = once(servers.at(-1) as Server, "connection");
    process.env.HTTP_PROXY = `http://127.0.0.1:${await proxy()}`;
    const socket = new Socket(`ws://${RELAY}/ws`, true, { frame: () => {}, closed: () => {} });
    socket.open();
    await connected;
    await until("the tunnel is open", () => socket.silence === undefined);
    expect((await toldOfLookUp()).message).toContain("the host does not answer");
    await socket.close();
  });

  test.each([
    ["https", "TLS", "HTTP/1.1 200 OK\r\n\r\n"],
    ["http", "HTTP", "<!doctype html>\r\n"],
  ])("when it opens a connection to %s and shows a page in it", async (scheme, unspoken, page) => {
    const portal = createTcpServer((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        socket.once("data", () => socket.end(`${page}<html>Log in</html>`));
      });
    });
    process.env[`${scheme}_proxy`] = `http://127.0.0.1:${await listening(portal)}`;
    const { agent, key } = testAgent("alice");
    const websocket = `${scheme.replace("http", "ws")}://${RELAY}`;
    const look = await errorOf(new Connector({ url: `${scheme}://${RELAY}`, agent, key }).checkOnline(agent));
    const dialled = unreachable(websocket, (await dial(`${websocket}/ws`)) as AttemptFailure);
    for (const error of [look, dialled]) {
      expect(error.message).toMatch(`of ${scheme}_proxy leads to something that does not speak ${unspoken}.`);
      expect([error.hint, error.retry]).toEqual([expect.stringContaining("such as a login"), "fix"]);
      expect(isRefusedByProxy(error)).toBe(true);
    }
  });

  test("when it speaks SOCKS", async () => {
    process.env.HTTP_PROXY = "socks5://user:secret@127.0.0.1:1080";
    const error = await told();
    expect(error.message).toContain("HTTP_PROXY names no proxy");
    expect(error.hint).toContain("SOCKS");
  });
});

test("A silent proxy holds up no program that closes its connector", async () => {
  const heard = Promise.withResolvers<TcpSocket>();
  const port = await listening(createTcpServer((socket) => heard.resolve(socket)));
  process.env.HTTP_PROXY = `http://127.0.0.1:${port}`;
  const { agent, key } = testAgent("alice");
  const connector = new Connector({ url: `http://${RELAY}`, agent, key });
  connector.on("error", () => {});
  const started = errorOf(connector.start());
  const gone = once(await heard.promise, "close");
  (await heard.promise).resume();
  await connector.close();
  expect((await started).code).toBe("closed");
  await gone;
});

function errorIn(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    return error;
  }
}
