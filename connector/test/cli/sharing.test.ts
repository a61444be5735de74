import { once } from "node:events";
import { chmod, link, mkdir, readdir } from "node:fs/promises";
import { connect, createServer, Server, type Socket } from "node:net";
import { basename, join } from "node:path";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import type { TcpProxy } from "../../../test/support/redis-proxy.ts";
import { until } from "../../../test/support/until.ts";
import { RelayHttp } from "../../src/cli/relay-http.ts";
import { GREETING_MS } from "../../src/cli/sharing/client.ts";
import { onState } from "../../src/cli/sharing/events.ts";
import { SharedConnection } from "../../src/cli/sharing/shared-connection.ts";
import { ALIVE, type ControlPlace, listenAt, socketPaths } from "../../src/cli/sharing/socket.ts";
import { Emitter } from "../../src/emitter.ts";
import { Connector, type Delivery, RelayError } from "../../src/index.ts";
import type { ConnectorState } from "../../src/types.ts";
import { unlessAway } from "../../src/unless-away.ts";
import { VERSION } from "../../src/version.ts";
import { shared } from "../fixture.ts";
import { errorOf, jsonLines, next } from "../kit.ts";
import { holdSignals, setTime, Waits } from "../times.ts";
import { ALICE, BOB, CommandLine, HELLO, type Running } from "./shell.ts";

/** Several processes of a user that use one connection of an agent. */

const line = shared(new CommandLine("alice", "bob-hmac"));
const ends: (() => unknown)[] = [];
afterEach(async () => {
  jest.restoreAllMocks();
  for (const end of ends.splice(0)) await end();
});

const as = (name: string) => ["--key", line.keyFile(name)];
const folder = () => line.file(".agent-relay/run");

/** Where alice's commands look for a process that has her connection. */
function place(url = line.url): ControlPlace {
  const { signal } = new AbortController();
  const { websocketUrl } = new RelayHttp(url, { env: {}, signal });
  return { agent: ALICE, websocketUrl, signal, warn: () => {} };
}

/** `relay send` of alice to bob. */
async function send() {
  const { code, stdout, stderr } = await line.run(["send", "--json", ...as("alice"), BOB, HELLO]);
  return { code, result: jsonLines(stdout)[0], reports: jsonLines(stderr) };
}

/** A process that has a control socket of alice's. */
async function pretend(meet: (client: Socket) => void): Promise<string> {
  const clients: Socket[] = [];
  const socket = await listenAt(place(), (client) => {
    clients.push(client.on("error", () => {}));
    meet(client);
  });
  ends.push(() => {
    socket?.server.close();
    for (const client of clients) client.destroy();
  });
  return socket?.path as string;
}

/** The first line of a process that has a control socket. */
const greeting = (members = {}) =>
  `${JSON.stringify({ event: "control", format: 1, version: VERSION, pid: 4711, ...members })}\n`;

/** As a process that is killed leaves its socket: a file behind which nothing listens. */
async function leave(path: string): Promise<string> {
  const server = createServer();
  await once(server.listen(`${path}.own`), "listening");
  await link(`${path}.own`, path);
  await new Promise((closed) => server.close(closed));
  return path;
}

/** @returns asks over the control socket of alice's process, and takes the answer; followers are told of what waits besides. */
async function asker() {
  const [path] = await socketPaths(place());
  const socket = connect(path as string).on("error", () => {});
  ends.push(() => socket.destroy());
  const heard: string[] = [];
  const lines = async function* () {
    let rest = "";
    for await (const chunk of socket.setEncoding("utf8")) {
      const whole = `${rest}${chunk}`.split("\n");
      rest = whole.pop() ?? "";
      yield* whole;
    }
  };
  const answers = lines();
  const answer = async (): Promise<Record<string, unknown>> => {
    for (;;) {
      const { value, done } = await answers.next();
      if (done) throw new Error("The socket was closed.");
      heard.push(value);
      if (value !== "" && !["control", "pending_sessions"].includes(JSON.parse(value).event)) return JSON.parse(value);
    }
  };
  const ask = async (request: object | string) => {
    socket.write(`${typeof request === "string" ? request : JSON.stringify(request)}\n`);
    return await answer();
  };
  return { socket, heard, ask, answer };
}

