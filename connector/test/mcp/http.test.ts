import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { stat, symlink } from "node:fs/promises";
import { type ClientRequest, type IncomingMessage, type RequestOptions, request, type Server } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { shared } from "../fixture.ts";
import { jsonLines, next } from "../kit.ts";
import { type Host, type HttpAccess, McpStage } from "./kit.ts";

const [ALICE, BOB] = ["agent://alice", "agent://bob"];
const MAX_SESSIONS = 16;
const JSON_HEADERS = { accept: "application/json, text/event-stream", "content-type": "application/json" };
const bearer = ({ token }: HttpAccess) => ({ authorization: `Bearer ${token}` });

const stage = shared(new McpStage("alice", "bob"));

const INITIALIZE = {
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};

/** A bare connection. Nobody minds its errors. */
function dial({ url }: Pick<HttpAccess, "url">): Socket {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname).on("error", () => {});
}

async function closeOf(socket: Socket): Promise<void> {
  await new Promise((closed) => socket.once("close", closed));
}

/** What the server has of a connection. */
interface ServerSide {
  readonly socket: Socket;
  readonly server: Server;
}

const REQUESTS = "http.server.request.start";

/** Resolves when the server has read the head of the next request of the connection. */
async function serverSideOf(client: Socket): Promise<ServerSide> {
  const { promise, resolve } = Promise.withResolvers<ServerSide>();
  const begun = (request: unknown) => {
    const side = request as ServerSide;
    if (side.socket.remotePort === client.localPort) resolve(side);
  };
  subscribe(REQUESTS, begun);
  return await promise.finally(() => unsubscribe(REQUESTS, begun));
}

interface Posted {
  readonly sent: ClientRequest;
  readonly answer: Promise<IncomingMessage>;
}

/** A bare request, whose headers a browser would not let anybody choose, over a connection of its own. */
function rawPost(
  { url, token }: HttpAccess,
  body: unknown,
  headers: object = {},
  path = "/mcp",
  over: RequestOptions = { agent: false },
): Posted {
  const accept = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  const given = { ...accept, authorization: `Bearer ${token}`, ...headers };
  const sent = request(new URL(path, url), { method: "POST", headers: given, ...over });
  sent.on("error", () => {}).end(JSON.stringify(body));
  return { sent, answer: once(sent, "response").then(([answer]) => answer as IncomingMessage) };
}

async function bodyOf(answer: IncomingMessage): Promise<string> {
  return (await answer.toArray()).join("");
}

/** An initialized session, without the SDK's client. */
interface RawSession {
  readonly access: HttpAccess;
  readonly id: string;
  readonly headers: object;
  nextId: number;
}

async function beginRaw(access: HttpAccess): Promise<RawSession> {
  const answer = await rawPost(access, { jsonrpc: "2.0", id: 0, ...INITIALIZE }).answer;
  await bodyOf(answer);
  const id = String(answer.headers["mcp-session-id"]);
  return { access, id, headers: { "mcp-session-id": id }, nextId: 1 };
}

interface RawCall {
  readonly id: number;
  readonly socket: Socket;
  /** The whole answer, once its stream has ended. */
  body(): Promise<string>;
  /** Resolves when the connection has ended at both sides. */
  gone(): Promise<void>;
}

/** Calls a tool; resolves when the server has begun to answer: it has read the call. */
async function callTool(session: RawSession, name: string, input: object, id = session.nextId++): Promise<RawCall> {
  const message = { jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: input } };
  const { sent, answer } = rawPost(session.access, message, session.headers);
  const socket = await new Promise<Socket>((resolve) => sent.once("socket", resolve));
  const { socket: server } = await serverSideOf(socket);
  const gone = Promise.all([socket, server].map(closeOf));
  const stream = await answer;
  return { id, socket, body: () => bodyOf(stream), gone: async () => void (await gone) };
}

/** Resolves when the server has read it. */
async function cancel({ access, headers }: RawSession, requestId: number): Promise<void> {
  const message = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } };
  await bodyOf(await rawPost(access, message, headers).answer);
}

/** A bare request, whose Host a browser would not let anybody choose. */
async function post(access: HttpAccess, message: object, headers?: object, path?: string, over?: RequestOptions) {
  const answer = await rawPost(access, { jsonrpc: "2.0", id: 1, ...message }, headers, path, over).answer;
  await bodyOf(answer);
  return { status: answer.statusCode, session: answer.headers["mcp-session-id"] as string | undefined };
}

