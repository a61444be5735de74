import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, test } from "@jest/globals";
import { proofOf } from "../../src/cli/control/proof.ts";
import { shared } from "../fixture.ts";
import { jsonLines, next, testAgent } from "../kit.ts";
import { CommandLine } from "./kit.ts";
import type { Running } from "./shell.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));
const [ALICE, BOB] = ["agent://alice", "agent://bob-hmac"];
const HELLO = '{"message":"Hello, Bob."}';

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

async function dial(path: string) {
  const socket = connect(path);
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  const ask = async (request: object) => {
    socket.write(`${JSON.stringify(request)}\n`);
    return JSON.parse((await lines.next()).value as string);
  };
  const closed = once(
    socket.on("error", () => {}),
    "close",
  );
  return { ask, closed, write: (text: string) => socket.write(text), end: () => socket.destroy() };
}

const signingOf = (name: string) => {
  const { agent, key } = line.stage.agent(name);
  return { agent, key, credential: undefined, sealingKeys: [], trust: { issuers: [] } };
};

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

  test("not for a proof that was shown before, nor for one of another socket", async () => {
    const path = await socketPath(await line.listen("alice"));
    const [first, second] = [await dial(path), await dial(path)];
    const { challenge } = await first.ask({ control: 2 });
    const proof = await proofOf(signingOf("alice"), basename(path), challenge);
    expect(await first.ask({ proof })).toMatchObject({ event: "proven" });
    expect(await second.ask({ proof })).toMatchObject({ event: "refused", code: "invalid_key" });
    const other = await second.ask({ control: 2 });
    expect(other.challenge).not.toBe(challenge);
    expect(await second.ask({ proof })).toMatchObject({ event: "refused", code: "invalid_key" });
    const again = await second.ask({ control: 2 });
    const elsewhere = await proofOf(signingOf("alice"), "another-socket", again.challenge);
    expect(await second.ask({ proof: elsewhere })).toMatchObject({ event: "refused", code: "invalid_key" });
    first.end();
    second.end();
  });

  test("not for a client before version 2, which begins with a request and is told so", async () => {
    const receiver = await line.stage.online("bob-hmac", line.url);
    const old = await dial(await socketPath(await line.listen("alice")));
    for (const request of [{ to: BOB, payload: { n: 1 } }, { follow: true }, { receipt: "ses_1" }]) {
      expect(await old.ask(request)).toMatchObject({ event: "refused", code: "other_version" });
    }
    old.end();
    await line.run(["send", "--key", line.keyFile("alice"), BOB, HELLO]);
    expect(await next(receiver)).toMatchObject({ from: ALICE, payload: { message: "Hello, Bob." } });
  });
});

test("a client that is killed before it has read its answer ends nobody's connection", async () => {
  const path = await socketPath(await line.listen("alice"));
  const witness = await dial(path);
  const killed = connect(path).pause();
  killed.write('{"control":2}\n');
  for (let n = 0; n < 3; n += 1) await witness.ask({ control: 2 });
  // What was answered is still in the socket: closing it resets the connection.
  killed.destroy();
  for (let n = 0; n < 3; n += 1) expect(await witness.ask({ control: 2 })).toMatchObject({ event: "challenge" });
  witness.end();
});

test("a client that never ends its line is let go, whether it has the key or not", async () => {
  const path = await socketPath(await line.listen("alice"));
  const endless = await dial(path);
  const { challenge } = await endless.ask({ control: 2 });
  await endless.ask({ proof: await proofOf(signingOf("alice"), basename(path), challenge) });
  endless.write("x".repeat(300_000));
  await endless.closed;
});

test("a client that proves nothing is let go", async () => {
  const silent = await dial(await socketPath(await line.listen("alice")));
  await silent.closed;
});
