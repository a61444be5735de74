import { once } from "node:events";
import { symlink } from "node:fs/promises";
import { Socket } from "node:net";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { HANDSHAKE_MS } from "../../src/cli/control/channel.ts";
import { Clients } from "../../src/cli/control/clients.ts";
import { findHolder } from "../../src/cli/control/holder.ts";
import { shared } from "../fixture.ts";
import { errorOf, jsonLines } from "../kit.ts";
import { holdSignals } from "../times.ts";
import { asker, BOB, besides, ControlSockets, HELLO } from "./control-kit.ts";
import { CommandLine } from "./kit.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));
const sockets = new ControlSockets(line);
afterEach(() => {
  jest.restoreAllMocks();
  sockets.clear();
});

/** More than one that proves nothing may have, and more than a process serves. */
const MANY = 300;

async function send(...options: string[]) {
  const { code, stdout, stderr } = await line.run([
    "send",
    "--json",
    ...options,
    "--key",
    line.keyFile("alice"),
    BOB,
    HELLO,
  ]);
  return { code, result: jsonLines(stdout)[0], error: jsonLines(stderr).at(-1) };
}

describe("A program that connects and proves nothing", () => {
  afterEach(() => {
    jest.useRealTimers();
  });

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
