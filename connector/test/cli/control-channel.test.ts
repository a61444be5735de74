import { once } from "node:events";
import { symlink } from "node:fs/promises";
import { Socket } from "node:net";
import { createInterface } from "node:readline";
import { duplexPair } from "node:stream";
import type { TLSSocket } from "node:tls";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { channelDialer, HANDSHAKE_MS } from "../../src/cli/control/channel.ts";
import { ControlClient } from "../../src/cli/control/client.ts";
import { Clients } from "../../src/cli/control/clients.ts";
import { findHolder } from "../../src/cli/control/holder.ts";
import { LiveLines } from "../../src/cli/control/live-lines.ts";
import { shared } from "../fixture.ts";
import { errorOf, jsonLines, next, testAgent } from "../kit.ts";
import { holdIntervals, holdSignals } from "../times.ts";
import { ALICE, asker, BOB, besides, ControlSockets, dated, ended, HELLO } from "./control-kit.ts";
import { CommandLine } from "./shell.ts";

/** Who gets through to the agent's connection over a control socket, and who does not. */

const line = shared(new CommandLine("alice", "bob-hmac"));
const sockets = new ControlSockets(line);
afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
  sockets.clear();
});

/** Silence that ends a channel, and the look that finds it. Source: docs/security.md#the-control-socket. */
const SILENT_MS = 12_000;
/** More than one that proves nothing may have, and more than a process serves. */
const MANY = 300;

/** A key file of alice, with the id of her key and a key that somebody made up. */
async function madeUpKey(): Promise<string> {
  const { key } = testAgent("alice");
  const record = await line.json("alice.json");
  await line.write("made-up.json", { ...record, private_key: (key as { privateKey: string }).privateKey });
  return line.file("made-up.json");
}

/** `relay send` of alice to bob. */
async function send() {
  const { code, stdout, stderr } = await line.run(["send", "--json", "--key", line.keyFile("alice"), BOB, HELLO]);
  return { code, result: jsonLines(stdout)[0], error: jsonLines(stderr).at(-1) };
}

describe("The control socket is for whoever has the agent's key:", () => {
  test("not for another key of its name: nothing goes out, and nothing is heard", async () => {
    const listener = await line.listen("alice");
    const key = await madeUpKey();
    const commands = [
      ["send", BOB, HELLO],
      ["ask", BOB, HELLO],
      ["receipt", `ses_${"0".repeat(26)}`],
    ];
    holdSignals(HANDSHAKE_MS);
    const ran = commands.map(([command = "", ...words]) => line.run([command, "--json", "--key", key, ...words]));
    for (const { code, stdout, stderr } of await Promise.all(ran)) {
      expect([code, stdout]).toEqual([7, ""]);
      expect(jsonLines(stderr).at(-1)).toMatchObject({ code: "invalid_key", retry: "fix" });
    }
    // After the commands, which it would let in: it opens a socket under the key that it was given.
    const model = line.begin(["mcp", "--json", "--key", key]);
    await model.reported("closed");
    expect(model.reports.find(({ event }) => event === "closed")).toMatchObject({ code: "bad_signature" });
    expect(await listener.stop()).toBe(0);
  });

  test("not under a key that cannot be read, which anybody could make up", async () => {
    const signing = {
      ...sockets.place(ALICE).signing,
      key: { keyId: "alice-1", alg: "ed25519", privateKey: "?" },
    } as const;
    await expect(channelDialer({ ...sockets.place(ALICE), signing })).rejects.toMatchObject({ code: "invalid_key" });
  });

  test("not for one that has it and means another agent, or another relay", async () => {
    await line.listen("alice");
    const path = await sockets.of();
    const others = [sockets.place("agent://alice.2"), sockets.place(ALICE, "http://127.0.0.1:1")];
    await Promise.all(others.map((place) => expect(sockets.dial(path, place)).rejects.toThrow()));
    await sockets.dial(path);
  });

  test("not for a program that speaks without a proof", async () => {
    const receiver = await line.stage.online("bob-hmac", line.url);
    await line.listen("alice");
    const path = await sockets.of();
    const stranger = sockets.connect(path);
    for (const request of [{ to: BOB, payload: { n: 1 } }, { follow: true }])
      stranger.write(`${JSON.stringify(request)}\n`);
    await ended(stranger);
    await send();
    expect(await next(receiver)).toMatchObject({ from: ALICE, payload: { message: "Hello, Bob." } });
  });
});

