import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type http from "node:http";
import net from "node:net";
import type { Duplex } from "node:stream";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import { until } from "../../../../test/support/until.ts";
import { type ConnectionBounds, connectionBounds, fitted } from "../../src/http/connections.ts";
import { HttpServer, type HttpServerOptions } from "../../src/http/server.ts";
import { createLogger } from "../../src/logging.ts";
import type { LimitName } from "../../src/metrics/catalogue.ts";
import { serverBelow } from "./server-kit.ts";

const REQUEST = "GET / HTTP/1.1\r\nHost: relay\r\n\r\n";
const UPGRADE = "GET /ws HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const NO_BOUNDS: ConnectionBounds = { plain: 0, plainPerAddress: 0, websockets: 0, idleMs: 60_000 };
const running: HttpServer[] = [];
const clients: Client[] = [];

afterEach(async () => {
  jest.restoreAllMocks();
  for (const client of clients.splice(0)) client.socket.resetAndDestroy();
  await Promise.all(running.splice(0).map((server) => server.stop()));
});

/** A connection that stays until the server ends it. */
class Client {
  readonly socket: net.Socket;
  readonly closed: Promise<unknown>;
  received = "";

  constructor(port: number, localAddress: string) {
    this.socket = net.connect({ port, host: "127.0.0.1", localAddress });
    this.socket.on("error", () => {});
    this.socket.on("data", (chunk) => {
      this.received += chunk;
    });
    // Not `once` of node:events, which rejects when the server resets the connection.
    this.closed = new Promise((resolve) => this.socket.once("close", resolve));
    clients.push(this);
  }

  /** Status of the answer to one request; null when the connection ends without one. */
  async ask(request = REQUEST): Promise<number | null> {
    this.received = "";
    this.socket.write(request);
    await Promise.race([once(this.socket, "data"), this.closed]).catch(() => {});
    const status = /^HTTP\/1\.1 (\d+) /.exec(this.received)?.[1];
    return status === undefined ? null : Number(status);
  }
}

const upgrade: HttpServerOptions["upgrade"] = (_, socket) => {
  socket.on("error", () => {});
  socket.on("end", () => socket.destroy()).resume();
  socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n");
};

async function start(bounds: Partial<ConnectionBounds>, options: Partial<HttpServerOptions> = {}) {
  const reached: LimitName[] = [];
  const log: string[] = [];
  const server = new HttpServer({
    handler: (_, res) => res.end("ok"),
    host: "127.0.0.1",
    port: 0,
    bounds: { ...NO_BOUNDS, ...bounds },
    limitReached: (limit) => reached.push(limit),
    logger: createLogger({ service: "test", level: "warn" }, { write: (line) => log.push(line) }),
    ...options,
  });
  running.push(server);
  await server.start();
  return { client: (address = "127.0.0.1") => new Client(server.port, address), reached, log };
}