/** What a `relay mcp` of alice's has as its connection, which connects to `line.url`. */
function sharing(at: ControlPlace = place()) {
  const own: Connector[] = [];
  const open = (takeOver: boolean) => {
    own.push(new Connector({ url: line.url, ...line.stage.agent("alice"), takeOver }));
    return own.at(-1) as Connector;
  };
  const connection = new SharedConnection({ place: at, takeOver: false, mayFollow: true, shares: () => {}, open });
  const states: string[] = [];
  connection.on("state", ({ status }) => states.push(status));
  ends.push(() => connection.close());
  return { connection, own, states };
}

async function untilOnline({ connection }: ReturnType<typeof sharing>, isShared = false): Promise<void> {
  await until("it is online", () => connection.state.status === "online");
  expect(connection.isShared).toBe(isShared);
}

describe("relay send, beside a relay listen of its agent,", () => {
  test.each([
    ["alice", "agent://bob-hmac", "bob-hmac"],
    ["bob-hmac", "agent://alice", "alice"],
  ])("goes through that of %s, which stays online, and leaves no socket", async (name, to, receiving) => {
    const receiver = await line.stage.online(receiving, line.url);
    const listener = await line.listen(name);
    const { code, stdout } = await line.run(["send", "--json", ...as(name), to, HELLO]);
    expect([code, jsonLines(stdout)[0].via]).toEqual([0, "listener"]);
    expect(await next(receiver)).toMatchObject({ from: `agent://${name}`, payload: { message: "Hello, Bob." } });
    expect((await line.run(["send", ...as(name), "agent://BOB", HELLO])).code).toBe(2);
    expect(await listener.stop()).toBe(0);
    expect(await readdir(folder())).toEqual([]);
  });

  test("says within 3 s that the relay is away, and that nothing was sent", async () => {
    const listener = await line.listen("alice");
    await line.shut();
    await listener.reported("reconnecting");
    const waits = new Waits();
    const sending = [["--json"], []].map((json) => line.run(["send", ...json, ...as("alice"), BOB, HELLO]));
    // Each waits to say what it waits for, and the listener to say that there is no connection.
    await waits.end(2000, 4);
    const [asJson, asText] = await Promise.all(sending);
    expect(asJson).toMatchObject({ code: 4, stdout: "" });
    expect(jsonLines(asJson?.stderr ?? "").at(-1)).toMatchObject({ code: "unreachable", outcome: "refused" });
    expect(asText?.stderr).toContain("Outcome: refused.");
    await line.serve();
    await listener.reported("online", 2);
    expect((await line.run(["send", ...as("alice"), BOB, HELLO])).code).toBe(0);
  });

  test("says within 3 s what it waits for, whether as text or as JSON, and sends it when it can", async () => {
    const network = await line.stage.network(line.url);
    const at = ["--url", `http://${network.host}`, ...as("alice")];
    const listener = line.begin(["listen", "--json", ...at]);
    await listener.reported("online");
    network.hold();
    const waits = new Waits();
    const [asText, asJson] = [[], ["--json"]].map((json) => line.begin(["send", ...json, ...at, BOB, HELLO]));
    await waits.end(2000, 2);
    await Promise.all([asText?.wrote("Waiting for"), asJson?.reported("waiting")]);
    network.letGo();
    expect([await asText?.end(), await asJson?.end()]).toEqual([0, 0]);
    expect(asJson?.reports).toMatchObject([{ event: "waiting" }]);
  });

  test("as text says the outcome, too, where something was to be sent", async () => {
    await line.listen("alice");
    const bob = await line.stage.online("bob-hmac", line.url);
    const waits = new Waits();
    const asking = line.run(["ask", ...as("alice"), BOB, HELLO, "--timeout", "3000"]);
    await next(bob);
    await waits.begun(2_900_000, 2_999_999);
    waits.endBetween(2_900_000, 3_000_000);
    const unknown = await asking;
    const { stderr } = await line.run(["send", ...as("alice"), BOB, "hi"]);
    expect(unknown.stderr).toContain("Outcome: unknown.");
    expect(stderr).not.toContain("utcome");
  });

  test("ignores the control socket that a killed relay listen left behind", async () => {
    const listener = await line.listen("alice");
    const [path] = await socketPaths(place());
    await listener.stop();
    await leave(path as string);
    expect(await send()).toMatchObject({ code: 0, result: { via: "connection" } });
  });
});