describe("Models over HTTP", () => {
  test("ask a model over stdio, and reply to it", async () => {
    const alice = await stage.httpHost(await stage.httpServer("alice"));
    const bob = await stage.onlineHost("bob", stage.url);
    await alice.untilConnection("online");

    for (const [asking, answering, to] of [
      [alice, bob, BOB],
      [bob, alice, ALICE],
    ] as const) {
      const asked = asking.call("ask_agent", { to, message: "How warm is it?" });
      const [{ from, envelope_id }] = (await answering.call("wait_for_messages")).messages;
      await answering.call("reply_to", { to: from, envelope_id, payload: { celsius: 21.5 } });
      expect(await asked).toMatchObject({ reply: { from: to, payload: { celsius: 21.5 } } });
    }
  });

  test("share the messages of one agent, and its next client gets what came meanwhile", async () => {
    const server = await stage.httpServer("alice");
    const [first, second] = [await stage.httpHost(server), await stage.httpHost(server)];
    const bob = await stage.online("bob", stage.url);
    await first.untilConnection("online");
    await bob.send(ALICE, { n: 1 });
    expect((await first.call("wait_for_messages")).messages).toMatchObject([{ payload: { n: 1 } }]);
    expect((await second.call("wait_for_messages", { timeout_seconds: 0 })).messages).toEqual([]);
    await Promise.all([first.stop(), second.stop()]);
    await bob.send(ALICE, { n: 2 });
    const third = await stage.httpHost(server);
    expect((await third.call("wait_for_messages")).messages).toMatchObject([{ payload: { n: 2 } }]);
  });
});