describe("at the bound of plain connections", () => {
  test("the one that has been idle longest gives way, and every newcomer is answered", async () => {
    const { client, reached } = await start({ plain: 3 });
    const [first, second, third] = [client(), client(), client()];
    for (const one of [first, second, third, first]) expect(await one.ask()).toBe(200);
    expect(await client().ask()).toBe(200);
    await second.closed;
    expect(await first.ask()).toBe(200);
    expect(await third.ask()).toBe(200);
    expect(reached).toEqual(["http_connections"]);
  });

  test("those that never say a word give way to those that do", async () => {
    const { client } = await start({ plain: 5 });
    const silent = Array.from({ length: 50 }, () => client());
    for (let n = 0; n < 20; n += 1) expect(await client().ask()).toBe(200);
    await Promise.all(silent.map(({ closed }) => closed));
  });

  test("nobody gives way whose answer is still due: the newcomer is refused", async () => {
    const asked = Promise.withResolvers<http.ServerResponse>();
    const { client, reached } = await start({ plain: 1 }, { handler: (_, res) => asked.resolve(res) });
    const first = client();
    const answer = first.ask();
    const res = await asked.promise;
    expect(await client().ask()).toBeNull();
    res.end("ok");
    expect(await answer).toBe(200);
    expect(reached).toEqual(["http_connections"]);
  });

  test("one that delays its own answer gives way once that is overdue", async () => {
    const asked = Promise.withResolvers<void>();
    const { client } = await start(
      { plain: 1 },
      { handler: (req, res) => (req.method === "POST" ? asked.resolve() : res.end("ok")) },
    );
    const slow = client();
    slow.socket.write("POST / HTTP/1.1\r\nHost: relay\r\nContent-Length: 100\r\n\r\n{");
    await asked.promise;
    const now = performance.now();
    jest.spyOn(performance, "now").mockImplementation(() => now + 60_000);
    expect(await client().ask()).toBe(200);
    await slow.closed;
  });

  test("websockets have a bound of their own, and take nobody's place", async () => {
    const { client, reached } = await start({ plain: 1, websockets: 3 }, { upgrade });
    const websockets: Client[] = [];
    for (let n = 0; n < 3; n += 1) {
      const one = client();
      websockets.push(one);
      expect(await one.ask(UPGRADE)).toBe(101);
    }
    for (let n = 0; n < 3; n += 1) expect(await client().ask()).toBe(200);
    expect(websockets.filter(({ socket }) => socket.closed)).toEqual([]);
    expect(new Set(reached)).toEqual(new Set(["http_connections"]));
  });

  test("an upgrade that was refused counts until its refusal is read", async () => {
    const unread = "x".repeat(20_000_000);
    const refused = Promise.withResolvers<Duplex>();
    const { client, reached } = await start({ plain: 1 }, { upgrade: (_, s) => refused.resolve(s.end(unread)) });
    client().socket.pause().write(UPGRADE);
    const socket = await refused.promise;
    expect(await client().ask()).toBe(200);
    expect([socket.destroyed, reached]).toEqual([true, ["http_connections"]]);
  });

  test("sockets that nobody bounds are counted all the same, and the next one is dropped", async () => {
    const { client, reached } = await start({ plain: 1, websockets: 0 }, { upgrade });
    for (let n = 0; n < 2; n += 1) expect(await client().ask(UPGRADE)).toBe(101);
    await client().closed;
    expect(reached).toEqual(["http_connections"]);
  });

  test("the log says so once, however often it is reached", async () => {
    const { client, log } = await start({ plain: 1 });
    for (let n = 0; n < 5; n += 1) expect(await client().ask()).toBe(200);
    expect(log.map((line) => JSON.parse(line))).toMatchObject([{ level: "warn", limit: "http_connections" }]);
  });
});

describe("requests that are sent ahead on one connection", () => {
  const REQUEST = "GET / HTTP/1.1\r\nHost: relay\r\n\r\n";

  test("are answered one after the other: each waits until the answer before it is gone", async () => {
    const open: http.ServerResponse[] = [];
    const { client } = await start({}, { handler: (_, res) => open.push(res) });
    client().socket.write(REQUEST.repeat(3));
    for (let n = 1; n <= 3; n += 1) {
      await until(`answer ${n} is asked for`, () => open.length >= n);
      expect(open.length).toBe(n);
      open[n - 1]?.end("ok");
    }
  });

  test("keep nobody in place who reads none of the answers", async () => {
    const asked = Promise.withResolvers<void>();
    const { client } = await start({ plain: 1 }, { handler: () => asked.resolve() });
    const silent = client();
    silent.socket.write(REQUEST);
    await asked.promise;
    const now = performance.now();
    jest.spyOn(performance, "now").mockImplementation(() => now + 60_000);
    silent.socket.write(REQUEST);
    await until("the second request has come in", () => silent.socket.bytesWritten >= 2 * REQUEST.length);
    void client().ask();
    await silent.closed;
  });

  test("close it when more than sixteen wait", async () => {
    let asked = 0;
    const { client, reached } = await start({}, { handler: () => (asked += 1) });
    const [many, tooMany] = [client(), client()];
    many.socket.write(REQUEST.repeat(17));
    tooMany.socket.write(REQUEST.repeat(500));
    await tooMany.closed;
    expect([asked, reached]).toEqual([1, ["http_waiting_requests"]]);
    expect(many.socket.destroyed).toBe(false);
  });

  test("are not even parsed once there are too many of them", async () => {
    let parsed = 0;
    const count = () => {
      parsed += 1;
    };
    subscribe("http.server.request.start", count);
    const { client } = await start({}, { handler: () => {} });
    const many = client();
    many.socket.write(REQUEST.repeat(1500));
    await many.closed.catch(() => {});
    unsubscribe("http.server.request.start", count);
    expect(parsed).toBe(HTTP_LIMITS.waitingRequests + 2);
  });
});

