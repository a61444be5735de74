import { once } from "node:events";
import { mkdir, readdir, rename, writeFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type { TLSSocket } from "node:tls";
import { afterEach, describe, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { dialChannel } from "../../src/cli/control/channel.ts";
import { RelayHttp } from "../../src/cli/relay-http.ts";
import { shared } from "../fixture.ts";
import { jsonLines, next, testAgent } from "../kit.ts";
import { CommandLine } from "./kit.ts";
import type { Running } from "./shell.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));
const [ALICE, BOB] = ["agent://alice", "agent://bob-hmac"];
const HELLO = '{"message":"Hello, Bob."}';

const signal = new AbortController().signal;
const impostors: (() => void)[] = [];
afterEach(() => {
  for (const end of impostors.splice(0)) end();
});

/** A key file of the agent, with a key that somebody made up. */
async function madeUpKeyOf(name: string): Promise<string> {
  const { key } = testAgent(name);
  const record = { agent_id: `agent://${name}`, key_id: `${name}-made-up`, alg: key.alg };
  await line.write("made-up.json", { ...record, private_key: (key as { privateKey: string }).privateKey });
  return line.file("made-up.json");
}

/** The control socket of a process, as any program of the user finds it. */
async function socketPath({ child }: Running): Promise<string> {
  const [folder] = (await readdir(line.folder)).filter((name) => name.startsWith("agent-relay-"));
  const path = join(line.folder, folder as string);
  const socket = (await readdir(path)).find((name) => name.endsWith(`-${child.pid}`));
  return join(path, socket as string);
}

function websocketUrl(url = line.url): string {
  return new RelayHttp(url, { env: {}, signal }).websocketUrl;
}

/** As a command that has the key does. */
async function dial(path: string, agent = ALICE, url = websocketUrl()): Promise<TLSSocket> {
  const { key } = line.stage.agent("alice");
  const signing = { agent, key, credential: undefined, sealingKeys: [], trust: { issuers: [] } };
  return await dialChannel(path, signing, url, signal);
}

function asker(channel: TLSSocket) {
  const lines = createInterface({ input: channel })[Symbol.asyncIterator]();
  return async (request: object) => {
    channel.write(`${JSON.stringify(request)}\n`);
    return JSON.parse((await lines.next()).value as string);
  };
}

async function ended(socket: Socket): Promise<void> {
  await new Promise((resolve) => socket.on("error", () => {}).once("close", resolve));
}

/** Another program of the user, which takes the place of a listener's socket; that is at `moved` then. */
async function inPlaceOf(path: string, meet: (client: Socket, moved: string) => void): Promise<void> {
  const moved = join(dirname(path), "moved");
  await rename(path, moved);
  await pretendAt(path, (client) => meet(client, moved));
}

async function pretendAt(path: string, meet: (client: Socket) => void): Promise<void> {
  const clients: Socket[] = [];
  const server = createServer((client) => {
    clients.push(client.on("error", () => {}));
    meet(client);
  });
  await once(server.listen(path), "listening");
  impostors.push(() => {
    server.close();
    for (const client of clients) client.destroy();
  });
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
    const key = await madeUpKeyOf("alice");
    const commands = [
      ["send", BOB, HELLO],
      ["ask", BOB, HELLO],
      ["receipt", `ses_${"0".repeat(26)}`],
    ];
    for (const [command, ...words] of commands as [string, ...string[]][]) {
      const { code, stdout, stderr } = await line.run([command, "--json", "--key", key, ...words]);
      expect([code, stdout]).toEqual([7, ""]);
      expect(jsonLines(stderr).at(-1)).toMatchObject({ code: "invalid_key", retry: "fix" });
    }
    const model = line.begin(["mcp", "--json", "--key", key]);
    await model.reported("closed");
    expect(jsonLines(model.stderr).find(({ event }) => event === "closed")).toMatchObject({
      code: "superseded_elsewhere",
    });
    expect(await listener.end("SIGTERM")).toBe(0);
  });

  test("not for one that has it and means another agent, or another relay", async () => {
    const path = await socketPath(await line.listen("alice"));
    await expect(dial(path, "agent://alice.2")).rejects.toThrow();
    await expect(dial(path, ALICE, websocketUrl("http://127.0.0.1:1"))).rejects.toThrow();
    (await dial(path)).destroy();
  });

  test("not for a program that speaks without a proof", async () => {
    const receiver = await line.stage.online("bob-hmac", line.url);
    const path = await socketPath(await line.listen("alice"));
    const stranger = connect(path);
    const refused = ended(stranger.resume());
    for (const request of [{ to: BOB, payload: { n: 1 } }, { follow: true }])
      stranger.write(`${JSON.stringify(request)}\n`);
    await refused;
    await send();
    expect(await next(receiver)).toMatchObject({ from: ALICE, payload: { message: "Hello, Bob." } });
  });
});