describe("A command whose process with the connection", () => {
  test("ends before it answers says that the message may have been sent", async () => {
    await pretend((client) => client.once("data", () => client.end()).write(greeting()));
    expect(await send()).toMatchObject({ code: 5, reports: [{ code: "timeout", outcome: "unknown" }] });
  });

  test("is stopped meanwhile says so after a time of silence", async () => {
    setTime(ALIVE, "lookMs", 20);
    await pretend((client) => client.resume().write(greeting()));
    expect(await send()).toMatchObject({ code: 5, reports: [{ code: "timeout", outcome: "unknown" }] });
  });

  test("answered while the command itself was stopped is heard", async () => {
    setTime(ALIVE, "lookMs", 20);
    const answer = { event: "accepted", envelope_id: "e", target_delivery: { status: "online" } };
    await pretend((client) => {
      client.once("data", () => {
        client.write(`${JSON.stringify(answer)}\n`);
        // As SIGSTOP does: time goes by, and nothing is read.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
      });
      client.write(greeting());
    });
    expect(await send()).toMatchObject({ code: 0, result: { envelope_id: "e", via: "listener" } });
  });

  test("says something else than an answer is not taken for one that has sent it", async () => {
    await pretend((client) => client.once("data", () => client.write("null\n")).write(greeting()));
    expect(await send()).toMatchObject({ code: 5, reports: [{ outcome: "unknown" }] });
  });

  test("was stopped before sends nothing while the agent is online, and else by itself", async () => {
    await pretend((client) => client.resume());
    const greeted = holdSignals(GREETING_MS);
    const [first, second] = [send(), line.stage.online("alice", line.url)];
    await second;
    greeted();
    expect(await first).toMatchObject({ code: 4, reports: [{ code: "unreachable", outcome: "refused" }] });
  });

  test("is another beside ones that were stopped goes through that, without waiting for them", async () => {
    holdSignals(GREETING_MS);
    for (let n = 0; n < 3; n += 1) await pretend((client) => client.resume());
    await line.listen("alice");
    expect((await send()).result).toMatchObject({ via: "listener" });
  });

  test("has another version names both, and connects by itself", async () => {
    await pretend((client) => client.resume().write(greeting({ format: 2, version: "9.8.7" })));
    const { code, result, reports } = await send();
    expect([code, result.via]).toEqual([0, "connection"]);
    expect(reports).toEqual([expect.objectContaining({ event: "warning", code: "not_shared" })]);
    for (const version of ["9.8.7", VERSION]) expect(reports[0].message).toContain(version);
  });
});

