import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { channelDialer, HANDSHAKE_MS } from "../../src/cli/control/channel.ts";
import { shared } from "../fixture.ts";
import { errorOf, jsonLines, next, testAgent } from "../kit.ts";
import { holdIntervals, holdSignals } from "../times.ts";
import { ALICE, asker, BOB, besides, ControlSockets, dated, ended, HELLO } from "./control-kit.ts";
import { CommandLine } from "./kit.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));
const sockets = new ControlSockets(line);
afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
  sockets.clear();
});

/** A key file of alice, with the id of her key and a key that somebody made up. */
async function madeUpKey(): Promise<string> {
  const { key } = testAgent("alice");
  const record = await line.json("alice.json");
  await line.write("made-up.json", { ...record, private_key: (key as { privateKey: string }).privateKey });
  return line.file("made-up.json");
}

async function send(key = line.keyFile("alice")) {
  return await line.run(["send", "--json", "--key", key, BOB, HELLO]);
}

describe("The control socket is for whoever has the agent's key", () => {
  test.each(["alice", "bob-hmac"])(
    "whatever its kind: commands of %s with its key file go through it",
    async (name) => {
      await line.listen(name);
      const { code, stdout } = await line.run(["send", "--json", "--key", line.keyFile(name), "agent://nobody", HELLO]);
      expect([code, jsonLines(stdout)[0].via]).toEqual([0, "listener"]);
    },
  );

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
    expect(jsonLines((await send()).stdout)[0]).toMatchObject({ via: "listener" });
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
