import { symlink } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "@jest/globals";
import { findHolder } from "../../src/cli/control/holder.ts";
import { shared } from "../fixture.ts";
import { jsonLines } from "../kit.ts";
import { asker, BOB, besides, ControlSockets, ended, HELLO } from "./control-kit.ts";
import { CommandLine } from "./kit.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));
const sockets = new ControlSockets(line);
afterEach(() => sockets.clear());

/** More than one that proves nothing may have, and more than a process serves. */
const MANY = 300;
const HANDSHAKE_MS = 5000;

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

/** The first record of a handshake, whose length takes minutes. */
function drip(socket: Socket) {
  socket.write(Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]));
  return setInterval(() => socket.write("x"), 300);
}

/** A socket of a process that was, beside which the programs of a test listen. */
async function leftPath(): Promise<string> {
  const listener = await line.listen("alice");
  const path = await sockets.of(listener);
  await listener.end("SIGTERM");
  return path;
}

describe("A program that connects and proves nothing", () => {
  test("takes no place of one that has the key, however many connections it opens", async () => {
    const path = await sockets.of(await line.listen("alice"));
    const witness = asker(await sockets.dial(path));
    sockets.flood(path, MANY);
    for (let n = 0; n < 5; n += 1) await (await findHolder(sockets.place()))?.close();
    expect((await send()).result).toMatchObject({ via: "listener" });
    expect(await witness({ receipt: "ses_1" })).toMatchObject({ ref: 1 });
  });

  test("makes room for the next, the oldest first", async () => {
    const path = await sockets.of(await line.listen("alice"));
    const before = performance.now();
    const silent = Array.from({ length: MANY }, () => sockets.connect(path));
    const [first, last] = [silent[0], silent.at(-1)] as [Socket, Socket];
    await ended(first);
    if (performance.now() - before < HANDSHAKE_MS) expect(last.closed).toBe(false);
    expect(performance.now() - before).toBeLessThan(HANDSHAKE_MS);
  });

  test("is let go, whether it says nothing or a handshake byte by byte", async () => {
    const path = await sockets.of(await line.listen("alice"));
    const [silent, slow] = [sockets.connect(path), sockets.connect(path)];
    const timer = drip(slow);
    await Promise.all([ended(silent), ended(slow)]);
    clearInterval(timer);
  });
});

describe("What listens in the folder and does not prove the key", () => {
  test("hides no process that does", async () => {
    const path = await sockets.of(await line.listen("alice"));
    // Whichever the folder lists first.
    for (const end of ["000000", "zzzzzz"])
      await sockets.pretend(besides(path, end), (client) => client.write("no TLS"));
    expect((await send()).result).toMatchObject({ via: "listener" });
  });

  test("costs a command one handshake's time, however much of it there is", async () => {
    const path = await leftPath();
    for (let n = 0; n < 10; n += 1) await sockets.pretend(besides(path, `silent${n}`), (client) => client.resume());
    const before = performance.now();
    await expect(findHolder(sockets.place())).rejects.toMatchObject({ code: "unreachable" });
    expect(performance.now() - before).toBeLessThan(2 * HANDSHAKE_MS);
  });

  test("keeps no command from connecting by itself, unless the agent is online", async () => {
    const path = await leftPath();
    await sockets.pretend(besides(path, "speaks"), (client) => client.write("no TLS"));
    expect((await send()).result).toMatchObject({ via: "connection" });
    await line.stage.online("alice", line.url);
    expect(await send()).toMatchObject({ code: 7, error: { code: "invalid_key", retry: "fix" } });
  });

  test("is no link to a socket elsewhere, which hears nothing", async () => {
    const path = await leftPath();
    const elsewhere = await sockets.pretend(line.file("elsewhere"), () => (hears = true));
    let hears = false;
    await symlink(elsewhere, besides(path, "linked"));
    expect(await findHolder(sockets.place())).toBeUndefined();
    expect(hears).toBe(false);
  });
});

describe("A process that has no room for a client", () => {
  test("is not taken for gone: the client tries again", async () => {
    const path = await leftPath();
    const listener = await line.listen("alice");
    let refused = 0;
    const holder = await sockets.of(listener);
    const passed = await sockets.pretend(besides(path, "passed"), (client) => {
      refused += 1;
      if (refused <= 3) return client.destroy();
      const through = connect(holder).on("error", () => {});
      client.pipe(through).pipe(client);
    });
    const place = sockets.place();
    const client = await findHolder(place, holder);
    expect(refused).toBe(4);
    client?.close();
    expect(passed).toBeDefined();
  });

  test.each([
    ["closes", (client: Socket) => void client.destroy()],
    ["says nothing", (client: Socket) => void client.resume()],
  ])("is told of where it %s each time, while the agent is online", async (_, meet) => {
    const path = await leftPath();
    await line.stage.online("alice", line.url);
    await sockets.pretend(besides(path, "other"), meet);
    const failed = await send();
    expect(failed).toMatchObject({ code: 4, error: { code: "unreachable", retry: "later", outcome: "refused" } });
  });
});
