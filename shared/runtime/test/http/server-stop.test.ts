import { once } from "node:events";
import type http from "node:http";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, jest, test } from "@jest/globals";
import { HttpServer } from "../../src/http/server.ts";
import { haltTimers, logger, UNREADABLE, UPGRADE, useServers } from "./server-kit.ts";

/** So long a stop waits for clients. */
const GRACE_MS = 1500;
const { start, connect } = useServers();

describe("stopping the http server", () => {
  test("lets an answer finish, and closes its connection", async () => {
    const answered = Promise.withResolvers<http.ServerResponse>();
    const server = await start({ handler: (_, res) => answered.resolve(res) });
    const socket = connect(server);
    socket.write("GET / HTTP/1.1\r\nHost: relay\r\n\r\n");
    const res = await answered.promise;
    const stopped = server.stop();
    const data = once(socket, "data");
    const closed = once(socket, "close");
    res.end("done");
    expect((await data)[0].toString()).toMatch(/Connection: close.*done$/s);
    await Promise.all([closed, stopped]);
  });

  test("lets a client that reads slowly read an answer to its end, and closes its connection then", async () => {
    const answered = Promise.withResolvers<http.ServerResponse>();
    const asked = Promise.withResolvers<Duplex>();
    const handler = (req: http.IncomingMessage, res: http.ServerResponse) => {
      if (req.url === "/never") asked.resolve(req.socket);
      else answered.resolve(res.end(UNREADABLE));
    };
    const server = await start({ handler });
    connect(server).write("GET /never HTTP/1.1\r\nHost: relay\r\n\r\n");
    const cutAtTheEnd = await asked.promise;
    const socket = connect(server).pause();
    socket.write("GET / HTTP/1.1\r\nHost: relay\r\n\r\n");
    const res = await answered.promise;
    // 20 MB take a busy machine longer than the grace.
    haltTimers();
    const stopped = server.stop();
    expect(res.writableFinished).toBe(false);
    const [read] = await Promise.all([text(socket), once(res.req.socket, "close")]);
    expect(cutAtTheEnd.destroyed).toBe(false);
    expect(read.slice(read.indexOf("\r\n\r\n") + 4)).toHaveLength(UNREADABLE.length);
    jest.advanceTimersByTime(GRACE_MS);
    await stopped;
  });

  test("cuts off an answer that never comes", async () => {
    const asked = Promise.withResolvers<void>();
    const server = await start({ handler: () => asked.resolve() });
    const socket = connect(server);
    const closed = once(socket, "close");
    socket.write("GET / HTTP/1.1\r\nHost: relay\r\n\r\n");
    await asked.promise;
    haltTimers();
    const stopped = server.stop();
    jest.advanceTimersByTime(GRACE_MS);
    await Promise.all([stopped, closed]);
  });

  test("cuts off who reads neither its answer nor the refusal of its upgrade", async () => {
    const left = { answer: Promise.withResolvers<Duplex>(), refusal: Promise.withResolvers<Duplex>() };
    const server = await start({
      handler: (req, res) => {
        res.end(UNREADABLE);
        left.answer.resolve(req.socket);
      },
      upgrade: (_, socket) => left.refusal.resolve(socket.end(UNREADABLE)),
    });
    connect(server).pause().write("GET / HTTP/1.1\r\nHost: relay\r\n\r\n");
    connect(server).pause().write(UPGRADE);
    const sockets = await Promise.all([left.answer.promise, left.refusal.promise]);
    haltTimers();
    const stopped = server.stop();
    jest.advanceTimersByTime(GRACE_MS);
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true, true]);
    await stopped;
  });

  test("closes idle connections at once and takes no new ones", async () => {
    const server = await start();
    const { port } = server;
    const socket = connect(server);
    socket.write("GET / HTTP/1.1\r\nHost: relay\r\n\r\n");
    await once(socket, "data");
    const closed = once(socket, "close");
    await server.stop();
    await closed;
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
  });

  test("while it starts leaves nobody listening", async () => {
    const server = new HttpServer({ handler: (_, res) => res.end(), host: "127.0.0.1", port: 0, logger });
    const started = server.start();
    await server.stop();
    await started;
    expect(() => server.port).toThrow();
  });

  test("while its start fails is done at once, and the start fails all the same", async () => {
    const { port } = await start();
    const server = new HttpServer({ handler: (_, res) => res.end(), host: "127.0.0.1", port, logger });
    const failed = expect(server.start()).rejects.toMatchObject({ code: "EADDRINUSE" });
    await server.stop();
    await failed;
  });

  test("may be done twice, and before the start", async () => {
    const server = await start();
    await Promise.all([server.stop(), server.stop()]);
    await new HttpServer({ handler: () => {}, host: "127.0.0.1", port: 0, logger }).stop();
  });
});
