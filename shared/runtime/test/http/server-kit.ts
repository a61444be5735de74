import { once } from "node:events";
import type http from "node:http";
import net from "node:net";
import type { Duplex } from "node:stream";
import { afterEach, jest } from "@jest/globals";
import { fakeTimers } from "../../../../test/support/time.ts";
import { HttpServer, type HttpServerOptions } from "../../src/http/server.ts";
import { createLogger, type Logger } from "../../src/logging.ts";

export const logger: Logger = createLogger({ service: "test", level: "silent" });
/** More than the kernel holds for a client that reads nothing. */
export const UNREADABLE = "x".repeat(20_000_000);
export const UPGRADE = "GET /ws HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

/** Servers and sockets that end with the test that made them. */
export function useServers() {
  const running: HttpServer[] = [];
  const sockets: net.Socket[] = [];
  afterEach(async () => {
    jest.useRealTimers();
    for (const socket of sockets.splice(0)) socket.resetAndDestroy();
    await Promise.all(running.splice(0).map((server) => server.stop()));
  });
  const start = async (options: Partial<HttpServerOptions> = {}) => {
    const server = new HttpServer({
      handler: (_, res) => res.end("ok"),
      host: "127.0.0.1",
      port: 0,
      logger,
      ...options,
    });
    running.push(server);
    await server.start();
    return server;
  };
  const connect = (server: HttpServer, localAddress = "127.0.0.1") => {
    const socket = net.connect({ port: server.port, host: "127.0.0.1", localAddress });
    sockets.push(socket);
    return socket;
  };
  return { start, connect };
}

export async function closed(socket: Duplex): Promise<void> {
  if (!socket.closed) await once(socket, "close");
}

/** The server's own deadlines pass when the test says so. Those of Node go on. */
export function haltTimers(): void {
  fakeTimers();
}

/** Node's server below one of its sockets: its times can be shortened, and its clock cannot be set. */
export function serverBelow(socket: net.Socket): http.Server {
  return (socket as unknown as { server: http.Server }).server;
}