describe("at the bound of one address", () => {
  test("it pushes out its own connections and nobody else's", async () => {
    const { client, reached } = await start({ plain: 100, plainPerAddress: 3 });
    const other = client("127.0.0.2");
    expect(await other.ask()).toBe(200);
    const flood = Array.from({ length: 20 }, () => client("127.0.0.3"));
    await Promise.all(flood.slice(0, 17).map(({ closed }) => closed));
    expect(await other.ask()).toBe(200);
    expect(await (flood.at(-1) as Client).ask()).toBe(200);
    expect(new Set(reached)).toEqual(new Set(["http_address_connections"]));
  });

  test("an address whose connections are gone is not remembered against it", async () => {
    const { client } = await start({ plainPerAddress: 1 });
    for (let n = 0; n < 5; n += 1) {
      const one = client();
      expect(await one.ask()).toBe(200);
      one.socket.destroy();
      await one.closed;
    }
    expect(await client().ask()).toBe(200);
  });
});

test("A connection without a request is closed after its time, however it began", async () => {
  const below = Promise.withResolvers<http.Server>();
  const handler: http.RequestListener = (req, res) => {
    below.resolve(serverBelow(req.socket));
    res.end("ok");
  };
  const { client } = await start({ idleMs: 100 }, { handler });
  const asked = client();
  expect(await asked.ask()).toBe(200);
  await asked.closed;
  const server = await below.promise;
  expect(server.timeout).toBe(5000);
  server.timeout = 1;
  await client().closed;
});

test("Behind a proxy, whose address all connections have, none is bounded by address, and idle ones outlast the proxy's", () => {
  const settings = { httpConnections: 7, connectionsPerAddress: 5, maxConnections: 9 };
  const direct = connectionBounds({ ...settings, trustedProxyHops: 0 });
  const behind = connectionBounds({ ...settings, trustedProxyHops: 1 });
  expect(direct).toMatchObject({ plain: 7, plainPerAddress: 5, websockets: 9 });
  expect(behind).toMatchObject({ plain: 7, plainPerAddress: 0, websockets: 9 });
  expect(behind.idleMs).toBeGreaterThan(60_000);
  expect(direct.idleMs).toBeLessThanOrEqual(10_000);
});

describe("bounds of connections", () => {
  test("stay as they are while there are descriptors for them", () => {
    expect(fitted({ httpConnections: 2000 }, 2000)).toBeNull();
    expect(fitted({ httpConnections: 2000, maxConnections: 50_000 }, 52_000)).toBeNull();
  });

  test("never ask for more descriptors than there are, and leave some for both kinds", () => {
    for (const httpConnections of [0, 1, 10, 2000]) {
      for (const maxConnections of [1, 100, 50_000]) {
        for (const available of [32, 200, 1000, 20_000]) {
          const bounds = fitted({ httpConnections, maxConnections }, available) ?? { httpConnections, maxConnections };
          const { httpConnections: plain, maxConnections: websockets = 0 } = bounds;
          expect(plain).toBeGreaterThan(0);
          expect(websockets).toBeGreaterThan(0);
          expect(plain + websockets).toBeLessThanOrEqual(available);
        }
      }
    }
  });

  test("of a service without websockets become all that there are", () => {
    expect(fitted({ httpConnections: 0 }, 500)).toEqual({ httpConnections: 500 });
    expect(fitted({ httpConnections: 2000 }, 500)).toEqual({ httpConnections: 500 });
  });

  test("are not lowered for plain HTTP where websockets leave room", () => {
    expect(fitted({ httpConnections: 0, maxConnections: 100 }, 1000)).toEqual({
      httpConnections: 900,
      maxConnections: 100,
    });
  });
});
