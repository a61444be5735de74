import { cp, mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { freePort } from "../../../test/support/free-port.ts";
import { watchLeaks } from "../../../test/support/leaks.ts";
import type { Pod } from "../../../test/support/relay.ts";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { until } from "../../../test/support/until.ts";
import { serveWhole } from "../../../test/support/whole-relay.ts";
import { testAgent } from "../kit.ts";
import { type Host, McpStage } from "./kit.ts";

const [ALICE, BOB] = ["agent://alice", "agent://bob"];

const stage = new McpStage("alice", "bob", "dora");
const noLeaks = watchLeaks();
let relay: Pod;

beforeAll(async () => {
  await stage.start();
  relay = await serveWhole(stage.relay);
});
afterEach(() => stage.clear());
afterAll(async () => {
  await relay.stop();
  await stage.stop();
  await noLeaks();
});

async function expectClosed(host: Host, code: string): Promise<void> {
  await host.untilConnection("closed");
  const connection = { status: "closed", reason: code, hint: expect.any(String) };
  expect((await host.call("my_status")).connection).toEqual(connection);
  const error = { code, hint: expect.any(String), connection };
  expect(await host.error("send_message", { to: BOB, message: "hi" })).toMatchObject(error);
  expect(await host.error("wait_for_messages", { timeout_seconds: 50 })).toMatchObject(error);
  expect(host.hasEnded).toBe(false);
}

describe("The tools say why there is no connection, and the process stays", () => {
  test("when the relay does not know the key; presence can still be asked", async () => {
    const stranger = await stage.host(testAgent("stranger"), relay.url);
    await expectClosed(stranger, "unknown_key");
    expect(await stranger.call("check_presence", { agent_id: BOB })).toMatchObject({ status: "not_seen" });
  });

  test("when the key is revoked; what came before can still be taken", async () => {
    const dora = await stage.onlineHost("dora", relay.url);
    const bob = await stage.online("bob", relay.url);
    await bob.send("agent://dora", { n: 1 });
    await until("it came", () => dora.announced.length === 1);
    await stage.allow("alice", "bob");
    await dora.untilConnection("closed");
    expect(await dora.call("wait_for_messages")).toMatchObject({ messages: [{ payload: { n: 1 } }] });
    await expectClosed(dora, "key_revoked");
  });

  test("when another connection took the agent over, to a call that waits", async () => {
    const alice = await stage.onlineHost("alice", relay.url);
    const waiting = alice.error("wait_for_messages", { timeout_seconds: 50 });
    await alice.untilRead();
    await stage.online("alice", relay.url);
    expect(await waiting).toMatchObject({ code: "superseded", connection: { status: "closed" } });
  });

  test("while no relay answers", async () => {
    const alice = await stage.host("alice", `http://127.0.0.1:${await freePort()}`);
    await alice.untilConnection("reconnecting");
    const { connection } = await alice.call("wait_for_messages", { timeout_seconds: 0 });
    expect(connection).toMatchObject({
      status: "reconnecting",
      reason: "unreachable",
      retry_in_ms: expect.any(Number),
    });
    expect(await alice.error("check_presence", { agent_id: BOB })).toMatchObject({ code: "unreachable" });
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
  expect(alice.log).toMatch(/is online.*trying again.*is online/s);
  await stage.clear();
  await later.stop();
});

describe("The process ends", () => {
  test("with 0 when its client closes stdin, and has written nothing but MCP", async () => {
    const alice = await stage.process("alice", relay.url);
    await until("it is online", () => alice.stderr.includes("online"));
    alice.child.stdin.end();
    expect(await alice.exitCode).toBe(0);
    expect(alice.stdout).toBe("");
  });

  test("with 0 on SIGTERM, while a call waits", async () => {
    const alice = await stage.process("alice", relay.url);
    await until("it is online", () => alice.stderr.includes("online"));
    const call = { name: "wait_for_messages", arguments: { timeout_seconds: 50 } };
    alice.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: call })}\n`);
    alice.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 2, method: "ping" })}\n`);
    await until("the ping is answered", () => alice.stdout.includes('"id":2'));
    alice.child.kill("SIGTERM");
    expect(await alice.exitCode).toBe(0);
  });

  test("when the client is gone, and the agent is no longer online", async () => {
    const alice = await stage.onlineHost("alice", relay.url);
    const bob = await stage.onlineHost("bob", relay.url);
    await alice.stop();
    const presence = async () => (await bob.call("check_presence", { agent_id: ALICE })).status;
    await until("alice is stale", async () => (await presence()) === "stale");
  });
});

test("Without the optional packages the command says what to install, and leaves stdout alone", async () => {
  await using folder = await temporaryFolder();
  const connector = fileURLToPath(new URL("../../", import.meta.url));
  for (const part of ["bin", "src", "package.json"])
    await cp(join(connector, part), join(folder.path, part), { recursive: true });
  await mkdir(join(folder.path, "node_modules"));
  await symlink(join(connector, "../node_modules/canonicalize"), join(folder.path, "node_modules/canonicalize"));
  const alice = await stage.process("alice", relay.url, join(folder.path, "bin/relay.mjs"));
  expect(await alice.exitCode).toBe(1);
  expect(alice.stderr).toContain("npm install @modelcontextprotocol/sdk zod");
  expect(alice.stdout).toBe("");
});

test("No payload, key or signature is logged", async () => {
  const alice = await stage.onlineHost("alice", relay.url);
  await alice.call("send_message", { to: ALICE, message: "a-secret-word" });
  await alice.call("wait_for_messages");
  const { key } = stage.agent("alice") as { key: { privateKey?: string } };
  expect(alice.log).toContain("online");
  for (const secret of ["a-secret-word", key.privateKey]) expect(alice.log).not.toContain(secret);
});