describe("A process with the connection", () => {
  test("says that it is there, which no command takes for an answer", async () => {
    setTime(ALIVE, "everyMs", 1);
    await line.listen("alice");
    const { heard, ask } = await asker();
    await until("it said so", async () => {
      await ask({ receipt: "ses_1" });
      return heard.includes("");
    });
    expect((await send()).result).toMatchObject({ via: "listener" });
  });

  test("that ends refuses what it did not take", async () => {
    const listener = await line.listen("alice");
    const { ask, answer } = await asker();
    await ask({ receipt: "ses_1" });
    await listener.stop();
    expect(await answer()).toMatchObject({ event: "refused", code: "unreachable", outcome: "refused" });
  });

  test("stays when a client is killed before it has read its answers", async () => {
    await line.listen("alice");
    const witness = await asker();
    await witness.ask({ receipt: "ses_1" });
    const [path] = await socketPaths(place());
    const killed = connect(path as string).on("readable", () => {});
    ends.push(() => killed.destroy());
    killed.write('{"receipt":"ses_1"}\n'.repeat(5000));
    await until("it has more than it reads", () => killed.readableLength >= killed.readableHighWaterMark);
    // What was answered is still in the socket: closing it resets the connection.
    killed.destroy();
    for (let n = 0; n < 3; n += 1) expect(await witness.ask({ receipt: "ses_1" })).toMatchObject({ event: "refused" });
  });

  test("takes a ref of any depth, and a request to follow that is repeated", async () => {
    await line.listen("alice");
    const { ask } = await asker();
    const ref = `${"[".repeat(60_000)}${"]".repeat(60_000)}`;
    expect(await ask(`{"receipt":"ses_1","ref":${ref}}`)).toMatchObject({ ref: 1 });
    for (let n = 0; n < 3; n += 1) expect(await ask({ follow: true })).toMatchObject({ event: "state" });
    expect(await ask({ receipt: "ses_1" })).toMatchObject({ ref: 5 });
  });
});

test("What went out before the relay went away has an unknown outcome", async () => {
  const away = { state: { status: "reconnecting" }, on: () => () => {} } as unknown as Connector;
  const rejected = unlessAway(away, 1, async (signal) => {
    await new Promise((aborted) => signal.addEventListener("abort", aborted));
    throw new RelayError("aborted", { outcome: "unknown" });
  });
  expect(await errorOf(rejected)).toMatchObject({ code: "unreachable", outcome: "unknown", retry: "never" });
});

describe("What was promised to a process whose agent another connection took over", () => {
  /** Messages are promised to alice's process, then another one takes her over, and all of that comes to the process at once. */
  async function takenOverBehind(network: TcpProxy, count: number): Promise<void> {
    const bob = await line.stage.online("bob-hmac", line.url);
    network.hold();
    for (let n = 0; n < count; n += 1) {
      expect(await bob.send(ALICE, { n })).toMatchObject({ delivery: { canDeliverRealtime: true } });
    }
    await line.stage.online("alice", line.url, { takeOver: true });
    network.letGo();
  }

  const numbersIn = (listener: Running) => listener.lines.map(({ envelope }) => envelope.payload.n);

  test("is printed by relay listen, and given to its program, before it ends", async () => {
    const network = await line.stage.network(line.url);
    const listener = await line.listen("alice", "--url", `http://${network.host}`, "--exec", "sed 's/.*/ran/' >> ran");
    await takenOverBehind(network, 3);
    expect(await listener.end()).toBe(6);
    expect(numbersIn(listener)).toEqual([0, 1, 2]);
    expect(await line.text("ran")).toBe("ran\nran\nran\n");
    expect(listener.reports.at(-1)).toMatchObject({ event: "error", code: "superseded" });
  });

  test("comes to a process that shares its connection, also", async () => {
    const network = await line.stage.network(line.url);
    await line.listen("alice", "--url", `http://${network.host}`);
    const follower = sharing(place(`http://${network.host}`));
    const deliveries: Delivery[] = [];
    follower.connection.on("delivery", (delivery) => deliveries.push(delivery));
    await follower.connection.start();
    await untilOnline(follower, true);
    await takenOverBehind(network, 2);
    await until("it got them", () => deliveries.length === 2);
    expect(deliveries.map(({ payload }) => payload.n)).toEqual([0, 1]);
  });
});

describe("A process that shares its agent's connection", () => {
  test("looks for another that has it once the agent was taken over, and calls itself online no more", async () => {
    const own = sharing();
    await own.connection.start();
    await untilOnline(own);
    await line.stage.online("alice", line.url, { takeOver: true });
    await until("it looks for another", () => own.states.at(-1) === "connecting");
    await expect(own.connection.send(BOB, {})).rejects.toMatchObject({ code: "superseded" });
    expect(own.states).toEqual(["connecting", "connecting", "online", "connecting", "closed"]);
  });

  test("is not ended by a refusal: it looks for the one that has the connection again", async () => {
    await line.listen("alice");
    await chmod(folder(), 0o755);
    const looks: string[] = [];
    const second = sharing({ ...place(), warn: (text: string) => void looks.push(text) });
    await second.connection.start();
    // Two looks come before it is refused, and the making of its own socket; another one comes at once after it.
    const hasLooked = () => second.own[0]?.state.status === "closed" && looks.length >= 4;
    await until("it was refused, and has looked", hasLooked);
    await chmod(folder(), 0o700);
    await untilOnline(second, true);
    expect(second.states).not.toContain("closed");
    expect(second.own).toHaveLength(1);
  });
});

