import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "@jest/globals";
import { type HttpAnswer, HttpClient } from "../src/http-client.ts";

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
