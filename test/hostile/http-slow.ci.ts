import { connect, type Socket } from "node:net";
import { afterEach, beforeAll, expect, test } from "@jest/globals";
import { until } from "../support/until.ts";
import { answersTo, request } from "./support/raw-http.ts";
import { HANDSHAKE } from "./support/raw-websocket.ts";
import { type AttackedService, relayUnderAttack } from "./support/under-attack.ts";

const CLIENTS_OF_A_KIND = 4;
/** Headers are due within 5 s, bodies and the reading of answers within 10 s; looked at each second. */
const CUT_OFF_WITHIN_MS = 16_000;
const PULSE_MS = 300;
const POST = "POST /api/self-test HTTP/1.1\r\nHost: relay\r\nContent-Type: application/json\r\n";

/** What a client says at once, and then again and again. */
const DRIBBLES: readonly (readonly [string, string])[] = [
  ["", ""],
  ["", "\r\n"],
  ["GET /hea", ""],
  ["GET /health HTTP/1.1\r\nHost: relay\r\nX: ", "x"],
  ["GET /health HTTP/1.1\r\nHost: relay\r\n", "X: y\r\n"],
  [HANDSHAKE.slice(0, -4), "x"],
  [`${POST}Content-Length: 30000\r\n\r\n{`, ""],
  [`${POST}Content-Length: 30000\r\n\r\n`, "x"],
  [`${POST}Transfer-Encoding: chunked\r\n\r\n`, "1\r\nx\r\n"],
  [`${POST}Transfer-Encoding: chunked\r\n\r\n`, "0"],
  [`${POST}Transfer-Encoding: chunked\r\n\r\n1;`, "x"],
  [`${POST}Transfer-Encoding: chunked\r\n\r\n0\r\n`, "X: y\r\n"],
];

const { start } = relayUnderAttack("alice");
const services: AttackedService[] = [];
const slow: Slow[] = [];

/** A client that does not go by itself. */
class Slow {
  readonly #socket: Socket;
  readonly #pulse: NodeJS.Timeout;

  constructor(port: number, head: string, drop: string) {
    this.#socket = connect({ port, host: "127.0.0.1" });
    this.#socket.on("error", () => {});
    this.#socket.write(head);
    this.#pulse = setInterval(() => this.#socket.write(drop), PULSE_MS);
  }

  /** Without it nothing that comes back is read. */
  reads(): this {
    this.#socket.resume();
    return this;
  }

  /** True where it reads and has been cut off. */
  get isCutOff(): boolean {
    return this.#socket.closed;
  }

  end(): void {
    clearInterval(this.#pulse);
    this.#socket.destroy();
  }
}

beforeAll(async () => {
  services.push(await start("gateway"), await start("ops-reporting"), await start("ws-connector"));
  for (const { port } of services) await answersTo(port, request("GET", "/ready"), "\0");
  await Promise.all(services.map((one) => one.remember()));
});
afterEach(() => {
  for (const client of slow) client.end();
});

test("Clients that dribble, wherever they stop, and those that never read, are cut off, and nobody waits for them", async () => {
  for (const { port } of services) {
    for (const [head, drop] of DRIBBLES) {
      for (let n = 0; n < CLIENTS_OF_A_KIND; n += 1) slow.push(new Slow(port, head, drop).reads());
    }
  }
  const readers = [...slow];
  const requests = "GET /openapi.json HTTP/1.1\r\nHost: relay\r\n\r\n".repeat(300);
  slow.push(new Slow((services[0] as AttackedService).port, requests, ""));
  for (const { port } of services) {
    const [answer] = await answersTo(port, request("GET", "/ready"));
    expect(answer?.status).toBe(200);
  }
  // A service collects its garbage each time it is asked for its sockets: it is asked when few are left.
  await until("the readers are cut off", () => readers.every(({ isCutOff }) => isCutOff), CUT_OFF_WITHIN_MS);
  for (const one of services) await one.untilAlone();
});