describe("A program that is at the place of a control socket, without the key,", () => {
  test("is told nothing, and not believed", async () => {
    await line.listen("alice");
    const path = await sockets.of();
    let heard = "";
    const pretended = await sockets.pretend(besides(path, "pretends"), (client) => {
      client.on("data", (chunk) => {
        heard += chunk.toString("latin1");
        client.write('{"event":"accepted","envelope_id":"00000000-0000-4000-8000-000000000000"}\n');
      });
    });
    await expect(sockets.dial(pretended)).rejects.toThrow();
    expect(heard).not.toBe("");
    expect(heard).not.toContain("agent://");
  });

  test("passes on what it cannot read, nor repeat, nor change", async () => {
    const receiver = await line.stage.online("bob-hmac", line.url);
    holdIntervals();
    await line.listen("alice");
    const path = await sockets.of();
    const heard: Buffer[] = [];
    let spoils = false;
    const passed = await sockets.pretendToBe(path, (piece) => {
      heard.push(Buffer.from(piece));
      // The lines of a client come after its two flights of the handshake.
      if (spoils && heard.length > 2) piece[20] = (piece[20] as number) ^ 1;
    });
    const hello = { to: BOB, payload: { message: "Hello, Bob." } };
    const channel = await sockets.dial(passed);
    expect(await asker(channel)(hello)).toMatchObject({ event: "accepted" });
    expect(await next(receiver)).toMatchObject({ payload: hello.payload });
    expect(Buffer.concat(heard).toString("latin1")).not.toContain("Hello");
    channel.destroy();

    const again = sockets.connect(path);
    again.write(Buffer.concat(heard.splice(0)));
    await ended(again);

    spoils = true;
    const spoilt = await sockets.dial(passed);
    const answered = errorOf(asker(spoilt)(hello));
    await until("it is let go", () => {
      jest.advanceTimersByTime(3000);
      return spoilt.closed;
    });
    expect(await answered).toBeInstanceOf(Error);
    spoils = false;
    await asker(await sockets.dial(passed))({ to: BOB, payload: { message: "the second" } });
    expect(await next(receiver)).toMatchObject({ payload: { message: "the second" } });
  });
});

test("a client that is killed before it has read its answer ends nobody's connection", async () => {
  await line.listen("alice");
  const path = await sockets.of();
  const witness = asker(await sockets.dial(path));
  const killed = (await sockets.dial(path)).pause();
  killed.write(dated('{"receipt":"ses_1"}').repeat(5000));
  await until("it has more than it reads", () => killed.readableLength >= killed.readableHighWaterMark);
  // What was answered is still in the socket: closing it resets the connection.
  killed.destroy();
  for (let n = 0; n < 3; n += 1) expect(await witness({ receipt: "ses_1" })).toMatchObject({ ref: expect.anything() });
});

test("a client that never ends its line is let go, whether it has the key or not", async () => {
  // Its silence would end it also.
  holdIntervals();
  await line.listen("alice");
  const path = await sockets.of();
  const endless = [(await sockets.dial(path)).resume(), sockets.connect(path)];
  for (const socket of endless) socket.write("x".repeat(300_000));
  await Promise.all(endless.map(ended));
});

test("a client whose `ref` is of any depth, or that follows without end, ends nobody's connection", async () => {
  await line.listen("alice");
  const path = await sockets.of();
  const deep = asker(await sockets.dial(path));
  const [open, close] = ["[".repeat(60_000), "]".repeat(60_000)];
  expect(await deep(JSON.parse(`{"receipt":"ses_1","ref":[1]}`))).toMatchObject({ ref: 1 });
  const other = asker(await sockets.dial(path));
  expect(await other(`{"receipt":"ses_1","ref":${open}${close}}`)).toMatchObject({ ref: 1 });
  for (let n = 0; n < 3; n += 1) {
    expect(await deep({ follow: true })).toMatchObject({ event: "state" });
  }
  expect(await deep({ receipt: "ses_1" })).toMatchObject({ ref: 5 });
});

/** Both ends of a channel that a program without the key passes on. */
const channelEnds = () => duplexPair() as unknown as [TLSSocket, TLSSocket];

describe("A channel that a program without the key passes on", () => {
  test("and then does not keeps nobody waiting for a line", async () => {
    jest.useFakeTimers();
    const [near, far] = channelEnds();
    far.resume();
    const client = new ControlClient(near, "", new AbortController().signal);
    client.write({ receipt: "ses_1" });
    const answer = client.next();
    await jest.advanceTimersByTimeAsync(SILENT_MS);
    expect([near.destroyed, await answer]).toEqual([true, undefined]);
  });

  test("stays open while both ends are there, though they have nothing to say", async () => {
    jest.useFakeTimers();
    const ends = channelEnds();
    const [one, other] = ends.map((end) => new LiveLines(end)) as [LiveLines, LiveLines];
    const told = one.texts[Symbol.asyncIterator]().next();
    await jest.advanceTimersByTimeAsync(10 * SILENT_MS);
    expect(ends.map(({ destroyed }) => destroyed)).toEqual([false, false]);
    other.write("still here");
    await jest.advanceTimersByTimeAsync(0);
    expect(await told).toMatchObject({ value: "still here" });
    for (const end of ends) end.destroy();
  });
});

test("What a program without the key keeps back is not sent later", async () => {
  await line.listen("alice");
  const path = await sockets.of();
  const receiver = await line.stage.online("bob-hmac", line.url);
  const channel = await sockets.dial(path);
  const answers = createInterface({ input: channel })[Symbol.asyncIterator]();
  channel.write(dated(JSON.stringify({ to: BOB, payload: { message: "late" } }), SILENT_MS));
  const answer = String((await answers.next()).value).replace(/^\d+ /, "");
  expect(JSON.parse(answer)).toMatchObject({ event: "refused", outcome: "refused", retry: "later" });
  await ended(channel);
  const hello = { to: BOB, payload: { message: "in time" } };
  expect(await asker(await sockets.dial(path))(hello)).toMatchObject({ event: "accepted" });
  expect(await next(receiver)).toMatchObject({ from: ALICE, payload: hello.payload });
});

