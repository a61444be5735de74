import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterAll, describe, expect, test } from "@jest/globals";
import { freePort } from "../../../test/support/free-port.ts";
import { until } from "../../../test/support/until.ts";
import { serveWhole } from "../../../test/support/whole-relay.ts";
import { shared } from "../fixture.ts";
import { jsonLines, testAgent } from "../kit.ts";
import { type Host, McpStage } from "./kit.ts";

const [ALICE, BOB] = ["agent://alice", "agent://bob"];

const stage = shared(new McpStage("alice", "bob", "dora"));

async function expectClosed(host: Host, code: string): Promise<void> {
  await host.untilConnection("closed");
  const told = { message: expect.any(String), hint: expect.any(String) };
  const since = { url: expect.stringMatching(/^ws:/), since_iso: expect.any(String) };
  const connection = { status: "closed", reason: code, ...told, ...since };
  expect((await host.call("my_status")).connection).toEqual(connection);
  const error = { code, hint: expect.any(String), connection };
  expect(await host.error("send_message", { to: BOB, message: "hi" })).toMatchObject(error);
  expect(await host.error("wait_for_messages", { timeout_seconds: 50 })).toMatchObject(error);
  expect(host.hasEnded).toBe(false);
}

test("A model that asks for its status first is told that it is online: the answer waits for the first attempt to connect", async () => {
  const alice = await stage.host("alice", stage.url);
  const url = `${stage.url.replace(/^http/, "ws")}/ws`;
  const connection = { status: "online", url, since_iso: expect.any(String) };
  expect((await alice.call("my_status")).connection).toEqual(connection);
});

describe("The tools say why there is no connection, and the process stays", () => {
  test("when the key is revoked; what came before can still be taken", async () => {
    const dora = await stage.onlineHost("dora", stage.url);
    const bob = await stage.online("bob", stage.url);
    await bob.send("agent://dora", { n: 1 });
    await until("it came", () => dora.notifications.length === 1);
    await stage.allow("alice", "bob");
    await dora.untilConnection("closed");
    expect(await dora.call("wait_for_messages")).toMatchObject({ messages: [{ payload: { n: 1 } }] });
    await expectClosed(dora, "key_revoked");
  });

  test("when another connection took the agent over; what was promised before is taken first", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob", stage.url);
    process.kill(alice.pid, "SIGSTOP");
    await bob.send(ALICE, { n: 1 });
    await stage.online("alice", stage.url, { takeOver: true });
    process.kill(alice.pid, "SIGCONT");
    expect(await alice.call("wait_for_messages")).toMatchObject({ messages: [{ payload: { n: 1 } }] });
    await expectClosed(alice, "superseded");
  });

  test("when another connection took the agent over, to a call that waits", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const waiting = alice.error("wait_for_messages", { timeout_seconds: 50 });
    await alice.untilRead();
    await stage.online("alice", stage.url, { takeOver: true });
    expect(await waiting).toMatchObject({ code: "superseded", connection: { status: "closed" } });
  });
});

describe("A host that never had a connection is told why, and its process stays,", () => {
  afterAll(() => stage.clear());

  test.concurrent("when the relay does not know the key; presence can still be asked", async () => {
    const stranger = await stage.host(testAgent("stranger"), stage.url);
    await expectClosed(stranger, "unknown_key");
    expect(await stranger.call("check_presence", { agent_id: "agent://nobody" })).toMatchObject({ status: "not_seen" });
  });

  test.concurrent("within seconds, when the relay accepts the connection and then says nothing", async () => {
    const mute = createServer((socket) => socket.resume()).listen(0, "127.0.0.1");
    await once(mute, "listening");
    const alice = await stage.host("alice", `http://127.0.0.1:${(mute.address() as AddressInfo).port}`);
    expect((await alice.call("my_status")).connection).toMatchObject({
      status: "connecting",
      hint: expect.any(String),
    });
    await alice.stop();
    mute.close();
  });

  test.concurrent("while no relay answers: which one, since when, why, and what to do", async () => {
    const place = `127.0.0.1:${await freePort()}`;
    const alice = await stage.host("alice", `http://${place}`);
    const { connection } = await alice.call("my_status");
    expect(connection).toEqual({
      ...{ status: "reconnecting", url: `ws://${place}/ws`, since_iso: expect.any(String) },
      ...{ reason: "unreachable", message: expect.stringContaining(`${place}/ws`), hint: expect.any(String) },
      retry_in_ms: expect.any(Number),
    });
    expect(connection.message).toContain("connection refused");
    expect(Date.parse(connection.since_iso)).toBeLessThanOrEqual(Date.now());
    const waited = await alice.call("wait_for_messages", { timeout_seconds: 0 });
    expect(waited.connection).toMatchObject({ reason: "unreachable", since_iso: connection.since_iso });
    expect(await alice.error("check_presence", { agent_id: BOB })).toMatchObject({ code: "unreachable" });
  });

  test.concurrent("where nobody set its address, or HTTP cannot go to it", async () => {
    const host = await stage.host("alice", "");
    await until("it is warned", () => host.events.includes("warning"));
    expect(host.log).toContain("RELAY_URL");
    const misled = await stage.host("bob", "http://127.0.0.1:9");
    expect(await misled.error("check_presence", { agent_id: ALICE })).toMatchObject({
      code: "unreachable",
      retry: "fix",
    });
  });

  test.concurrent("within seconds, when its model wants to send: nothing is sent while no relay answers", async () => {
    const alice = await stage.host("alice", `http://127.0.0.1:${await freePort()}`);
    await alice.untilConnection("reconnecting");
    await until("it is known why", async () => (await alice.call("my_status")).connection.reason === "unreachable");
    const why = expect.stringContaining("connection refused");
    const refused = [
      alice.error("send_message", { to: BOB, message: "hi" }),
      alice.error("ask_agent", { to: BOB, message: "hi", timeout_seconds: 1 }),
    ];
    for (const error of await Promise.all(refused)) {
      expect(error).toMatchObject({ code: "unreachable", outcome: "refused", retry: "later", message: why });
    }
  });
});

