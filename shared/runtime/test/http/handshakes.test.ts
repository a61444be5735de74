import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import https from "node:https";
import type { Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, jest, test } from "@jest/globals";
import { SELF_SIGNED } from "../../../../connector/test/self-signed.ts";
import { temporaryFolder } from "../../../../test/support/temporary-folder.ts";
import { Certificate } from "../../src/http/certificate.ts";
import type { HttpServer } from "../../src/http/server.ts";
import type { LimitName } from "../../src/metrics/catalogue.ts";
import { closed, haltTimers, logger, useServers } from "./server-kit.ts";

/** Clients that open a connection and never end their TLS handshake. */

const OF_ADDRESS = 3;
/** So long a stop waits for clients: less than a handshake may take. */
const GRACE_MS = 1500;

const servers = useServers();
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let reached: LimitName[];

beforeAll(async () => {
  folder = await temporaryFolder();
  await writeFile(join(folder.path, "tls.crt"), SELF_SIGNED.cert);
  await writeFile(join(folder.path, "tls.key"), SELF_SIGNED.key);
});
afterAll(async () => await folder[Symbol.asyncDispose]());

async function start(): Promise<HttpServer> {
  reached = [];
  const [certFile, keyFile] = [join(folder.path, "tls.crt"), join(folder.path, "tls.key")];
  return await servers.start({
    certificate: new Certificate({ certFile, keyFile }, logger),
    bounds: { plain: 100, plainPerAddress: OF_ADDRESS, websockets: 0, idleMs: 60_000 },
    limitReached: (limit) => reached.push(limit),
  });
}

async function statusOf({ port }: HttpServer, agent?: https.Agent): Promise<number> {
  const asked = https.get({
    host: "127.0.0.1",
    port,
    ca: SELF_SIGNED.cert,
    checkServerIdentity: () => undefined,
    agent,
  });
  const [answer] = await once(asked, "response");
  await once(answer.resume(), "end");
  return answer.statusCode;
}

test("One address has no more of them than connections: the oldest gives way, and a client that speaks is answered", async () => {
  const server = await start();
  const silent = [];
  for (let n = 0; n < OF_ADDRESS; n += 1) {
    const socket = servers.connect(server).on("error", () => {});
    await once(socket, "connect");
    silent.push(socket);
  }
  expect(await statusOf(server)).toBe(200);
  await closed(silent[0] as (typeof silent)[number]);
  expect(silent.slice(1).map((socket) => socket.destroyed)).toEqual([false, false]);
  expect(reached).toEqual(["http_address_connections"]);
});

test("One that ends is no longer counted beside the connection that it led to", async () => {
  const server = await start();
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
  for (let n = 0; n < OF_ADDRESS * 2; n += 1) expect(await statusOf(server, n % 2 === 0 ? agent : undefined)).toBe(200);
  expect(reached).toEqual([]);
  agent.destroy();
});

test("One that ends leaves no address of its client on the socket below it", async () => {
  const server = await start();
  const accepted: Socket[] = [];
  const note = (message: unknown) => accepted.push((message as { socket: Socket }).socket);
  subscribe("net.server.socket", note);
  const agent = new https.Agent({ keepAlive: true });
  expect(await statusOf(server, agent)).toBe(200);
  unsubscribe("net.server.socket", note);
  expect(accepted.map(({ destroyed }) => destroyed)).toEqual([false]);
  const values = accepted.flatMap((socket) => Object.values(socket));
  expect(values.filter((value) => value?.address === "127.0.0.1" && value?.port !== server.port)).toEqual([]);
  agent.destroy();
});

test("A stop waits for none of them", async () => {
  const server = await start();
  const accepted = acceptedSocket();
  servers.connect(server).on("error", () => {});
  const silent = await accepted;
  haltTimers();
  const stopped = server.stop();
  jest.advanceTimersByTime(GRACE_MS);
  expect(silent.destroyed).toBe(true);
  await stopped;
});

/** The next socket that a server of this process accepts. */
async function acceptedSocket(): Promise<Socket> {
  const accepted = Promise.withResolvers<Socket>();
  const note = (message: unknown) => accepted.resolve((message as { socket: Socket }).socket);
  subscribe("net.server.socket", note);
  try {
    return await accepted.promise;
  } finally {
    unsubscribe("net.server.socket", note);
  }
}
