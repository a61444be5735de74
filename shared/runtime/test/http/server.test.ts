import { once } from "node:events";
import type http from "node:http";
import type net from "node:net";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { describe, expect, jest, test } from "@jest/globals";
import type { TakeUpgrade } from "../../src/http/server.ts";
import { exchange } from "./kit.ts";
import { closed, haltTimers, serverBelow, UNREADABLE, UPGRADE, useServers } from "./server-kit.ts";

const CONNECT = "CONNECT relay:1 HTTP/1.1\r\nHost: relay\r\n\r\n";
const { start, connect } = useServers();

describe("the http server", () => {
  test("refuses to start where another one listens", async () => {
    const { port } = await start();
    await expect(start({ port })).rejects.toMatchObject({ code: "EADDRINUSE" });
  });

  test.each([
    ["no HTTP at all", "SECRET nonsense\r\n\r\n"],
    ["two lengths", "POST / HTTP/1.1\r\nHost: relay\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nSECRET"],
    [
      "length and chunks",
      "POST / HTTP/1.1\r\nHost: relay\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\nSECRET",
    ],
    ["a header beyond its bound", `GET / HTTP/1.1\r\nHost: relay\r\nX: ${"SECRET".repeat(5000)}\r\n\r\n`],
  ])("answers %s with a problem document and closes", async (_, bytes) => {
    const answer = await exchange((await start()).port, bytes);
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(answer).toContain("Content-Type: application/problem+json");
    expect(answer).toContain('"code":"invalid_request"');
    expect(answer).not.toContain("SECRET");
  });

  test("answers a client that has ended its side, and ends the connection then", async () => {
    const handler: http.RequestListener = ({ socket }, res) => {
      if (socket.readableEnded) res.end("ok");
      else socket.once("end", () => res.end("ok"));
    };
    const socket = connect(await start({ handler }));
    socket.end("GET / HTTP/1.1\r\nHost: relay\r\n\r\n");
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*ok$/s);
  });

  test("gives no second answer to a request that breaks after its first", async () => {
    const server = await start({ handler: (req, res) => res.end("early", () => req.resume()) });
    const socket = connect(server);
    socket.write("POST / HTTP/1.1\r\nHost: relay\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
    const [first] = await once(socket, "data");
    expect(first.toString()).toMatch(/^HTTP\/1\.1 200 /);
    let more = "";
    socket.on("data", (chunk) => {
      more += chunk;
    });
    socket.on("error", () => {});
    socket.write("no chunk\r\n");
    await once(socket, "close");
    expect(more).toBe("");
  });

  test("cuts off clients that dribble after 5 s in their header and 10 s in their body", async () => {
    const asked = Promise.withResolvers<http.Server>();
    const handler = (req: http.IncomingMessage, res: http.ServerResponse) => {
      asked.resolve(serverBelow(req.socket));
      req.resume().on("end", () => res.end());
    };
    const server = await start({ handler });
    const dribble = async (head: string) => {
      const socket = connect(server).on("error", () => {});
      socket.write(head);
      const pulse = setInterval(() => socket.write("x"), 200);
      await once(socket.resume(), "close");
      clearInterval(pulse);
    };
    const cutOff = Promise.all([
      dribble("GET / HTTP/1.1\r\nHost: relay\r\nX-Slow: "),
      dribble("POST / HTTP/1.1\r\nHost: relay\r\nContent-Length: 30000\r\n\r\n"),
    ]);
    const below = await asked.promise;
    expect(below).toMatchObject({ headersTimeout: 5000, requestTimeout: 10_000 });
    Object.assign(below, { headersTimeout: 1, requestTimeout: 1 });
    await cutOff;
  });

  test("answers upgrades as plain requests when nobody takes them", async () => {
    const server = await start({ handler: (_, res) => res.writeHead(404, { Connection: "close" }).end() });
    expect(await exchange(server.port, UPGRADE)).toMatch(/^HTTP\/1\.1 404 /);
  });

  test("hands websocket upgrades over, and no other ones", async () => {
    const server = await start({
      handler: (_, res) => res.writeHead(200, { Connection: "close" }).end("plain"),
      upgrade: (_, socket) => socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
    });
    const upgrade = (protocol: string) => exchange(server.port, UPGRADE.replace("websocket", protocol));
    expect(await upgrade("WebSocket")).toMatch(/^HTTP\/1\.1 101 /);
    expect(await upgrade("h2c")).toMatch(/^HTTP\/1\.1 200 /);
  });

  test("leaves nothing of its own on a socket whose new owner listens for errors", async () => {
    const taken = Promise.withResolvers<Duplex>();
    const onError = () => {};
    const server = await start({ upgrade: (_, socket) => taken.resolve(socket.on("error", onError)) });
    const client = connect(server);
    client.write(UPGRADE);
    const socket = await taken.promise;
    await setImmediate();
    expect([socket.listeners("error"), socket.listeners("close")]).toEqual([[onError], []]);
    socket.destroy();
  });

  test("survives a reset on a socket that it handed over", async () => {
    const server = await start({ upgrade: (_, socket) => socket.destroy(new Error("reset")) });
    expect(await exchange(server.port, UPGRADE)).toBe("");
    expect((await fetch(`http://127.0.0.1:${server.port}/`)).status).toBe(200);
  });

  test.each([
    ["an upgrade", UPGRADE],
    ["CONNECT", CONNECT],
  ])("closes who asks for %s behind an answer that is not read", async (_, bytes) => {
    const asked = Promise.withResolvers<net.Socket>();
    const handler = (req: http.IncomingMessage, res: http.ServerResponse) => {
      asked.resolve(req.socket);
      res.end(UNREADABLE);
    };
    const socket = connect(await start({ handler, upgrade: () => expect(true).toBe(false) })).pause();
    socket.write("GET / HTTP/1.1\r\nHost: relay\r\n\r\n");
    const answered = await asked.promise;
    socket.write(bytes);
    await closed(answered);
  });

  test("leaves neither a timer nor the address of its client on a socket that it handed over", async () => {
    const remainsOn = (socket: Duplex) => {
      const values = Reflect.ownKeys(socket).map((key) => Reflect.get(socket, key));
      return {
        timers: values.filter((value) => value?.constructor?.name === "Timeout").length,
        addresses: values.filter((value) => value?.address === "127.0.0.1").length,
      };
    };
    const taken = Promise.withResolvers<{ socket: Duplex; before: ReturnType<typeof remainsOn> }>();
    const upgrade: TakeUpgrade = (_, socket) => taken.resolve({ socket, before: remainsOn(socket) });
    const bounds = { plain: 10, plainPerAddress: 10, websockets: 0, idleMs: 60_000 };
    connect(await start({ upgrade, bounds })).write(UPGRADE);
    const { socket, before } = await taken.promise;
    expect(before).toEqual({ timers: 1, addresses: 1 });
    expect(remainsOn(socket)).toEqual({ timers: 0, addresses: 0 });
    socket.destroy();
  });

  test("closes who does not read the refusal of its upgrade within 5 s, whatever it goes on sending", async () => {
    haltTimers();
    const refused = Promise.withResolvers<Duplex>();
    const server = await start({ upgrade: (_, socket) => refused.resolve(socket.end(UNREADABLE)) });
    const client = connect(server).pause();
    client.write(UPGRADE);
    const socket = await refused.promise;
    jest.advanceTimersByTime(4999);
    client.write("x");
    expect(socket.destroyed).toBe(false);
    jest.advanceTimersByTime(1);
    expect(socket.destroyed).toBe(true);
  });

  test("refuses an upgrade whose target is no path", async () => {
    const server = await start({ upgrade: () => expect(true).toBe(false) });
    const answer = await exchange(server.port, UPGRADE.replace("/ws", "*"));
    expect(answer).toMatch(/^HTTP\/1\.1 404 /);
  });
});

