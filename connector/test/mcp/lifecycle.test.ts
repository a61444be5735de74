import { afterAll, describe, expect, jest, test } from "@jest/globals";
import type { Frame } from "../../../test/support/agent.ts";
import { until } from "../../../test/support/until.ts";
import { serveWhole } from "../../../test/support/whole-relay.ts";
import { shared } from "../fixture.ts";
import { testAgent } from "../kit.ts";
import { leapingTime } from "../times.ts";
import { type Host, McpStage } from "./kit.ts";

const [ALICE, BOB] = ["agent://alice", "agent://bob"];

/** A server that shares no connection does not look for another process that has it: it is told at once. */
const ALONE = ["--max-age", "600"];

const stage = shared(new McpStage("alice", "bob", "dora"));

// Not before the relay has ended: time must not go back.
afterAll(() => {
  jest.restoreAllMocks();
});

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

describe("The tools say why there is no connection, and the server stays", () => {
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
    await expectClosed(alice, "superseded");
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
    await expectClosed(stranger, "bad_signature");
    expect(await stranger.call("check_presence", { agent_id: "agent://nobody" })).toMatchObject({ status: "not_seen" });
  });

  test("when the relay still does not know its key after 10 s", async () => {
    const proxy = await stage.proxy(stage.url);
    const leap = leapingTime();
    const stranger = await stage.host(testAgent("stranger"), proxy.url);
    await until("it presents its key again", () => proxy.sent.length >= 2);
    leap(10_000);
    await expectClosed(stranger, "unknown_key");
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

  test("where nobody set its address, or HTTP cannot go to it", async () => {
    const host = await stage.host("alice", "");
    await until("it is warned", () => host.events.includes("warning"));
    expect(host.log).toContain("RELAY_URL");
    const misled = await stage.host("bob", "http://127.0.0.1:9");
    expect(await misled.error("check_presence", { agent_id: ALICE })).toMatchObject({
      code: "unreachable",
      retry: "fix",
    });
  });
});

test("A model's agent comes back after the relay was gone, and what it said meanwhile goes out", async () => {
  const network = await stage.network();
  const url = `http://${network.host}`;
  const [alice, bob] = [await stage.onlineHost("alice", url), await stage.onlineHost("bob", url)];
  network.cut();
  await alice.untilConnection("reconnecting");
  const sending = alice.call("send_message", { to: BOB, message: "still there?" });
  await alice.untilRead();
  network.heal();
  expect(await sending).toMatchObject({ envelope_id: expect.any(String) });
  await bob.untilConnection("online");
  await alice.call("send_message", { to: BOB, message: "again" });
  const heard: string[] = [];
  while (!heard.includes("again")) heard.push((await bob.take(1))[0].payload.message);
  expect(alice.events[0]).toBe("online");
  expect(alice.events).toContain("reconnecting");
  expect(alice.events.at(-1)).toBe("online");
});

test("A model's agent goes on at another pod when its pod drains, and the model with it", async () => {
  const leaving = await serveWhole(stage.relay);
  const proxy = await stage.proxy(leaving.url);
  const alice = await stage.onlineHost("alice", proxy.url);
  const waiting = alice.call("wait_for_messages", { timeout_seconds: 50 });
  await alice.untilRead();
  proxy.lead(stage.url);
  await leaving.stop();
  const bob = await stage.online("bob", stage.url);
  await bob.send(ALICE, { n: 1 }, { waitOnline: 20_000 });
  expect(await waiting).toMatchObject({ messages: [{ payload: { n: 1 } }] });
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
