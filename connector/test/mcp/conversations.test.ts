import { afterEach, describe, expect, jest, test } from "@jest/globals";
import type { Connector, Delivery } from "../../src/index.ts";
import { UNTRUSTED_NOTE } from "../../src/mcp/instructions.ts";
import { shared } from "../fixture.ts";
import { next } from "../kit.ts";
import { Waits } from "../times.ts";
import { McpStage } from "./kit.ts";

const [ALICE, BOB] = ["agent://alice", "agent://bob-hmac"];
const stage = shared(new McpStage("alice", "bob-hmac", "carol"));
afterEach(() => {
  jest.restoreAllMocks();
});

/** Alice is sent a message under this id. */
async function sentUnder(id: string, connector: Connector): Promise<string> {
  const made = jest.spyOn(crypto, "randomUUID").mockReturnValueOnce(id as ReturnType<typeof crypto.randomUUID>);
  const sending = connector.send(ALICE, {});
  made.mockRestore();
  return (await sending).envelopeId;
}

/** The asker may have the reply, and the test end, before the relay has told the connector that it took it. */
function answers(connector: Connector, replyTo: (delivery: Delivery) => object): void {
  connector.on("delivery", (delivery) => void delivery.reply(replyTo(delivery)).catch(() => {}));
}

describe("ask_agent", () => {
  test("returns what the other model replies with reply_to, marked as untrusted; wait_for_messages does not", async () => {
    const [alice, bob] = [await stage.onlineHost("alice", stage.url), await stage.onlineHost("bob-hmac", stage.url)];
    const asked = alice.texts("ask_agent", { to: BOB, message: "How warm is it?" });
    const { messages } = await bob.call("wait_for_messages");
    const [{ from, envelope_id, task_id }] = messages;
    const replied = await bob.call("reply_to", { to: from, envelope_id, payload: { celsius: 21.5 } });
    expect(replied).toMatchObject({ target_status: "online", can_deliver_realtime: true });
    const [preface, body] = await asked;
    expect(preface).toBe(UNTRUSTED_NOTE);
    const reply = { from: BOB, type: "message.reply", payload: { celsius: 21.5 }, task_id };
    expect(JSON.parse(body ?? "")).toMatchObject({ reply });
    expect(await alice.call("wait_for_messages", { timeout_seconds: 0 })).toMatchObject({ messages: [] });
  });

  test("says that nobody received it", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const nobody = await alice.error("ask_agent", { to: "agent://carol", message: "hi" });
    expect(nobody).toMatchObject({ code: "target_not_online", outcome: "refused", retry: "later" });
  });

  test("says that no reply came in time, which then comes as a message", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob-hmac", stage.url);
    const waits = new Waits();
    const asked = alice.error("ask_agent", { to: BOB, message: "hi", timeout_seconds: 50 });
    const question = await next(bob);
    // What is left of its time once the ack is there: until then the whole of it runs.
    const left = [45_000, 49_999.9] as const;
    await waits.begun(...left);
    waits.endBetween(...left);
    expect(await asked).toMatchObject({ code: "timeout", outcome: "unknown" });
    await question.reply({ late: true });
    const { messages } = await alice.call("wait_for_messages");
    expect(messages).toMatchObject([{ type: "message.reply", payload: { late: true } }]);
  });

  test("asks an agent that answers one type of message alone, as send_message sends it", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob-hmac", stage.url);
    answers(bob, ({ type }) => ({ got: type }));
    const terms = { to: BOB, payload: { city: "Vienna" }, type: "message.weather" };
    expect(await alice.call("ask_agent", terms)).toMatchObject({ reply: { payload: { got: "message.weather" } } });
    await alice.call("send_message", terms);
    const { messages } = await alice.call("wait_for_messages");
    expect(messages).toMatchObject([{ type: "message.reply", payload: { got: "message.weather" } }]);
  });

  test("waits for an agent to come online, as send_message does", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const asked = alice.call("ask_agent", { to: BOB, message: "1", wait_online_seconds: 20 });
    const sent = alice.call("send_message", { to: BOB, message: "2", wait_online_seconds: 20 });
    const bob = await stage.online("bob-hmac", stage.url);
    answers(bob, ({ payload }) => payload);
    expect(await asked).toMatchObject({ reply: { payload: { message: "1" } } });
    expect(await sent).toMatchObject({ can_deliver_realtime: true });
  });
});

describe("reply_to", () => {
  test("waits for an asker that is away to come online, as its own advice says", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob-hmac", stage.url);
    const { envelopeId: envelope_id } = await bob.send(ALICE, {});
    await alice.call("wait_for_messages");
    await bob.close();
    await stage.untilGone(BOB);
    const inVain = await alice.call("reply_to", { envelope_id, message: "1" });
    expect(inVain.next_action).toContain("wait_online_seconds");
    const replied = alice.call("reply_to", { envelope_id, message: "2", wait_online_seconds: 20 });
    const back = await stage.online("bob-hmac", stage.url);
    expect(await next(back)).toMatchObject({ type: "message.reply", payload: { message: "2" } });
    expect(await replied).toMatchObject({ can_deliver_realtime: true });
  });

  test("answers no reply, and nothing that was not returned, such as another agent's message of that id", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob-hmac", stage.url);
    const reply = await bob.send(ALICE, {}, { type: "message.reply" });
    const message = await bob.send(ALICE, {});
    const answer = { to: BOB, envelope_id: message.envelopeId, message: "hi" };
    expect(await alice.error("reply_to", answer)).toMatchObject({ code: "not_answerable" });
    await alice.take(2);
    for (const other of [{ to: "agent://carol" }, { envelope_id: reply.envelopeId }]) {
      const refusal = await alice.error("reply_to", { ...answer, ...other });
      expect(refusal).toMatchObject({ code: "not_answerable", outcome: "refused" });
    }
    await alice.call("reply_to", answer);
    expect((await next(bob)).envelope.task_id).toBe(message.envelopeId);
  });

  test("needs the id alone, and the sender too where another agent used it, who gets no reply that was not meant", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const [bob, carol] = [await stage.online("bob-hmac", stage.url), await stage.online("carol", stage.url)];
    const envelope_id = await sentUnder("id-of-both", bob);
    await alice.call("wait_for_messages");
    expect(await alice.call("reply_to", { envelope_id, message: "1" })).not.toHaveProperty("next_action");
    expect((await next(bob)).payload).toEqual({ message: "1" });
    const repeated = await alice.call("reply_to", { envelope_id, message: "1 again" });
    expect(repeated).toMatchObject({ can_deliver_realtime: true, next_action: expect.any(String) });
    await next(bob);

    await sentUnder(envelope_id, carol);
    await alice.call("wait_for_messages");
    const ambiguous = await alice.error("reply_to", { envelope_id, message: "2" });
    expect(ambiguous).toMatchObject({ code: "not_answerable", retry: "fix", outcome: "refused" });
    await alice.call("reply_to", { to: BOB, envelope_id, message: "2" });
    expect((await next(bob)).payload).toEqual({ message: "2" });
  });
});