describe("A connection of which others are told", () => {
  const LOST = { status: "reconnecting", reason: "lost", retryInMs: 1, closeCode: 1006 } as const;

  /** What is told of these states and errors, in their order. */
  function told(...events: readonly (ConnectorState | RelayError)[]): (readonly [status: string, code?: string])[] {
    const [emitter, states] = [new Emitter(), [] as (readonly [string, string?])[]];
    const is: { state: ConnectorState } = { state: { status: "connecting" } };
    const connector = Object.assign(is, { on: emitter.on.bind(emitter) }) as unknown as Connector;
    onState(connector, (state) => states.push("error" in state ? [state.status, state.error?.code] : [state.status]));
    for (const event of events) {
      if (event instanceof RelayError) emitter.emit("error", event);
      else {
        is.state = event;
        emitter.emit("state", event);
      }
    }
    return states;
  }

  test("that is lost again and again tells what answers over HTTP in place of the relay, until it is online", () => {
    const states = told(new RelayError("not_a_relay"), LOST, { status: "online" }, LOST);
    expect(states).toEqual([["reconnecting", "not_a_relay"], ["online"], ["reconnecting"]]);
  });

  test("that reaches no relay tells why as soon as that is known", () => {
    const states = told({ ...LOST, reason: "unreachable" }, new RelayError("unreachable"));
    expect(states).toEqual([["reconnecting"], ["reconnecting", "unreachable"]]);
  });
});

describe("A control socket that a killed process left", () => {
  test("is removed by the next process that opens one, of whatever agent", async () => {
    await line.listen("alice");
    const left = await leave(join(folder(), `${"0".repeat(24)}-${"0".repeat(12)}`));
    await mkdir(join(folder(), `${"1".repeat(24)}-${"0".repeat(12)}`));
    await line.listen("bob-hmac");
    expect(await readdir(folder())).not.toContain(basename(left));
    expect((await send()).result).toMatchObject({ via: "listener" });
  });

  test("is none where something listens", async () => {
    const path = await pretend((client) => client.destroy());
    await line.listen("bob-hmac");
    expect(await readdir(folder())).toContain(basename(path));
  });
});

function unshared(reports: readonly { code?: string }[]): number {
  return reports.filter(({ code }) => code === "not_shared").length;
}

test("A control socket that cannot be had is told of once, with what helps, and the agent is online without", async () => {
  jest.spyOn(Server.prototype, "listen").mockImplementationOnce(function (this: Server) {
    process.nextTick(() => this.emit("error", Object.assign(new Error(), { code: "EPERM" })));
    return this;
  });
  const listener = await line.listen("alice");
  expect(unshared(listener.reports)).toBe(1);
  expect(listener.stderr).toContain("a file system that takes sockets");
});

describe("A folder of control sockets that is not private", () => {
  test("is used by nobody: each process says so once, and how to mend it", async () => {
    await line.listen("bob-hmac");
    const open = folder();
    await chmod(open, 0o755);
    const listener = await line.listen("alice");
    const [model, sent] = [line.begin(["mcp", "--json", ...as("alice")]), await send()];
    await model.reported("warning");
    await model.stop();
    await chmod(open, 0o700);
    expect(sent).toMatchObject({ code: 6, reports: [{ code: "not_shared" }, { code: "superseded_elsewhere" }] });
    for (const { reports, stderr } of [listener, model]) {
      expect(unshared(reports)).toBe(1);
      expect(stderr).toContain(`chmod 700 ${open}`);
    }
  });
});