describe("A program that takes the place of a control socket, without the key,", () => {
  test("is told nothing, and not believed", async () => {
    let heard = "";
    await inPlaceOf(await socketPath(await line.listen("alice")), (client) => {
      client.on("data", (chunk) => {
        heard += chunk.toString("latin1");
        client.write('{"event":"accepted","envelope_id":"00000000-0000-4000-8000-000000000000"}\n');
      });
    });
    const { code, stdout, stderr } = await send();
    expect([code, stdout]).toEqual([7, ""]);
    expect(jsonLines(stderr).at(-1)).toMatchObject({ code: "invalid_key" });
    expect(heard).not.toBe("");
    expect(heard).not.toContain("Hello");
  });

  test("passes on what it cannot read, nor repeat, nor change", async () => {
    const receiver = await line.stage.online("bob-hmac", line.url);
    const listener = await line.listen("alice");
    const path = await socketPath(listener);
    const heard: Buffer[] = [];
    let spoils = false;
    await inPlaceOf(path, (client, moved) => {
      const holder = connect(moved).on("error", () => {});
      client.on("data", (chunk: Buffer) => {
        heard.push(Buffer.from(chunk));
        // The lines of a client come after its two flights of the handshake.
        if (spoils && heard.length > 2) chunk[chunk.length - 1] = (chunk.at(-1) as number) ^ 1;
        holder.write(chunk);
      });
      holder.pipe(client);
      client.once("close", () => holder.destroy());
      holder.once("close", () => client.destroy());
    });
    expect((await send()).code).toBe(0);
    expect(await next(receiver)).toMatchObject({ payload: { message: "Hello, Bob." } });
    expect(Buffer.concat(heard).toString("latin1")).not.toContain("Hello");

    const again = connect(join(dirname(path), "moved"));
    const refused = ended(again.resume());
    again.write(Buffer.concat(heard.splice(0)));
    await refused;

    spoils = true;
    expect((await send()).code).not.toBe(0);
    spoils = false;
    await line.run(["send", "--key", line.keyFile("alice"), BOB, '{"message":"the second"}']);
    expect(await next(receiver)).toMatchObject({ payload: { message: "the second" } });
  });

  test("keeps nobody for longer than a handshake takes", async () => {
    await inPlaceOf(await socketPath(await line.listen("alice")), (client) => client.resume());
    const { code, stderr } = await send();
    expect(code).toBe(7);
    expect(jsonLines(stderr).at(-1)).toMatchObject({ code: "invalid_key" });
  });

  test("hides no other that has the key", async () => {
    const path = await socketPath(await line.listen("alice"));
    // Whichever the folder lists first.
    await inPlaceOf(path, (client) => client.write("no TLS here"));
    await rename(join(dirname(path), "moved"), `${path}0`);
    await pretendAt(`${path}1`, (client) => client.write("no TLS here"));
    expect(jsonLines((await send()).stdout)[0]).toMatchObject({ via: "listener" });
  });
});

test("a client that is killed before it has read its answer ends nobody's connection", async () => {
  const path = await socketPath(await line.listen("alice"));
  const witness = asker(await dial(path));
  const killed = (await dial(path)).pause();
  killed.write('{"receipt":"ses_1"}\n'.repeat(5000));
  await until("it has more than it reads", () => killed.readableLength >= killed.readableHighWaterMark);
  // What was answered is still in the socket: closing it resets the connection.
  killed.destroy();
  for (let n = 0; n < 3; n += 1) expect(await witness({ receipt: "ses_1" })).toMatchObject({ ref: expect.anything() });
});

test("a client that never ends its line is let go, whether it has the key or not", async () => {
  const path = await socketPath(await line.listen("alice"));
  const endless = [await dial(path), connect(path)];
  const closed = endless.map((socket) => ended(socket.resume()));
  for (const socket of endless) socket.write("x".repeat(300_000));
  await Promise.all(closed);
});

test("a client whose `ref` is of any depth, or that follows without end, ends nobody's connection", async () => {
  const path = await socketPath(await line.listen("alice"));
  const deep = asker(await dial(path));
  const [open, close] = ["[".repeat(60_000), "]".repeat(60_000)];
  expect(await deep(JSON.parse(`{"receipt":"ses_1","ref":[1]}`))).toMatchObject({ ref: 1 });
  const channel = await dial(path);
  const answers = createInterface({ input: channel })[Symbol.asyncIterator]();
  channel.write(`{"receipt":"ses_1","ref":${open}${close}}\n`);
  expect(JSON.parse((await answers.next()).value as string)).toMatchObject({ ref: 1 });
  for (let n = 0; n < 3; n += 1) {
    expect(await deep({ follow: true })).toMatchObject({ event: "state" });
  }
  expect(await deep({ receipt: "ses_1" })).toMatchObject({ ref: 5 });
});

test("a client that proves nothing is let go", async () => {
  const silent = connect(await socketPath(await line.listen("alice")));
  await ended(silent.resume());
});

describe("A control socket that a killed process left", () => {
  test("is removed by the next process that opens one, of whatever agent; those of processes that run are not", async () => {
    const killed = await line.listen("alice");
    const left = await socketPath(killed);
    const folder = dirname(left);
    await killed.end("SIGKILL");
    expect(await readdir(folder)).toContain(basename(left));
    // Of a process that runs and is about to listen: it refuses connections as the other does.
    const about = `${"0".repeat(24)}-${process.pid}`;
    await writeFile(join(folder, about), "");

    await line.listen("bob-hmac");
    const names = await readdir(folder);
    expect(names).not.toContain(basename(left));
    expect(names).toContain(about);
    await line.listen("alice");
    expect(jsonLines((await send()).stdout)[0]).toMatchObject({ via: "listener" });
  });

  test("is not what somebody else put into the folder, which keeps nobody from starting", async () => {
    const folder = dirname(await socketPath(await line.listen("alice")));
    await mkdir(join(folder, `${"a".repeat(24)}-${2 ** 22}`));
    await line.listen("bob-hmac");
  });

  test("stays while something listens there, as a process of another namespace does", async () => {
    const killed = await line.listen("alice");
    const left = await socketPath(killed);
    await killed.end("SIGKILL");
    const elsewhere = `${left.slice(0, -String(killed.child.pid).length)}${2 ** 22}`;
    await pretendAt(elsewhere, (client) => client.destroy());
    await line.listen("bob-hmac");
    expect(await readdir(dirname(left))).toContain(basename(elsewhere));
  });
});