describe("The HTTP server", () => {
  test("refuses whoever has not its token, which it made for its user alone and keeps", async () => {
    const server = await stage.httpServer("alice");
    for (const authorization of ["", "Bearer ", "Bearer wrong", `Basic ${server.token}`, `Bearer ${server.token}x`]) {
      expect((await post(server, INITIALIZE, { authorization })).status).toBe(401);
    }
    expect((await post(server, INITIALIZE)).status).toBe(200);
    expect((await stat(server.tokenFile)).mode & 0o777).toBe(0o600);
    expect(await server.stop()).toBe(0);
    expect((await stage.httpServer("alice")).token).toBe(server.token);
  });

  test("makes no token where a link is in its place, and says so", async () => {
    const link = `${await stage.write("beside.json", {})}.link`;
    await symlink("nowhere", link);
    const server = await stage.begin("alice", stage.url, ["--http", "127.0.0.1:0", "--token-file", link]);
    expect(await server.end()).toBe(2);
    expect(jsonLines(server.stderr).at(-1)).toMatchObject({ code: "usage", message: expect.stringContaining("link") });
  });

  test("refuses names that are not this machine's, as a page after DNS rebinding sends them, and foreign pages", async () => {
    const server = await stage.httpServer("alice");
    for (const headers of [
      { host: "evil.example" },
      { host: "127.0.0.1.evil.example" },
      { host: "evil.example@localhost" },
      { host: "localhost/evil.example" },
      { host: "localhost:80:80" },
      { host: "127.1" },
      { origin: "https://evil.example" },
      { origin: "https://evil.example@localhost" },
      { origin: "http://localhost/page" },
      { origin: "extension://localhost" },
      { origin: "null" },
    ]) {
      expect((await post(server, INITIALIZE, headers)).status).toBe(403);
    }
    expect((await post(server, INITIALIZE, { host: "localhost:7300", origin: "http://localhost:6274" })).status).toBe(
      200,
    );
    expect((await post(server, INITIALIZE, {}, "/")).status).toBe(404);
  });

  test("listens for other machines only where it is told what they call it", async () => {
    const open = await stage.begin("alice", stage.url, ["--http", "0.0.0.0:0"]);
    expect(await open.end()).toBe(2);
    const server = await stage.httpServer("alice", ["--http-name", "relay-mcp.example"]);
    expect((await post(server, INITIALIZE, { host: "relay-mcp.example:443" })).status).toBe(200);
    expect((await post(server, INITIALIZE, { host: "other.example" })).status).toBe(403);
  });

  test("answers 300 calls that its user begins at once, each over a connection of its own", async () => {
    const server = await stage.httpServer("alice");
    const { session } = await post(server, INITIALIZE);
    const connections = Array.from({ length: 300 }, () => dial(server));
    await Promise.all(connections.map((connection) => once(connection, "connect")));
    // The server accepts in order: all of them before this one.
    await post(server, { method: "ping" }, { "mcp-session-id": session });
    const calls = connections.map((connection, id) => {
      const over = { createConnection: () => connection };
      return post(server, { method: "ping", id: id + 2 }, { "mcp-session-id": session }, "/mcp", over);
    });
    expect(new Set((await Promise.all(calls)).map(({ status }) => status))).toEqual(new Set([200]));
  });

  test("ends the session that was longest unused when there are too many, and knows no other", async () => {
    const server = await stage.httpServer("alice");
    const begin = async () => (await post(server, INITIALIZE)).session as string;
    const ping = async (session: string) =>
      (await post(server, { method: "ping" }, { "mcp-session-id": session })).status;
    const [first, second] = [await begin(), await begin()];
    while (expect.getState().assertionCalls < MAX_SESSIONS - 2) expect(await begin()).toEqual(expect.any(String));
    expect(await ping(first)).toBe(200);
    await begin();
    expect([await ping(first), await ping(second), await ping("unknown")]).toEqual([200, 404, 404]);
    expect((await post(server, { method: "ping" })).status).toBe(400);
  });

  test("ends no session with an open call: beyond those it has no room, until one ends", async () => {
    const server = await stage.httpServer("alice");
    const sessions = await Promise.all(Array.from({ length: MAX_SESSIONS }, () => beginRaw(server)));
    const calls = await Promise.all(
      sessions.map((session) => callTool(session, "wait_for_messages", { timeout_seconds: 50 })),
    );
    expect((await post(server, INITIALIZE)).status).toBe(503);
    await cancel(sessions[0] as RawSession, (calls[0] as RawCall).id);
    await (calls[0] as RawCall).body();
    expect((await post(server, INITIALIZE)).status).toBe(200);
    for (const { socket } of calls) socket.destroy();
  });

  test("refuses a call with the id of another that is open, which is answered", async () => {
    const server = await stage.httpServer("alice");
    const session = await beginRaw(server);
    const open = await callTool(session, "wait_for_messages", { timeout_seconds: 50 });
    const ping = { method: "ping", id: open.id };
    const headers = { "mcp-session-id": session.id };
    expect((await post(server, ping, headers)).status).toBe(400);
    await (await stage.online("bob", stage.url)).send(ALICE, {}, { waitOnline: 12_000 });
    expect(await open.body()).toContain('"result"');
    expect((await post(server, ping, headers)).status).toBe(200);
  });

  test("takes a body of JSON that is one message at least, neither packed nor too large", async () => {
    const server = await stage.httpServer("alice");
    for (const [body, headers, status] of [
      ["[]", {}, 400],
      ["no JSON", {}, 400],
      [JSON.stringify({ jsonrpc: "2.0", id: 1, ...INITIALIZE }), { "content-encoding": "gzip" }, 415],
    ] as const) {
      const answer = await fetch(server.url, {
        method: "POST",
        body,
        headers: { ...JSON_HEADERS, ...headers, ...bearer(server) },
      });
      expect(answer.status).toBe(status);
    }
  });

  test("tells a client that its body is too large, also one that first writes all of it, and keeps the connection", async () => {
    const server = await stage.httpServer("alice");
    const client = dial(server);
    let heard = "";
    client.on("data", (chunk) => (heard += String(chunk)));
    const head = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.token}\r\n`;
    const body = "x".repeat(4_000_000);
    await new Promise((written) => client.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`, written));
    client.write(`${head}Content-Length: 2\r\n\r\n[]`);
    await until("both are answered", () => heard.split("HTTP/1.1 ").length === 3);
    expect(heard.match(/(?<=HTTP\/1.1 )\d+/g)).toEqual(["413", "400"]);
    client.destroy();
  });

  test("lets a page of this machine read its answers, and no other page", async () => {
    const server = await stage.httpServer("alice");
    const preflight = (origin: string) => fetch(server.url, { method: "OPTIONS", headers: { origin } });
    const ours = await preflight("http://localhost:3000");
    expect([ours.status, ours.headers.get("access-control-allow-origin")]).toEqual([204, "http://localhost:3000"]);
    expect(ours.headers.get("access-control-allow-headers")).toContain("authorization");
    const foreign = await preflight("https://evil.example");
    expect([foreign.status, foreign.headers.get("access-control-allow-origin")]).toEqual([403, null]);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, ...INITIALIZE });
    const headers = { ...JSON_HEADERS, origin: "http://localhost:3000", ...bearer(server) };
    const begun = await fetch(server.url, { method: "POST", body, headers });
    expect(begun.headers.get("access-control-allow-origin")).toBe("http://localhost:3000");
    expect(begun.headers.get("access-control-expose-headers")).toContain("mcp-session-id");
    await begun.body?.cancel();
  });

  test("ends with 0 when it is stopped while a call waits, and the agent is no longer online", async () => {
    const server = await stage.httpServer("alice");
    const alice = await stage.httpHost(server);
    await alice.untilConnection("online");
    const waiting = alice.call("wait_for_messages", { timeout_seconds: 50 }).catch(() => "ended");
    await alice.untilRead();
    expect(await server.stop()).toBe(0);
    await stage.untilGone(ALICE);
    await alice.stop();
    expect(await waiting).toBe("ended");
  });
});

