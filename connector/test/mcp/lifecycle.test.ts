import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import type { Frame } from "../../../test/support/agent.ts";
import { freePort } from "../../../test/support/free-port.ts";
import { until } from "../../../test/support/until.ts";
import { FIRST_START } from "../../src/limits.ts";
import type { Running } from "../cli/shell.ts";
import { shared } from "../fixture.ts";
import { jsonLines, next, testAgent } from "../kit.ts";
import { SELF_SIGNED } from "../self-signed.ts";
import { setTime } from "../times.ts";
import { type Host, McpStage } from "./kit.ts";

const [ALICE, BOB] = ["agent://alice", "agent://bob"];

/** A server that shares no connection does not look for another process that has it: it is told at once. */
const ALONE = ["--max-age", "600"];

const stage = shared(new McpStage("alice", "bob", "dora"));

afterEach(() => {
  jest.restoreAllMocks();
});

/** Resolves when the server has reported that its connection ended. */
async function untilEnded(host: Host): Promise<void> {
  await until("the connection has ended", () => host.events.includes("closed"));
}

/** Each call tries again meanwhile. */
async function expectWhy(host: Host, code: string): Promise<void> {
  const connection = async () => (await host.call("my_status")).connection;
  await until("it is known why", async () => (await connection()).reason === code);
  const told = { reason: code, message: expect.any(String), hint: expect.any(String) };
  expect(await connection()).toMatchObject({
    url: expect.stringMatching(/^ws:/),
    since_iso: expect.any(String),
    ...told,
  });
  expect(host.hasEnded).toBe(false);
}

/** The same, where a start is refused at once. */
async function expectRefused(host: Host, code: string): Promise<void> {
  await expectWhy(host, code);
  const error = { code, hint: expect.any(String), connection: { reason: code } };
  expect(await host.error("send_message", { to: BOB, message: "hi" })).toMatchObject(error);
  expect(await host.error("wait_for_messages", { timeout_seconds: 50 })).toMatchObject(error);
}

describe("The tools say why there is no connection, and the server stays", () => {
  test("when the key is revoked; what came before can still be taken", async () => {
    const dora = await stage.onlineHost("dora", stage.url);
    const bob = await stage.online("bob", stage.url);
    await bob.send("agent://dora", { n: 1 });
    await until("it came", () => dora.notifications.length === 1);
    await stage.allow("alice", "bob");
    await untilEnded(dora);
    expect(dora.log).toContain("key_revoked");
    expect(await dora.call("wait_for_messages")).toMatchObject({ messages: [{ payload: { n: 1 } }] });
    await expectWhy(dora, "unknown_key");
  });

  test("when another connection took the agent over; what was promised before is taken first", async () => {
    const proxy = await stage.proxy(stage.url);
    const alice = await stage.onlineHost("alice", proxy.url, ALONE);
    const bob = await stage.online("bob", stage.url);
    // The delivery comes right before the end.
    let kept: Frame | undefined;
    proxy.toAgent = (frame) => {
      if (frame.frame === "deliver") kept = frame;
      if (frame.frame === "notice" && kept !== undefined) proxy.tell(kept);
      return frame === kept ? undefined : frame;
    };
    await bob.send(ALICE, { n: 1 });
    await stage.online("alice", stage.url, { takeOver: true });
    expect(await alice.call("wait_for_messages")).toMatchObject({ messages: [{ payload: { n: 1 } }] });
    await expectRefused(alice, "superseded_elsewhere");
  });

  test("when another connection took the agent over, to a call that waits", async () => {
    const alice = await stage.onlineHost("alice", stage.url, ALONE);
    const waiting = alice.error("wait_for_messages", { timeout_seconds: 50 });
    await alice.untilRead();
    await stage.online("alice", stage.url, { takeOver: true });
    expect(await waiting).toMatchObject({ code: "superseded", connection: { status: "closed" } });
  });
});

