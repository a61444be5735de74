import { once } from "node:events";
import type { Socket } from "node:net";
import { afterEach, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { shared } from "../fixture.ts";
import { type HttpAccess, McpStage } from "./kit.ts";
import { bodyOf, closeOf, dial, INITIALIZE, post, serverSideOf } from "./raw-http.ts";

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

const stage = shared(new McpStage("alice"));
const dialed: Socket[] = [];
afterEach(() => {
  for (const socket of dialed.splice(0)) socket.destroy();
});

function stranger(server: HttpAccess): Socket {
  const socket = dial(server).resume();
  dialed.push(socket);
  return socket;
}

test("its user finds room and is answered while strangers hold all connections that they get: silent, with headers or a body without an end, and with a wrong token", async () => {
  const server = await stage.httpServer("alice");
  const alice = await stage.httpHost(server);
  for (let n = 0; n < MANY; n += AT_ONCE) {
    const some = Array.from({ length: AT_ONCE }, () => stranger(server));
    await Promise.all(some.map((socket) => once(socket, "connect")));
    for (const [at, socket] of some.entries()) socket.write(SAID[at % SAID.length] as string);
  }
  const { answer } = post(server, { jsonrpc: "2.0", id: 1, ...INITIALIZE });
  expect((await answer).statusCode).toBe(200);
  await bodyOf(await answer);
  expect(await alice.call("my_status")).toMatchObject({ agent_id: "agent://alice" });
  await until("the others gave way", () => dialed.filter(({ closed }) => !closed).length <= MAX_STRANGERS);
});

test.each([
  ["of a stranger", "wrong", MAX_BODY_BYTES],
  ["of its user, once it is refused,", undefined, MAX_REFUSED_BYTES + MAX_BODY_BYTES],
])("a body without an end %s is read up to a bound, where its connection ends", async (_, given, maxBytes) => {
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

test("strangers have 5 s for headers and 10 s for a request; then Node ends their connections: silent ones, too", async () => {
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
