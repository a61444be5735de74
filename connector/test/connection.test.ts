import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { type WebSocket, WebSocketServer } from "ws";
import type { Frame } from "../../test/support/agent.ts";
import { until } from "../../test/support/until.ts";
import { Clock } from "../src/clock.ts";
import { Connection, type ConnectionEnd } from "../src/connection.ts";
import { type HttpAnswer, HttpClient } from "../src/http-client.ts";
import { Connector, type ConnectorOptions } from "../src/index.ts";
import { MAX_RECEIVED_BYTES } from "../src/limits.ts";
import { Presence } from "../src/presence.ts";
import { Socket } from "../src/socket.ts";
import { errorOf, record, testAgent, untilState } from "./kit.ts";
import { holdIntervals, leapingTime, Waits, waitForLookUps } from "./times.ts";

/** What goes over the wire, and one connection of an agent to a relay that says just what a test tells it to. */

const { agent, key } = testAgent("alice");
const BOB = "agent://bob";
const MINUTE_MS = 60_000;

class ScriptedRelay {
  /** Envelopes that came. */
  readonly came: Frame[] = [];
  connections = 0;
  /** Members of `hello`, beside its time. */
  hello: object = {};
  /** The answer to an envelope; undefined for none. */
  answer: (envelope: Frame) => object | undefined = () => ({ frame: "ack" });
  /** What it answers over HTTP. */
  http: () => Promise<string> = async () => "{}";
  readonly #server = createServer(async (_, response) => response.end(await this.http()));
  readonly #sockets = new WebSocketServer({ server: this.#server });

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get clients(): WebSocket[] {
    return [...this.#sockets.clients];
  }

  async start(): Promise<void> {
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    this.#sockets.on("connection", (client) => {
      this.connections += 1;
      client.send(JSON.stringify({ frame: "hello", server_time: Date.now(), ...this.hello }));
      client.on("message", (text) => {
        const envelope = JSON.parse(String(text));
        this.came.push(envelope);
        const answer = this.answer(envelope);
        const common = { envelope_id: envelope.id, target_delivery: { status: "online", can_deliver_realtime: true } };
        if (answer !== undefined) client.send(JSON.stringify({ ...common, ...answer }));
      });
    });
  }

  tell(...frames: object[]): void {
    for (const client of this.clients) for (const frame of frames) client.send(JSON.stringify(frame));
  }

  /** Resolves when the agents are gone. */
  async close(code: number): Promise<void> {
    const gone = this.clients.map((client) => once(client, "close"));
    for (const client of this.clients) client.close(code);
    await Promise.all(gone);
  }

  of(type: string): Frame[] {
    return this.came.filter((envelope) => envelope.type === type);
  }

  async stop(): Promise<void> {
    for (const client of this.clients) client.terminate();
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }
}

let relay: ScriptedRelay;
const connectors: Connector[] = [];

beforeEach(async () => {
  relay = new ScriptedRelay();
  await relay.start();
});
afterEach(async () => {
  jest.useRealTimers();
  jest.restoreAllMocks();
  await Promise.all(connectors.splice(0).map((connector) => connector.close()));
  await relay.stop();
});

function alice(options: Partial<ConnectorOptions> = {}): Connector {
  const connector = new Connector({ url: relay.url, agent, key, takeOver: true, ...options });
  connectors.push(connector);
  return connector;
}

async function online(options?: Partial<ConnectorOptions>): Promise<Connector> {
  const connector = alice(options);
  await connector.start();
  return connector;
}

const refusal = (code: string, more: object = {}) => ({ frame: "error", code, retry_after_ms: 1, ...more });