describe("A host that never had a connection is told why, and its server stays,", () => {
  test("when the relay refuses its key; presence can still be asked", async () => {
    const stranger = await stage.host(testAgent("alice"), stage.url);
    await expectRefused(stranger, "bad_signature");
    expect(await stranger.call("check_presence", { agent_id: "agent://nobody" })).toMatchObject({ status: "not_seen" });
  });

  test("when the relay still does not know its key after 10 s", async () => {
    const proxy = await stage.proxy(stage.url);
    const stranger = await stage.host(testAgent("stranger"), proxy.url);
    await until("it presents its key again", () => proxy.sent.length >= 2);
    setTime(FIRST_START, "unknownKeyMs", 0);
    await untilEnded(stranger);
    await expectWhy(stranger, "unknown_key");
  });

  test("while no relay answers: which one, since when, why, and what to do", async () => {
    const network = await stage.network();
    network.cut();
    const place = network.host;
    const alice = await stage.host("alice", `http://${place}`);
    await until("it is known why", async () => (await alice.call("my_status")).connection.reason === "unreachable");
    const { connection } = await alice.call("my_status");
    expect(connection).toEqual({
      ...{ status: "reconnecting", url: `ws://${place}/ws`, since_iso: expect.any(String) },
      ...{ reason: "unreachable", message: expect.stringContaining(`${place}/ws`), hint: expect.any(String) },
      retry_in_ms: expect.any(Number),
    });
    expect(connection.message).toContain("connection reset");
    expect(Date.parse(connection.since_iso)).toBeLessThanOrEqual(Date.now());
    const waited = await alice.call("wait_for_messages", { timeout_seconds: 0 });
    expect(waited.connection).toMatchObject({ reason: "unreachable", since_iso: connection.since_iso });
    expect(await alice.error("check_presence", { agent_id: BOB })).toMatchObject({ code: "unreachable" });
  });

  test("where nobody set its address, or nothing listens there", async () => {
    const host = await stage.host("alice", "");
    await until("it is warned", () => host.events.includes("warning"));
    expect(host.log).toContain("RELAY_URL");
    const misled = await stage.host("bob", `http://127.0.0.1:${await freePort()}`);
    expect(await misled.error("check_presence", { agent_id: ALICE })).toMatchObject({
      code: "unreachable",
      retry: "later",
    });
  });

  test("where nobody vouches for the relay's certificate, with the variable that may, once and in each call", async () => {
    const server = createServer(SELF_SIGNED);
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
    const replaced = jest.replaceProperty(process, "env", env);
    const alice = await stage.host("alice", `https://localhost:${(server.address() as AddressInfo).port}`);
    await untilEnded(alice);
    const told = {
      message: expect.stringContaining("NODE_EXTRA_CA_CERTS is not set in this process's environment."),
      hint: expect.stringContaining("in the env member of the MCP configuration"),
    };
    const reported = expect.stringMatching(/is not set in this process's environment\..* in the env member of/);
    expect(jsonLines(alice.log)).toMatchObject([{ event: "closed", message: reported }]);
    const connection = { status: "closed", reason: "unreachable", ...told };
    expect((await alice.call("my_status")).connection).toMatchObject(connection);
    const error = { code: "unreachable", ...told };
    expect(await alice.error("send_message", { to: BOB, message: "hi" })).toMatchObject(error);
    expect(await alice.error("check_presence", { agent_id: BOB })).toMatchObject(error);
    replaced.restore();
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  });
});

describe("The first call after a connection has ended begins another, without a restart,", () => {
  test("of an agent that another connection had taken over, whose unread messages stay", async () => {
    const alice = await stage.onlineHost("alice", stage.url, ALONE);
    const bob = await stage.online("bob", stage.url);
    await bob.send(ALICE, { n: 1 });
    await until("it came", () => alice.notifications.length === 1);
    const other = await stage.online("alice", stage.url, { takeOver: true });
    await untilEnded(alice);
    const hi = { to: BOB, message: "hi" };
    expect(await alice.error("send_message", hi)).toMatchObject({ code: "superseded_elsewhere" });
    await other.close();
    await stage.untilGone(ALICE);
    await alice.call("send_message", { to: BOB, message: "here again" });
    expect((await next(bob)).payload).toEqual({ message: "here again" });
    await bob.send(ALICE, { n: 2 });
    expect((await alice.take(2)).map(({ payload }) => payload.n)).toEqual([1, 2]);
  });

  test("also while it looks for a process here that has taken the agent over", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob", stage.url);
    const other = await stage.online("alice", stage.url, { takeOver: true });
    const reason = async () => (await alice.call("my_status")).connection.reason ?? "";
    await until("it is told", async () => (await reason()).startsWith("superseded"));
    await other.close();
    await stage.untilGone(ALICE);
    await alice.call("send_message", { to: BOB, message: "here again" });
    expect((await next(bob)).payload).toEqual({ message: "here again" });
  });

  test("but takes over only once, whatever --take-over says", async () => {
    await stage.online("alice", stage.url);
    const alice = await stage.onlineHost("alice", stage.url, [...ALONE, "--take-over"]);
    const other = await stage.online("alice", stage.url, { takeOver: true });
    await untilEnded(alice);
    expect(await alice.error("send_message", { to: BOB, message: "hi" })).toMatchObject({
      code: "superseded_elsewhere",
    });
    expect(other.state.status).toBe("online");
  });

  test("and with the key that its file has by then", async () => {
    const file = await stage.keyFile(testAgent("alice"));
    const alice = await stage.hostOf(file, stage.url);
    await untilEnded(alice);
    expect(await stage.keyFile(stage.agent("alice"))).toBe(file);
    expect(await alice.call("send_message", { to: ALICE, message: "hi" })).toMatchObject({
      can_deliver_realtime: true,
    });
  });

  test("as does one while the relay is still asked for the former key", async () => {
    const { agent, key } = testAgent("alice");
    const unknown = { ...testAgent("alice"), agent, key: { ...key, keyId: "alice-2" } };
    const file = await stage.keyFile(unknown);
    const alice = await stage.hostOf(file, stage.url);
    await until("it is asked", async () => (await alice.call("my_status")).connection.reason === "unknown_key");
    await writeFile(file, await readFile(await stage.keyFile(stage.agent("alice"))));
    expect(await alice.call("send_message", { to: ALICE, message: "hi" })).toMatchObject({
      can_deliver_realtime: true,
    });
    expect(alice.events).not.toContain("closed");
  });
});

