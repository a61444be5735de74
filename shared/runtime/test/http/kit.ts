import { once } from "node:events";
import net from "node:net";
import { afterEach, beforeEach } from "@jest/globals";
import type Koa from "koa";
import { createApp } from "../../src/http/app.ts";
import { HttpServer } from "../../src/http/server.ts";
import { createLogger } from "../../src/logging.ts";

/** A running app, and what it logged. */
export interface Running {
  readonly server: HttpServer;
  readonly url: string;
  readonly log: string[];
}

/** Serves `middleware` in an app of `createApp`, on a port of its own. */
export async function serve(middleware: Koa.Middleware, trustedProxyHops = 0): Promise<Running> {
  const log: string[] = [];
  const logger = createLogger({ service: "test", level: "debug" }, { write: (line) => log.push(line) });
  const app = createApp({ logger, trustedProxyHops }).use(middleware);
  const server = new HttpServer({ handler: app.callback(), host: "127.0.0.1", port: 0, logger });
  await server.start();
  return { server, url: `http://127.0.0.1:${server.port}`, log };
}

/** A running app for each test of a describe block, as `serve` makes it. */
export function useServer(middleware: Koa.Middleware): Running {
  let running: Running;
  beforeEach(async () => {
    running = await serve(middleware);
  });
  afterEach(() => running.server.stop());
  return {
    get server() {
      return running.server;
    },
    get url() {
      return running.url;
    },
    get log() {
      return running.log;
    },
  };
}

/** Sends bytes on a socket of its own and gathers what comes back until the server closes it. */
export async function exchange(port: number, bytes: string | Buffer): Promise<string> {
  const socket = net.connect(port, "127.0.0.1");
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk.toString("latin1");
  });
  socket.write(bytes);
  await once(socket, "close");
  return answer;
}

/** One GET of `target`, spelled exactly so. */
export function getTarget(port: number, target: string): Promise<string> {
  return exchange(port, `GET ${target} HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n`);
}
