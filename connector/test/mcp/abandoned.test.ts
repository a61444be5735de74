import type { Socket } from "node:net";
import { describe, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { shared } from "../fixture.ts";
import { next } from "../kit.ts";
import { type Host, McpStage } from "./kit.ts";
import { begin, callTool, cancel, type RawSession } from "./raw-http.ts";

const [ALICE, BOB] = ["agent://alice", "agent://bob"];

const stage = shared(new McpStage("alice", "bob"));

/** A server of alice, a session of it over bare sockets, and another client. */
async function served(): Promise<{ raw: RawSession; other: Host }> {
  const server = await stage.httpServer("alice");
  const other = await stage.httpHost(server);
  await other.untilConnection("online");
  return { raw: await begin(server), other };
}

const payloads = async (host: Host) =>
  (await host.call("wait_for_messages", { timeout_seconds: 0, max: 50 })).messages.map(
    ({ payload }: { payload: object }) => payload,
  );

const ENDS: [string, (socket: Socket) => unknown][] = [
  ["is reset", (socket) => socket.resetAndDestroy()],
  ["is destroyed", (socket) => socket.destroy()],
  ["is half closed", (socket) => socket.end()],
];

describe("A message", () => {
  test.each(ENDS)(
    "that comes after the connection of a client that waited %s is for the next client",
    async (_, end) => {
      const { raw, other } = await served();
      const bob = await stage.online("bob", stage.url);
      const waiting = await callTool(raw, "wait_for_messages", { timeout_seconds: 50 });
      end(waiting.socket);
      await waiting.gone();
      for (const n of [1, 2, 3]) await bob.send(ALICE, { n });
      await until("they wait", async () => (await other.call("my_status")).waiting === 3);
      expect(await payloads(other)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    },
  );

  test("that a cancelled call no longer waits for is for the next one; stream and connection of the cancelled call have ended", async () => {
    const { raw, other } = await served();
    const bob = await stage.online("bob", stage.url);
    const waiting = await callTool(raw, "wait_for_messages", { timeout_seconds: 50 });
    await cancel(raw, waiting.id);
    expect(await waiting.body()).not.toContain('"jsonrpc"');
    await waiting.gone();
    await bob.send(ALICE, { n: 1 });
    expect((await other.call("wait_for_messages")).messages).toMatchObject([{ payload: { n: 1 } }]);
  });

  test("whose call is cancelled while its answer is on the way comes again, before later ones", async () => {
    const { raw, other } = await served();
    const bob = await stage.online("bob", stage.url);
    for (const n of [1, 2, 3]) await bob.send(ALICE, { n });
    await until("they wait", async () => (await other.call("my_status")).waiting === 3);
    const answered = await callTool(raw, "wait_for_messages", { max: 2 });
    expect(await answered.body()).toContain('"result"');
    await cancel(raw, answered.id);
    expect(await payloads(other)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    await cancel(raw, answered.id);
    expect(await payloads(other)).toEqual([]);
  });

  test("that replies to a client that is gone is for the next one", async () => {
    const { raw, other } = await served();
    const bob = await stage.online("bob", stage.url);
    const asking = await callTool(raw, "ask_agent", { to: BOB, message: "How warm is it?", timeout_seconds: 50 });
    const question = await next(bob);
    asking.socket.destroy();
    await asking.gone();
    await question.reply({ celsius: 21.5 });
    const { messages } = await other.call("wait_for_messages");
    expect(messages).toMatchObject([{ type: "message.reply", payload: { celsius: 21.5 } }]);
  });

  test("is sent although the connection of whoever sent it ends: only a cancellation cancels", async () => {
    const { raw } = await served();
    const sending = await callTool(raw, "send_message", { to: BOB, message: "hi", wait_online_seconds: 20 });
    sending.socket.destroy();
    await sending.gone();
    expect(await next(await stage.online("bob", stage.url))).toMatchObject({ payload: { message: "hi" } });
  });
});