describe("Over HTTP a message", () => {
  /** A server of alice, a session of it over bare sockets, and another client. */
  async function served(): Promise<{ raw: RawSession; other: Host }> {
    const server = await stage.httpServer("alice");
    const other = await stage.httpHost(server);
    await other.untilConnection("online");
    return { raw: await beginRaw(server), other };
  }

  const payloads = async (host: Host) =>
    (await host.call("wait_for_messages", { timeout_seconds: 0, max: 50 })).messages.map(
      ({ payload }: { payload: object }) => payload,
    );

  const ENDS: [string, (socket: Socket) => unknown][] = [
    ["is reset", (socket) => socket.resetAndDestroy()],
    ["is destroyed", (socket) => socket.destroy()],
    ["is half closed", (socket) => socket.end()],
  ];

  test.each(ENDS)(
    "that comes after the connection of a client that waited %s is for the next client",
    async (_, end) => {
      const { raw, other } = await served();
      const bob = await stage.online("bob", stage.url);
      const waiting = await callTool(raw, "wait_for_messages", { timeout_seconds: 50 });
      end(waiting.socket);
      await waiting.gone();
      for (const n of [1, 2, 3]) await bob.send(ALICE, { n });
      await until("they wait", async () => (await other.call("my_status")).waiting === 3);
      expect(await payloads(other)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    },
  );

  test("that a cancelled call no longer waits for is for the next one; stream and connection of the cancelled call have ended", async () => {
    const { raw, other } = await served();
    const bob = await stage.online("bob", stage.url);
    const waiting = await callTool(raw, "wait_for_messages", { timeout_seconds: 50 });
    await cancel(raw, waiting.id);
    expect(await waiting.body()).not.toContain('"jsonrpc"');
    await waiting.gone();
    await bob.send(ALICE, { n: 1 });
    expect((await other.call("wait_for_messages")).messages).toMatchObject([{ payload: { n: 1 } }]);
  });

  test("whose call is cancelled while its answer is on the way comes again, before later ones", async () => {
    const { raw, other } = await served();
    const bob = await stage.online("bob", stage.url);
    for (const n of [1, 2, 3]) await bob.send(ALICE, { n });
    await until("they wait", async () => (await other.call("my_status")).waiting === 3);
    const answered = await callTool(raw, "wait_for_messages", { max: 2 });
    expect(await answered.body()).toContain('"result"');
    await cancel(raw, answered.id);
    expect(await payloads(other)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    await cancel(raw, answered.id);
    expect(await payloads(other)).toEqual([]);
  });

  test("that replies to a client that is gone is for the next one", async () => {
    const { raw, other } = await served();
    const bob = await stage.online("bob", stage.url);
    const asking = await callTool(raw, "ask_agent", { to: BOB, message: "How warm is it?", timeout_seconds: 50 });
    const question = await next(bob);
    asking.socket.destroy();
    await asking.gone();
    await question.reply({ celsius: 21.5 });
    const { messages } = await other.call("wait_for_messages");
    expect(messages).toMatchObject([{ type: "message.reply", payload: { celsius: 21.5 } }]);
  });

  test("is sent although the connection of whoever sent it ends: only a cancellation cancels", async () => {
    const { raw } = await served();
    const sending = await callTool(raw, "send_message", { to: BOB, message: "hi", wait_online_seconds: 20 });
    sending.socket.destroy();
    await sending.gone();
    expect(await next(await stage.online("bob", stage.url))).toMatchObject({ payload: { message: "hi" } });
  });
});

describe("Strangers of the HTTP server", () => {
  const HEAD = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";
  const WRONG_TOKEN = `${HEAD}Authorization: Bearer wrong\r\n`;
  /** What connections of strangers say, and then no more. */
  const SAID = [
    "",
    `${WRONG_TOKEN}X-More: 1\r\n`,
    `${WRONG_TOKEN}Content-Length: 100000\r\n\r\nx`,
    `${WRONG_TOKEN}Content-Length: 0\r\n\r\n`,
  ] as const;
  /** More than the server accepts at a time. */
  const MANY = 1100;
  /** The kernel keeps fewer than 512 for a server that has yet to accept them. */
  const AT_ONCE = 100;
  const MAX_STRANGERS = 512;

  const MAX_BODY_BYTES = 2 ** 18;
  const MAX_REFUSED_BYTES = 2 ** 24;
  /** What a socket reads at once, with room for the head. */
  const ONE_READ_BYTES = 2 ** 17;
  const MEBIBYTE = Buffer.alloc(2 ** 20, "x");

  const dialed: Socket[] = [];
  afterEach(() => {
    for (const socket of dialed.splice(0)) socket.destroy();
  });

  function stranger(server: HttpAccess): Socket {
    const socket = dial(server).resume();
    dialed.push(socket);
    return socket;
  }

  test("leave its user room, who is answered while strangers hold all connections that they get: silent, with headers or a body without an end, and with a wrong token", async () => {
    const server = await stage.httpServer("alice");
    const alice = await stage.httpHost(server);
    for (let n = 0; n < MANY; n += AT_ONCE) {
      const some = Array.from({ length: AT_ONCE }, () => stranger(server));
      await Promise.all(some.map((socket) => once(socket, "connect")));
      for (const [at, socket] of some.entries()) socket.write(SAID[at % SAID.length] as string);
    }
    expect((await post(server, INITIALIZE)).status).toBe(200);
    expect(await alice.call("my_status")).toMatchObject({ agent_id: "agent://alice" });
    await until("the others gave way", () => dialed.filter(({ closed }) => !closed).length <= MAX_STRANGERS);
  });

  test.each([
    ["of a stranger", "wrong", MAX_BODY_BYTES],
    ["of its user, once it is refused,", undefined, MAX_REFUSED_BYTES + MAX_BODY_BYTES],
  ])("get a body without an end %s read up to a bound, where its connection ends", async (_, given, maxBytes) => {
    const server = await stage.httpServer("alice");
    const client = stranger(server);
    const [side, closed] = [serverSideOf(client), closeOf(client)];
    client.write(`${HEAD}Authorization: Bearer ${given ?? server.token}\r\nContent-Length: ${2 ** 40}\r\n\r\n`);
    const more = () => {
      while (client.write(MEBIBYTE));
    };
    client.on("drain", more);
    more();
    const { socket } = await side;
    await closed;
    await until("it has ended there", () => socket.closed);
    expect(socket.bytesRead).toBeLessThan(maxBytes + ONE_READ_BYTES);
  });

  test("have 5 s for headers and 10 s for a request; then Node ends their connections: silent ones, too", async () => {
    const server = await stage.httpServer("alice");
    const asking = stranger(server);
    asking.write(`${WRONG_TOKEN}Content-Length: 0\r\n\r\n`);
    const { server: http } = await serverSideOf(asking);
    expect([http.headersTimeout, http.requestTimeout]).toEqual([5000, 10_000]);

    const slow = SAID.slice(0, 3).map((said) => {
      const socket = stranger(server);
      socket.write(said);
      return closeOf(socket);
    });
    Object.assign(http, { headersTimeout: 1, requestTimeout: 1 });
    await Promise.all(slow);
  });
});