describe("A line that is no message", () => {
  test("is told of on standard error without what it says, and the next is answered", async () => {
    const alice = await stage.begin("alice", stage.url);
    for (const line of ["a-secret-word", "[]", '{"jsonrpc":"1.0","id":1,"method":"ping"}'])
      alice.stdin.write(`${line}\n`);
    alice.stdin.write('{"jsonrpc":"2.0","id":2,"method":"ping"}\n');
    await alice.reported("warning", 3);
    await until("the ping is answered", () => alice.stdout.includes('"id":2'));
    expect(alice.stderr).not.toContain("a-secret-word");
  });

  test("and without end ends the server, with an error", async () => {
    const alice = await stage.begin("alice", stage.url);
    alice.stdin.write("x".repeat(12_000_000));
    expect(await alice.end()).toBe(1);
    expect(alice.reports.at(-1)).toMatchObject({ event: "error", code: "failed" });
  });
});

test("The agent is no longer online when its client is gone", async () => {
  const alice = await stage.onlineHost("alice", stage.url);
  await alice.stop();
  await stage.untilGone(ALICE);
});

test("No payload, key or signature is logged", async () => {
  const alice = await stage.onlineHost("alice", stage.url);
  await alice.call("send_message", { to: ALICE, message: "a-secret-word" });
  await alice.call("wait_for_messages");
  const { key } = stage.agent("alice") as { key: { privateKey?: string } };
  expect(alice.events).toContain("online");
  for (const secret of ["a-secret-word", key.privateKey]) expect(alice.log).not.toContain(secret);
});