describe("requests of many connections at once", () => {
  const CROWD = 25;
  /** Those of the crowd that begin before another address has its turn, and a few whose bytes came late. */
  const SOON = 6;
  /** Order in which requests begin: those of a crowd that is there first, and one of somebody else. */
  const orderOf = async (trustedProxyHops: number, crowdFrom: string, otherFrom: string, otherOwn = "127.0.0.1") => {
    const begun: string[] = [];
    const handler = ({ url }: http.IncomingMessage, res: http.ServerResponse) => {
      begun.push(url as string);
      res.end("ok");
    };
    const server = await start({ handler, trustedProxyHops });
    const request = (path: string, from: string) =>
      `GET ${path} HTTP/1.1\r\nHost: relay\r\nX-Forwarded-For: ${from}\r\n\r\n`;
    const crowd = Array.from({ length: CROWD }, () => connect(server));
    const other = connect(server, otherOwn);
    for (const socket of [...crowd, other]) {
      socket.write(request("/first", ""));
      await once(socket, "data");
    }
    begun.length = 0;
    for (const socket of crowd) socket.write(request("/crowd", crowdFrom));
    other.write(request("/other", otherFrom));
    await once(other, "data");
    return begun.indexOf("/other");
  };

  test("begin in turn of their addresses: nobody waits for all that another address sent", async () => {
    expect(await orderOf(0, "", "", "127.0.0.2")).toBeLessThan(SOON);
  });

  test("are told apart by what a trusted proxy says, and by nothing that a client writes", async () => {
    expect(await orderOf(1, "192.0.2.1, 203.0.113.1", "192.0.2.1, 203.0.113.2")).toBeLessThan(SOON);
    expect(await orderOf(1, "192.0.2.1, 203.0.113.1", "192.0.2.2, 203.0.113.1")).toBeGreaterThan(CROWD / 2);
    expect(await orderOf(0, "203.0.113.1", "203.0.113.2")).toBeGreaterThan(CROWD / 2);
  });
});
