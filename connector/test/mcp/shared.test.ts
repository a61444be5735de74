import { describe, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { shared } from "../fixture.ts";
import { next } from "../kit.ts";
import { type Host, McpStage } from "./kit.ts";

const [ALICE, BOB] = ["agent://alice", "agent://bob"];

const stage = shared(new McpStage("alice", "bob"));

/** Why there is no connection, once that is known. */
async function causeOf(host: Host): Promise<{ readonly reason: string; readonly message: string }> {
  const cause = async () => {
    const { reason, message } = (await host.call("my_status")).connection;
    return { reason, message };
  };
  await until("the relay is away", async () => (await cause()).reason === "unreachable");
  return await cause();
}

describe("Two servers of one agent", () => {
  test("share a connection: both get what comes, both ask, reply and negotiate", async () => {
    const first = await stage.onlineHost("alice", stage.url);
    const second = await stage.onlineHost("alice", stage.url);
    const bob = await stage.onlineHost("bob", stage.url);

    const asked = bob.call("ask_agent", { to: ALICE, message: "How warm is it?" });
    const heard = [await first.call("wait_for_messages"), await second.call("wait_for_messages")];
    const [question] = heard[0].messages;
    expect(heard[1].messages).toEqual([question]);
    await second.call("reply_to", { to: BOB, envelope_id: question.envelope_id, payload: { celsius: 21.5 } });
    expect(await asked).toMatchObject({ reply: { payload: { celsius: 21.5 } } });

    const asking = second.call("ask_agent", { to: BOB, message: "And there?" });
    const [{ envelope_id }] = (await bob.call("wait_for_messages")).messages;
    await bob.call("reply_to", { to: ALICE, envelope_id, message: "20" });
    expect(await asking).toMatchObject({ reply: { from: BOB, payload: { message: "20" } } });

    const { session_id } = await second.call("request_session", { to: BOB, purpose: "Translate a page" });
    await bob.call("wait_for_messages");
    await bob.call("approve_session", { session_id });
    for (const host of [first, second]) {
      expect((await host.call("wait_for_messages")).messages).toMatchObject([{ type: "session.approve", session_id }]);
    }
    const nobody = await second.error("ask_agent", { to: "agent://carol", message: "hi" });
    expect(nobody).toMatchObject({ code: "target_not_online", outcome: "refused", retry: "later" });
  });

  test("go on with one of them when the other ends", async () => {
    const first = await stage.onlineHost("alice", stage.url);
    const [second, third] = [await stage.onlineHost("alice", stage.url), await stage.onlineHost("alice", stage.url)];
    const bob = await stage.online("bob", stage.url);
    await first.stop();
    // Each said so once of the first. Now one says it of itself, the other of that one.
    const shares = () => [...second.events, ...third.events].filter((event) => event === "shared");
    await until("one takes over, and the other shares it", () => shares().length >= 4);
    for (const host of [second, third]) {
      expect(await host.call("send_message", { to: BOB, message: "hi", wait_online_seconds: 20 })).toMatchObject({
        can_deliver_realtime: true,
      });
      await host.untilConnection("online");
    }
    await bob.send(ALICE, { n: 1 });
    for (const host of [second, third]) {
      expect((await host.call("wait_for_messages")).messages).toMatchObject([{ payload: { n: 1 } }]);
    }
  });

  test("share that of a relay listen, which goes on to print what comes, and take over when it ends", async () => {
    const listen = await stage.begin("alice", stage.url, [], "listen");
    await listen.reported("online");
    const model = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob", stage.url);
    await bob.send(ALICE, { n: 1 });
    expect((await model.call("wait_for_messages")).messages).toMatchObject([{ payload: { n: 1 } }]);
    await until("it is printed", () => listen.stdout.includes('"n":1'));
    await listen.stop();
    await model.untilAlone();
    await model.call("send_message", { to: BOB, message: "still here" });
    expect(await next(bob)).toMatchObject({ from: ALICE, payload: { message: "still here" } });
    expect(model.events).toContain("online");
  });

  test("tell each model, and each host's log, that the other gets every message too, and why there is no connection", async () => {
    const network = await stage.network();
    const url = `http://${network.host}`;
    const first = await stage.onlineHost("alice", url);
    const second = await stage.onlineHost("alice", url);
    const connectionOf = async (host: Host) => (await host.call("my_status")).connection;
    expect(await connectionOf(second)).toMatchObject({ status: "online", shared_with: expect.any(String) });
    expect(await connectionOf(first)).toMatchObject({ status: "online", shared_with: expect.any(String) });
    for (const host of [first, second]) expect(host.events).toContain("shared");
    network.cut();
    const causes = await Promise.all([first, second].map(causeOf));
    expect(causes[1]).toEqual(causes[0]);
    expect(causes[0]?.message).toContain(network.host);
    network.heal();
    await first.stop();
    await second.untilAlone();
  });

  test("end with one that no longer shares", async () => {
    const first = await stage.onlineHost("alice", stage.url);
    expect((await first.call("my_status")).connection).not.toHaveProperty("shared_with");
    const second = await stage.onlineHost("alice", stage.url);
    const shared = async () => (await first.call("my_status")).connection.shared_with !== undefined;
    await until("the first is told", shared);
    await second.stop();
    await first.untilAlone();
  });

  test("share no connection with one that believes others", async () => {
    await stage.onlineHost("alice", stage.url);
    const second = await stage.host("alice", stage.url, ["--require-verified"]);
    const reason = async () => (await second.call("my_status")).connection.reason;
    await until("it is refused", async () => (await reason()) === "superseded_elsewhere");
  });

  test("know of the sessions that were requested while the agent was away", async () => {
    const bob = await stage.online("bob", stage.url);
    const { sessionId } = await bob.requestSession(ALICE, { purpose: "Translate a page" });
    const first = await stage.onlineHost("alice", stage.url);
    while ((await first.call("my_status")).pending_sessions.length === 0);
    const second = await stage.onlineHost("alice", stage.url);
    const rejected = { session_status: "rejected" };
    expect(await second.call("reject_session", { session_id: sessionId })).toMatchObject(rejected);
  });

  test("know of the sessions that were requested before they shared, and of those that are not decided by now", async () => {
    const first = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob", stage.url);
    const { sessionId: decided } = await bob.requestSession(ALICE, { purpose: "Translate a page" });
    const { sessionId } = await bob.requestSession(ALICE, { purpose: "Translate another" });
    await until("both came", async () => (await first.call("my_status")).waiting === 2);
    await first.call("reject_session", { session_id: decided });
    const second = await stage.onlineHost("alice", stage.url);
    const { pending_sessions } = await second.call("my_status");
    expect(pending_sessions).toMatchObject([{ session_id: sessionId, requester: BOB, received: true }]);
    expect(await second.call("approve_session", { session_id: sessionId })).toMatchObject({
      session_status: "approved",
    });
  });
});
