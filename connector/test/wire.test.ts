import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "@jest/globals";
import { WebSocketServer } from "ws";
import { type HttpAnswer, HttpClient } from "../src/http-client.ts";
import { MAX_RECEIVED_BYTES } from "../src/limits.ts";
import { Socket } from "../src/socket.ts";

describe("The socket of a connection", () => {
  const HELLO = JSON.stringify({ frame: "hello" });
  const LARGEST = HELLO.padEnd(MAX_RECEIVED_BYTES);

  /** What is read of a relay that sends these texts and closes, and with which code it ends. */
  async function readOf(...texts: string[]): Promise<{ read: string[]; code: number }> {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await once(server, "listening");
    server.on("connection", (client) => {
      for (const text of texts) client.send(text);
      client.close(4400);
    });
    const read: string[] = [];
    const closed = Promise.withResolvers<number>();
    const socket = new Socket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, false, {
      frame: ({ frame }) => read.push(frame),
      closed: closed.resolve,
    });
    socket.open();
    const code = await closed.promise;
    await socket.close();
    server.close();
    return { read, code };
  }

  test("Frames are read up to their bound", async () => {
    expect(await readOf(LARGEST, HELLO)).toEqual({ read: ["hello", "hello"], code: 4400 });
  });

  test("A frame that is larger ends the connection, and nothing after it is read", async () => {
    expect(await readOf(HELLO, `${LARGEST} `, HELLO)).toEqual({ read: ["hello"], code: 1006 });
  });

  test("An attempt that fails at once ends with its cause, and not the process with it", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const socket = new Socket("ws://255.255.255.255/ws", false, {
      frame: () => {},
      closed: (_, failure) => resolve(failure),
    });
    // As the timer of a reconnect does.
    setTimeout(() => socket.open(), 1);
    expect(await promise).toMatchObject({ code: expect.stringMatching(/^E/) });
  });
});

describe("A question over HTTP", () => {
  const MAX_BYTES = 100_000;
  const servers: Server[] = [];

  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  /** The address of a relay that answers so. */
  async function relay(answers: RequestListener): Promise<string> {
    const server = createServer(answers);
    servers.push(server);
    await once(server.listen(0, "127.0.0.1"), "listening");
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  const ask = (url: string, { timeoutMs = 3000, signal = new AbortController().signal } = {}) =>
    new HttpClient(url, false).ask("/", { timeoutMs, maxBytes: MAX_BYTES }, signal);

  /** Or the length of the text, which would fill the report of a test. */
  const errorNameOf = (asked: Promise<HttpAnswer>) =>
    asked.then(
      ({ text }) => text.length,
      ({ name }: Error) => name,
    );

  test("An answer is read whole up to its bound, whatever its status", async () => {
    const text = "\u00e9".repeat(MAX_BYTES / 2);
    const url = await relay((_, response) => response.writeHead(404, { "Retry-After": "7" }).end(text));
    const headers = expect.objectContaining({ "retry-after": "7" });
    expect(await ask(url)).toEqual({ status: 404, headers, text });
  });

  test("One byte more is too much, and the error has the status", async () => {
    const url = await relay((_, response) => response.writeHead(404).end("x".repeat(MAX_BYTES + 1)));
    expect(await errorNameOf(ask(url))).toBe("RangeError");
    await expect(ask(url)).rejects.toMatchObject({ status: 404 });
  });

  test("What never ends is not read on", async () => {
    const gone = Promise.withResolvers<void>();
    const endless = await relay((_, response) => {
      response.on("close", gone.resolve);
      response.write("x".repeat(2 * MAX_BYTES));
    });
    expect(await errorNameOf(ask(endless))).toBe("RangeError");
    await gone.promise;
  });

  test("Nothing is asked of an address that a relay redirects to", async () => {
    let asked = 0;
    const inside = await relay((_, response) => {
      asked += 1;
      response.end("{}");
    });
    const url = await relay((_, response) => response.writeHead(302, { location: inside }).end());
    expect(await ask(url)).toMatchObject({ status: 302 });
    expect(asked).toBe(0);
  });

  test("A request says who asks", async () => {
    const heard: unknown[] = [];
    const url = await relay(({ headers }, response) => {
      heard.push(headers["user-agent"]);
      response.end();
    });
    await ask(url);
    expect(heard).toEqual([expect.stringMatching(/^agent-relay-connector\//)]);
  });

  test("An answer that changes the protocol is none", async () => {
    const url = await relay((_, response) => {
      response.writeHead(101, { connection: "Upgrade", upgrade: "websocket" });
      response.flushHeaders();
    });
    expect(await errorNameOf(ask(url))).toBe("Error");
  });

  test("An answer that comes byte by byte ends with its time, or with who asked", async () => {
    const url = await relay((_, response) => response.write(" "));
    expect(await errorNameOf(ask(url, { timeoutMs: 50 }))).toBe("TimeoutError");
    expect(await errorNameOf(ask(url, { signal: AbortSignal.timeout(50) }))).toBe("TimeoutError");
  });
});