describe("A program that connects and proves nothing", () => {
  test("takes no place of one that has the key, however many connections it opens", async () => {
    await line.listen("alice");
    const path = await sockets.of();
    const witness = asker(await sockets.dial(path));
    const strangers = Array.from({ length: MANY }, () => sockets.connect(path));
    await Promise.all(strangers.map((stranger) => once(stranger, "connect")));
    expect((await send()).result).toMatchObject({ via: "listener" });
    expect(await witness({ receipt: "ses_1" })).toMatchObject({ ref: 1 });
  });

  test("makes room for the next, the oldest first", () => {
    const clients = new Clients();
    const proven = new Socket();
    clients.admit(proven);
    clients.prove(proven);
    const silent = Array.from({ length: MANY }, () => new Socket());
    for (const socket of silent) clients.admit(socket);
    expect([silent[0], silent.at(-1), proven].map((socket) => socket?.destroyed)).toEqual([true, false, false]);
    clients.destroy();
  });

  test("is let go after the time of a handshake, whether it says nothing or a handshake byte by byte", () => {
    jest.useFakeTimers();
    const clients = new Clients();
    const all = [new Socket(), new Socket(), new Socket()] as const;
    for (const socket of all) clients.admit(socket);
    const [, slow, proven] = all;
    clients.prove(proven);
    jest.advanceTimersByTime(HANDSHAKE_MS - 1);
    slow.emit("data", Buffer.from("x"));
    expect(all.map(({ destroyed }) => destroyed)).toEqual([false, false, false]);
    jest.advanceTimersByTime(1);
    expect(all.map(({ destroyed }) => destroyed)).toEqual([true, true, false]);
    clients.destroy();
  });
});

describe("What listens in the folder and does not prove the key", () => {
  test("hides no process that does", async () => {
    await line.listen("alice");
    const path = await sockets.of();
    // Whichever the folder lists first.
    for (const end of ["000000", "zzzzzz"])
      await sockets.pretend(besides(path, end), (client) => client.write("no TLS"));
    expect((await send()).result).toMatchObject({ via: "listener" });
  });

  test("costs a command one handshake's time, however much of it there is", async () => {
    const path = await sockets.left();
    let met = 0;
    const meet = (client: Socket) => {
      client.resume();
      met += 1;
    };
    for (let n = 0; n < 10; n += 1) await sockets.pretend(besides(path, `silent${n}`), meet);
    const timeIsOver = holdSignals(HANDSHAKE_MS);
    const found = errorOf(findHolder(sockets.place()));
    await until("it tries all of them", () => met === 10);
    timeIsOver();
    expect(await found).toMatchObject({ code: "unreachable" });
  });

  test("keeps no command from connecting by itself, unless the agent is online", async () => {
    const path = await sockets.left();
    await sockets.pretend(besides(path, "speaks"), (client) => client.write("no TLS"));
    expect((await send()).result).toMatchObject({ via: "connection" });
    await line.stage.online("alice", line.url);
    expect(await send()).toMatchObject({ code: 7, error: { code: "invalid_key", retry: "fix" } });
  });

  test("is no link to a socket elsewhere, which hears nothing", async () => {
    const path = await sockets.left();
    const elsewhere = await sockets.pretend(line.file("elsewhere"), () => (hears = true));
    let hears = false;
    await symlink(elsewhere, besides(path, "linked"));
    expect(await findHolder(sockets.place())).toBeUndefined();
    expect(hears).toBe(false);
  });
});

describe("A process that has no room for a client", () => {
  test("is not taken for gone: the client tries again", async () => {
    const path = await sockets.left();
    await line.listen("alice");
    let refused = 0;
    const holder = await sockets.of();
    const passed = await sockets.pretend(besides(path, "passed"), (client) => {
      refused += 1;
      if (refused <= 3) return client.destroy();
      const through = sockets.connect(holder);
      client.pipe(through).pipe(client);
    });
    const place = sockets.place();
    const client = await findHolder(place, holder);
    expect(refused).toBe(4);
    client?.close();
    expect(passed).toBeDefined();
  });

  test.each([
    ["closes", 3, (client: Socket) => client.destroy()],
    ["says nothing", 1, (client: Socket) => client.resume()],
  ])("is told of where it %s each time, while the agent is online", async (_, times, meet) => {
    const path = await sockets.left();
    await line.stage.online("alice", line.url);
    let met = 0;
    await sockets.pretend(besides(path, "other"), (client) => {
      meet(client);
      met += 1;
    });
    const timeIsOver = holdSignals(HANDSHAKE_MS);
    const sending = send();
    await until("it has tried", () => met >= times);
    timeIsOver();
    expect(await sending).toMatchObject({
      code: 4,
      error: { code: "unreachable", retry: "later", outcome: "refused" },
    });
  });
});