describe("A register", () => {
  test("that cannot be signed ends the connection for good, and says why", async () => {
    const fault = new TypeError("a fault");
    const [clock, end] = [new Clock(), Promise.withResolvers<ConnectionEnd>()];
    const presence = new Presence({
      ...{ agent, relay: "relay", acceptFrom: undefined, clock, registrations: () => [], presented: () => {} },
      beforeRegister: () => Promise.reject(fault),
    });
    const others = { greeted: jest.fn(), registered: jest.fn(), frame: jest.fn(), presenceRefused: jest.fn() };
    const events = { ...others, ended: (_: Connection, why: ConnectionEnd) => end.resolve(why) };
    const connection = new Connection({ url: relay.url, usesProxy: false, clock, presence, events });
    connection.open();
    expect((await end.promise).error).toMatchObject({ code: "invalid_key", cause: fault });
    await connection.close();
  });

  test.each(["unavailable", "over_capacity", "rate_limited", "internal_error"])(
    "that is refused for the moment (%s) is repeated, on the same connection",
    async (code) => {
      relay.answer = () => (relay.came.length < 3 ? refusal(code) : { frame: "ack" });
      await online();
      expect([relay.connections, relay.of("agent.register").length]).toEqual([1, 3]);
    },
  );

  test("whose clock is refused is signed anew by the relay's, once", async () => {
    relay.hello = { server_time: undefined };
    const inAnHour = () => Date.now() + 60 * MINUTE_MS;
    relay.answer = () =>
      relay.came.length === 1 ? refusal("clock_skew", { server_time: inAnHour() }) : { frame: "ack" };
    await online();
    expect(relay.came).toHaveLength(2);
    expect(Math.abs(relay.came[1]?.ts - inAnHour())).toBeLessThan(MINUTE_MS);
    relay.answer = () => refusal("clock_skew", { server_time: inAnHour(), retry: "fix" });
    await expect(alice().start()).rejects.toMatchObject({ code: "clock_skew", retry: "fix" });
    expect(relay.came).toHaveLength(4);
  });

  test("that nobody answers ends with its caller, who aborts the start: the connector is closed, and says why", async () => {
    relay.answer = () => undefined;
    const connector = alice();
    const why = { code: "aborted", cause: { name: "TimeoutError" } };
    await expect(connector.start({ signal: AbortSignal.timeout(50) })).rejects.toMatchObject(why);
    expect(connector.state.status).toBe("closed");
  });
});

describe("A heartbeat", () => {
  /** A send that is refused so has the connector send a heartbeat at once, which is refused with this code. */
  async function refusedWith(code: string): Promise<Connector> {
    const connector = await online();
    relay.answer = ({ type }) => refusal(type === "agent.heartbeat" ? code : "not_registered");
    connector.send(BOB, {}).catch(() => {});
    return connector;
  }

  test("goes out as often as hello asks for", async () => {
    relay.hello = { limits: { heartbeat_interval_ms: 300 } };
    await online();
    await until("two are out", () => relay.of("agent.heartbeat").length > 1);
  });

  test("that is refused for another reason is reported, and the connection stays", async () => {
    const connector = await refusedWith("invalid_envelope");
    const { errors, states } = record(connector);
    await until("two are reported", () => errors.length > 1);
    expect([new Set(errors.map(({ code }) => code)), states]).toEqual([new Set(["invalid_envelope"]), []]);
  });

  test.each([
    ["not_registered", "superseded"],
    ["unknown_key", "key_revoked"],
    ["key_not_allowed", "key_revoked"],
  ])("that is refused as %s ends the connector, whether or not a close follows: %s", async (refused, code) => {
    const connector = await refusedWith(refused);
    await untilState(connector, "closed");
    expect(connector.state).toMatchObject({ error: { code } });
    await expect(connector.send(BOB, {})).rejects.toMatchObject({ code });
    await expect(connector[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code });
  });
});

describe("A connection", () => {
  test("that is superseded is not taken back, though the close gets lost", async () => {
    const connector = await online();
    relay.tell({ frame: "notice", notice: "superseded" });
    await untilState(connector, "closed");
    expect([connector.state, relay.connections]).toMatchObject([{ error: { code: "superseded" } }, 1]);
  });

  test("that brings frames in, and carries nothing out, is given up", async () => {
    relay.hello = { limits: { heartbeat_interval_ms: 400 } };
    relay.answer = ({ type }) => (type === "agent.register" ? { frame: "ack" } : undefined);
    const connector = await online();
    const states: object[] = [];
    connector.on("state", (state) => states.push(state));
    await until("it is given up", () => {
      relay.tell({ frame: "notice", notice: "slow_down", envelopes_per_second: 0, bytes_per_second: 0 });
      return states.length > 0;
    });
    expect(states[0]).toMatchObject({ status: "reconnecting", reason: "lost", closeCode: 1006 });
  });

  test("whose envelopes are answered stays, however long the answer to its heartbeat takes", async () => {
    holdIntervals();
    const leap = leapingTime();
    relay.answer = ({ type }) => (type === "agent.heartbeat" ? undefined : { frame: "ack" });
    const connector = await online();
    const { states } = record(connector);
    const seconds = (count: number) => jest.advanceTimersByTime(count * 1000);
    leap(15_000);
    seconds(1);
    await until("a heartbeat is out", () => relay.of("agent.heartbeat").length > 0);
    for (let n = 0; n < 6; n += 1) {
      seconds(8);
      await connector.send(BOB, {});
    }
    expect(states).toEqual([]);
  });

  test("of a disposed connector has ended", async () => {
    {
      await using connector = alice();
      await connector.start();
      expect(relay.clients).toHaveLength(1);
    }
    await until("it has ended", () => relay.clients.length === 0);
  });

  test("keeps no program that closed it from its exit, although the relay reads nothing any more", async () => {
    relay.answer = () => {
      for (const client of relay.clients) setImmediate(() => client.pause());
      return { frame: "ack" };
    };
    const program = `const { Connector } = await import(${JSON.stringify(new URL("../src/index.ts", import.meta.url))});
      const connector = new Connector(${JSON.stringify({ url: relay.url, agent, key, takeOver: true })});
      await connector.start();
      await connector.close();`;
    const stdio = ["ignore", "ignore", "inherit"] as const;
    const running = spawn(process.execPath, ["--input-type=module", "--eval", program], { stdio: [...stdio] });
    // Without the connector's own patience, that of its websockets is 30 s.
    const hasExited = () => running.exitCode !== null;
    await until("it has exited", hasExited, 20_000).finally(() => running.kill("SIGKILL"));
    expect(running.exitCode).toBe(0);
  });
});