describe("While the key cannot be used", () => {
  const KEY = { key_id: "alice-1", alg: "ed25519" };

  async function ended(process: Running) {
    return { code: await process.end(), stderr: process.stderr };
  }

  test.each([
    ["is missing", undefined, "invalid_key"],
    ["is not JSON", "{", "invalid_key"],
    ["names no agent", KEY, "invalid_key"],
    ["has a key that is none", { agent_id: ALICE, ...KEY, private_key: "short" }, "invalid_key"],
    ["has a credential that is none", { agent_id: ALICE, ...KEY, credential: "none" }, "invalid_credential"],
  ])("a server whose file %s serves a client, and each tool says why, and what to do", async (_, record, code) => {
    const file = stage.path("unusable.json");
    await rm(file, { force: true });
    if (record !== undefined) await stage.write("unusable.json", record);
    const host = await stage.hostOf(file, stage.url);
    expect((await host.client.listTools()).tools).toHaveLength(10);
    const problem = { code, message: expect.any(String), hint: expect.any(String), retry: "fix", outcome: "refused" };
    for (const [tool, input] of [
      ["my_status", {}],
      ["wait_for_messages", {}],
      ["send_message", { to: BOB, message: "hi" }],
    ] as const) {
      expect(await host.error(tool, input)).toEqual({ ...problem, connection: { status: "idle" } });
    }
    const { message, hint } = await host.error("my_status");
    expect(jsonLines(host.log)).toMatchObject([{ event: "error", code, hint }]);
    expect(jsonLines(host.log)[0].message).toContain(message);
    expect(host.hasEnded).toBe(false);
  });

  test("an agent begins with the first call after the file was mended, and gets messages from then on", async () => {
    const file = await stage.write("alice-1.json", "{");
    const host = await stage.hostOf(file, stage.url);
    expect(await host.error("my_status")).toMatchObject({ code: "invalid_key" });
    await stage.keyFile(stage.agent("alice"));
    expect(await host.call("my_status")).toMatchObject({ agent_id: ALICE });
    await host.untilConnection("online");
    const bob = await stage.online("bob", stage.url);
    await host.call("send_message", { to: BOB, message: "here I am" });
    expect((await next(bob)).payload).toEqual({ message: "here I am" });
    await bob.send(ALICE, { n: 1 });
    expect(await host.call("wait_for_messages")).toMatchObject({ messages: [{ payload: { n: 1 } }] });
  });

  test("a process that ends has the exit code of that, and one that is to serve HTTP ends at once", async () => {
    const file = stage.path("missing.json");
    const http = stage.beginOf(file, stage.url, ["--http", "127.0.0.1:0"]);
    const stdio = stage.beginOf(file, stage.url);
    stdio.stdin.end();
    for (const { code, stderr } of await Promise.all([http, stdio].map(ended))) {
      expect(code).toBe(7);
      expect(jsonLines(stderr)).toMatchObject([{ event: "error", code: "invalid_key" }]);
    }
  });

  test("an address that cannot be used is told, too, and decides the exit code", async () => {
    const file = await stage.keyFile(stage.agent("alice"));
    const host = await stage.hostOf(file, "relay.example");
    const told = { code: "usage", retry: "fix", hint: expect.stringContaining("RELAY_URL=https://") };
    const { message, ...rest } = await host.error("send_message", { to: BOB, message: "hi" });
    expect([message, rest]).toMatchObject([expect.stringMatching(/^RELAY_URL: The address must begin with/), told]);
    expect(jsonLines(host.log)).toMatchObject([{ event: "error", code: "usage" }]);
    const stdio = stage.beginOf(file, "relay.example");
    stdio.stdin.end();
    for (const process of [stdio, stage.beginOf(file, "relay.example", ["--http", "127.0.0.1:0"])])
      expect((await ended(process)).code).toBe(2);
  });

  test("no key at all is told, too", async () => {
    const host = await stage.keylessHost(stage.url);
    expect(await host.error("my_status")).toMatchObject({ code: "invalid_key", hint: expect.any(String) });
  });
});
