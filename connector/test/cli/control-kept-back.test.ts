import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ControlClient } from "../../src/cli/control/client.ts";
import { sharedByAll } from "../fixture.ts";
import { next } from "../kit.ts";
import { ALICE, asker, BOB, ControlSockets, dated, ended } from "./control-kit.ts";
import { CommandLine } from "./kit.ts";

const line = sharedByAll(new CommandLine("alice", "bob-hmac"));
const sockets = new ControlSockets(line);
/** Of the process that has alice's connection. */
let path: string;
beforeAll(async () => {
  path = await sockets.of(await line.listen("alice"));
});

const FOLLOW = { follow: true };
/** Far more than the silence that ends a channel. */
const BOUND_MS = 40_000;

/** A channel of alice's, over a program of this name that passes it on until it is told to stop. */
async function passedOn(name: string): Promise<{ client: ControlClient; freeze: () => void }> {
  let isFrozen = false;
  const passed = await sockets.pretend(line.file(name), (client) => {
    const holder = sockets.connect(path);
    client.on("data", (piece) => isFrozen || holder.write(piece));
    holder.on("data", (piece) => isFrozen || client.write(piece));
  });
  const client = new ControlClient(await sockets.dial(passed), passed, new AbortController().signal);
  return { client, freeze: () => (isFrozen = true) };
}

/** The next that a follower is told, but for what waits for the agent. */
async function told(client: ControlClient) {
  let line = await client.next();
  while (line?.event === "pending_sessions") line = await client.next();
  return line;
}
describe("A channel", () => {
  afterAll(() => sockets.clear());

  test.concurrent(
    "that a program without the key passes on, and then does not, keeps no command waiting for its answer",
    async () => {
      const { client, freeze } = await passedOn("asked");
      freeze();
      client.write({ receipt: "ses_1" });
      expect(await client.next()).toBeUndefined();
    },
    BOUND_MS,
  );

  test.concurrent(
    "that a program without the key passes on, and then does not, keeps no process that follows in the belief that the agent is online",
    async () => {
      const { client, freeze } = await passedOn("followed");
      client.write(FOLLOW);
      expect(await told(client)).toMatchObject({ state: { status: "online" } });
      freeze();
      expect(await told(client)).toBeUndefined();
    },
    BOUND_MS,
  );

  test.concurrent("that a program without the key passes on has nothing sent later", async () => {
    const receiver = await line.stage.online("bob-hmac", line.url);
    const channel = await sockets.dial(path);
    const answers = createInterface({ input: channel })[Symbol.asyncIterator]();
    channel.write(dated(JSON.stringify({ to: BOB, payload: { message: "late" } }), 12_000));
    const answer = String((await answers.next()).value).replace(/^\d+ /, "");
    expect(JSON.parse(answer)).toMatchObject({ event: "refused", outcome: "refused", retry: "later" });
    await ended(channel);
    const hello = { to: BOB, payload: { message: "in time" } };
    expect(await asker(await sockets.dial(path))(hello)).toMatchObject({ event: "accepted" });
    expect(await next(receiver)).toMatchObject({ from: ALICE, payload: hello.payload });
  });

  test.concurrent(
    "of a client that is not heard of any more is closed, and that of one that is there and asks nothing is not",
    async () => {
      const witness = asker(await sockets.dial(path));
      const silent = await sockets.dial(path);
      silent.resume().write(dated(JSON.stringify(FOLLOW)));
      await ended(silent);
      expect(await witness({ receipt: "ses_1" })).toMatchObject({ ref: 1 });
    },
    BOUND_MS,
  );
});