test("A message says what was meant at the time of the call, whatever becomes of the payload", async () => {
  const connector = await online();
  const payload = { word: "before" };
  const sent = connector.send(BOB, payload);
  payload.word = "after";
  await sent;
  expect(relay.of("message.send")).toMatchObject([{ payload: { word: "before" } }]);
});

describe("What was promised to an agent before its connection ended", () => {
  let number: number;
  /** A delivery under a key that the relay is asked about. */
  const delivery = (fields: object = {}, key_id = "gateway-unheard-of") => {
    number += 1;
    const common = { id: `e-${number}`, type: "message.send", from: BOB, to: agent, ts: Date.now(), sig: "s" };
    return { frame: "deliver", envelope: { ...common, key_id, payload: { n: number }, ...fields } };
  };
  /** Ends what it is asked about. */
  let check: () => void;

  beforeEach(() => {
    number = 0;
    waitForLookUps();
    const answer = Promise.withResolvers<string>();
    relay.http = () => answer.promise;
    check = () => answer.resolve("{}");
  });

  /** What the agent is told, in its order. */
  function told(connector: Connector): unknown[] {
    const all: unknown[] = [];
    connector.on("delivery", ({ payload }) => all.push(payload.n));
    connector.on("notice", ({ kind }) => all.push(kind));
    connector.on("state", ({ status }) => all.push(status));
    return all;
  }

  /** All that was told before has come. */
  async function cameIn(connector: Connector): Promise<void> {
    const { errors } = record(connector);
    relay.tell(refusal("rate_limited"));
    await until("it has read all of it", () => errors.length === 1);
  }

  test("is handed over before it is told that another connection took it over", async () => {
    const connector = await online();
    const events = told(connector);
    relay.tell(delivery(), delivery(), { frame: "notice", notice: "superseded" });
    await relay.close(4409);
    check();
    await untilState(connector, "closed");
    expect(events).toEqual([1, 2, "superseded", "closed"]);
  });

  test.each([1001, 1011])("with %d, after which it reconnects, is handed over", async (closeCode) => {
    const connector = await online();
    const events = told(connector);
    relay.tell(delivery(), delivery());
    await relay.close(closeCode);
    await untilState(connector, "reconnecting");
    check();
    await until("both are handed over", () => events.includes(2));
    expect(events.filter((event) => typeof event === "number")).toEqual([1, 2]);
  });

  test("by itself is handed over before its close resolves, and its loop ends", async () => {
    const connector = await online();
    relay.tell(delivery(), delivery());
    await cameIn(connector);
    const events = told(connector);
    const read = (async () => {
      const all: unknown[] = [];
      for await (const { payload } of connector) all.push(payload.n);
      return all;
    })();
    const closed = connector.close();
    await until("it is gone", () => relay.clients.length === 0);
    check();
    await closed;
    expect([events, await read]).toEqual([
      [1, 2, "closed"],
      [1, 2],
    ]);
  });

  test("can be the reply to a question, whatever ended the connection", async () => {
    const connector = await online();
    const reply = connector.ask(BOB, {});
    await until("it is asked", () => relay.of("message.send").length === 1);
    const [{ task_id }] = relay.of("message.send") as [Frame];
    relay.tell(delivery({ type: "message.reply", task_id }));
    await relay.close(4409);
    check();
    expect(await reply).toMatchObject({ payload: { n: 1 } });
  });

  test("is handed over within two seconds, however many look-ups the relay has wait", async () => {
    const connector = await online();
    const { deliveries } = record(connector);
    const waits = new Waits();
    relay.tell(...Array.from({ length: 40 }, (_, n) => delivery({}, `jkt-${String(n).padStart(43, "A")}`)));
    await relay.close(4409);
    await waits.end(2000);
    await untilState(connector, "closed");
    expect(deliveries).toHaveLength(40);
    expect(await errorOf(connector.send(BOB, {}))).toMatchObject({ code: "superseded" });
    check();
  });
});

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