test("A model's agent comes back after the relay was gone, and what it said meanwhile goes out", async () => {
  const port = await freePort();
  const former = await serveWhole(stage.relay, { PORT: String(port) });
  const url = `http://127.0.0.1:${port}`;
  const [alice, bob] = [await stage.onlineHost("alice", url), await stage.onlineHost("bob", url)];
  await former.stop();
  await alice.untilConnection("reconnecting");
  const sending = alice.call("send_message", { to: BOB, message: "still there?" });
  await alice.untilRead();
  const later = await serveWhole(stage.relay, { PORT: String(port) });
  expect(await sending).toMatchObject({ envelope_id: expect.any(String) });
  await bob.untilConnection("online");
  await alice.call("send_message", { to: BOB, message: "again" });
  const heard: string[] = [];
  while (!heard.includes("again")) {
    const { messages } = await bob.call("wait_for_messages");
    heard.push(...messages.map(({ payload }: { payload: { message: string } }) => payload.message));
  }
  expect(alice.events[0]).toBe("online");
  expect(alice.events).toContain("reconnecting");
  expect(alice.events.at(-1)).toBe("online");
  await stage.clear();
  await later.stop();
});

describe("A line that is no message", () => {
  test("is told of on standard error without what it says, and the next is answered", async () => {
    const alice = await stage.process("alice", stage.url);
    for (const line of ["a-secret-word", "[]", '{"jsonrpc":"1.0","id":1,"method":"ping"}'])
      alice.child.stdin.write(`${line}\n`);
    alice.child.stdin.write('{"jsonrpc":"2.0","id":2,"method":"ping"}\n');
    await until("the ping is answered", () => alice.stdout.includes('"id":2'));
    await until(
      "each is told of",
      () => jsonLines(alice.stderr).filter(({ event }) => event === "warning").length === 3,
    );
    expect(alice.stderr).not.toContain("a-secret-word");
  });

  test("and without end ends the process, with an error", async () => {
    const alice = await stage.process("alice", stage.url);
    alice.child.stdin.on("error", () => {}).write("x".repeat(12_000_000));
    expect(await alice.exitCode).toBe(1);
    expect(jsonLines(alice.stderr).at(-1)).toMatchObject({ event: "error", code: "failed" });
  });
});

describe("The process ends", () => {
  test("with 0 when its client closes stdin, and has written nothing but MCP", async () => {
    const alice = await stage.process("alice", stage.url);
    await alice.untilOnline();
    alice.child.stdin.end();
    expect(await alice.exitCode).toBe(0);
    expect(alice.stdout).toBe("");
  });

  test("with 0 on SIGTERM, while a call waits", async () => {
    const alice = await stage.process("alice", stage.url);
    await alice.untilOnline();
    const call = { name: "wait_for_messages", arguments: { timeout_seconds: 50 } };
    alice.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: call })}\n`);
    alice.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 2, method: "ping" })}\n`);
    await until("the ping is answered", () => alice.stdout.includes('"id":2'));
    alice.child.kill("SIGTERM");
    expect(await alice.exitCode).toBe(0);
  });

  test("when the client is gone, and the agent is no longer online", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const bob = await stage.onlineHost("bob", stage.url);
    await alice.stop();
    const presence = async () => (await bob.call("check_presence", { agent_id: ALICE })).status;
    await until("alice is stale", async () => (await presence()) === "stale");
  });
});

test("No payload, key or signature is logged", async () => {
  const alice = await stage.onlineHost("alice", stage.url);
  await alice.call("send_message", { to: ALICE, message: "a-secret-word" });
  await alice.call("wait_for_messages");
  const { key } = stage.agent("alice") as { key: { privateKey?: string } };
  expect(alice.events).toContain("online");
  for (const secret of ["a-secret-word", key.privateKey]) expect(alice.log).not.toContain(secret);
});
