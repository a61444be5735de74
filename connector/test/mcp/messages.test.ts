import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { issueCredential, issuerRecord, newIssuerKey } from "../../src/credentials/issuing.ts";
import { type Connector, type Delivery, verifyReceipt } from "../../src/index.ts";
import type { LateAgent } from "../../src/mcp/agent.ts";
import { MessageQueue } from "../../src/mcp/message-queue.ts";
import { serve } from "../../src/mcp/server.ts";
import { UNTRUSTED_NOTE } from "../../src/mcp/tool.ts";
import { withReply } from "../../src/replies.ts";
import { newSealingKey } from "../../src/sealing/sealing-keys.ts";
import { newKeys } from "../credentials/kit.ts";
import { shared } from "../fixture.ts";
import { next } from "../kit.ts";
import { Waits } from "../times.ts";
import { type Host, McpStage } from "./kit.ts";

/** What models say to others, and are told of whom they hear. */

const [ALICE, BOB] = ["agent://alice", "agent://bob-hmac"];

const issuer = await newIssuerKey("acme");
const record = issuerRecord(issuer, ["agent://acme.*"]);

/** Its relay knows one issuer, besides the keys of those that have a name. */
class IssuedStage extends McpStage {
  /** Before the relay starts: what it reads later is in force seconds later. */
  override async allow(...names: readonly string[]): Promise<void> {
    const agents = names.map((name) => this.agent(name));
    await this.relay.writeKeys({
      api_keys: agents.map(({ apiKeyRecord }) => apiKeyRecord),
      signing_keys: agents.map((agent) => agent.record),
      issuers: [record],
    });
  }

  /** A model whose agent has a credential. @param pinned the issuers that it trusts. */
  async issuedHost(name: string, pinned: readonly object[] = [record]): Promise<Host> {
    const [keys, sealing] = [await newKeys(), await newSealingKey()];
    const agent = `agent://acme.${name}`;
    const claims = { agent, publicKey: keys.x, sealingKey: sealing.publicKey, days: 1 };
    const { token: credential } = await issueCredential(issuer, claims);
    const secrets = { alg: "ed25519", private_key: keys.d, sealing_key: sealing.privateKey };
    const file = await this.write(`${name}.json`, { agent_id: agent, ...secrets, credential, trusted_issuers: pinned });
    return await this.#onlineHostOf(file);
  }

  /** Another model of the same agent. */
  async secondHost(name: string): Promise<Host> {
    return await this.#onlineHostOf(this.path(`${name}.json`));
  }

  async #onlineHostOf(file: string): Promise<Host> {
    const host = await this.hostOf(file, this.url);
    await host.untilConnection("online");
    return host;
  }
}

const stage = shared(new IssuedStage("alice", "bob-hmac", "carol"));
afterEach(() => {
  jest.restoreAllMocks();
});

describe("Two models", () => {
  test("write to each other: a text, an answer with a payload and a task", async () => {
    const [alice, bob] = [await stage.onlineHost("alice", stage.url), await stage.onlineHost("bob-hmac", stage.url)];
    const sent = await alice.call("send_message", { to: BOB, message: "How warm is it?" });
    expect(sent).toMatchObject({ target_status: "online", can_deliver_realtime: true, duplicate: false });

    const heard = await bob.call("wait_for_messages");
    const question = { from: ALICE, type: "message.send", payload: { message: "How warm is it?" } };
    expect(heard.messages).toMatchObject([{ ...question, verified: "unverified", envelope_id: sent.envelope_id }]);

    await bob.call("send_message", { to: heard.messages[0].from, payload: { celsius: 21.5 }, task_id: "weather" });
    const { messages } = await alice.call("wait_for_messages");
    expect(messages).toMatchObject([{ from: BOB, payload: { celsius: 21.5 }, task_id: "weather" }]);
  });

  test("are told when nobody got a message, and who is there", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const carol = "agent://carol";
    const unseen = { status: "not_seen", can_deliver_realtime: false, last_seen_iso: null };
    expect(await alice.call("check_presence", { agent_id: carol })).toMatchObject({ agent_id: carol, ...unseen });
    const operators = (await (await fetch(`${stage.url}/api/onboarding/check-online?agent_id=${carol}`)).json()) as {
      next_action: string;
    };
    expect((await alice.call("check_presence", { agent_id: carol })).next_action).not.toBe(operators.next_action);
    const { target_status, can_deliver_realtime } = await alice.call("send_message", { to: carol, message: "hi" });
    expect([target_status, can_deliver_realtime]).toEqual(["not_seen", false]);
    await stage.online("carol", stage.url);
    const presence = await alice.call("check_presence", { agent_id: carol });
    expect(presence).toMatchObject({ status: "online", can_deliver_realtime: true, severity: "ok" });
    expect(presence.next_action).toEqual(expect.any(String));
  });

  test("learn that a sender signed with a key that its owner trusts", async () => {
    const trust = await stage.publicFile(stage.agent("carol"));
    const alice = await stage.onlineHost("alice", stage.url, ["--trust", trust]);
    await (await stage.online("carol", stage.url)).send(ALICE, {});
    expect(await alice.call("wait_for_messages")).toMatchObject({ messages: [{ verified: "agent" }] });
  });
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

describe("A model whose agent has a credential", () => {
  const ACME_BOB = "agent://acme.bob";

  test("is told who vouches for a sender, and which messages only it could read", async () => {
    const [ann, bob] = [await stage.issuedHost("ann"), await stage.issuedHost("bob")];
    await ann.call("send_message", { to: ACME_BOB, message: "open" });
    await ann.call("send_message", { to: ACME_BOB, message: "for you alone", seal: true });
    expect(await bob.take(2)).toMatchObject([
      { payload: { message: "open" }, verified: "agent", issuer: "acme", sealed: false },
      { payload: { message: "for you alone" }, verified: "agent", issuer: "acme", sealed: true },
    ]);
  });

  test("gives the receipt of a session to its user, also over the connection of another process; of no other session", async () => {
    const [ann, bob] = [await stage.issuedHost("ann"), await stage.issuedHost("bob")];
    const second = await stage.secondHost("ann");
    const { session_id } = await ann.call("request_session", { to: ACME_BOB, purpose: "Translate a page" });
    await bob.call("wait_for_messages");
    await bob.call("approve_session", { session_id });
    await ann.call("wait_for_messages");
    const { receipt } = await ann.call("session_receipt", { session_id });
    const facts = { sessionId: session_id, requester: "agent://acme.ann", target: ACME_BOB, decision: "approved" };
    expect(await verifyReceipt(JSON.stringify(receipt), [record])).toMatchObject({ valid: true, facts });
    expect((await second.call("session_receipt", { session_id })).receipt).toEqual(receipt);
    for (const host of [ann, second]) {
      const error = await host.error("session_receipt", { session_id: `ses_${"0".repeat(26)}` });
      expect(error).toMatchObject({ code: "unknown_session", retry: "never" });
    }
  });

  test("is told when an issuer is the relay's word only, and cannot seal to it", async () => {
    const [ann, bob] = [await stage.issuedHost("ann", []), await stage.issuedHost("bob", [])];
    await ann.call("send_message", { to: ACME_BOB, message: "hi" });
    expect((await bob.call("wait_for_messages")).messages).toMatchObject([
      { verified: "relay_issuer", issuer: "acme" },
    ]);
    expect(await ann.error("send_message", { to: ACME_BOB, message: "hi", seal: true })).toMatchObject({
      code: "recipient_unverified",
      hint: expect.stringContaining("trusted_issuers"),
    });
  });

  test("is not sent after a pin where its target has not been online yet, and seals as soon as it has", async () => {
    const ann = await stage.issuedHost("ann");
    const sealed = { to: "agent://acme.cleo", message: "for you alone", seal: true };
    expect(await ann.error("send_message", sealed)).toMatchObject({
      code: "recipient_unknown",
      hint: expect.not.stringContaining("trusted_issuers"),
      retry: "later",
    });
    const cleo = await stage.issuedHost("cleo");
    await ann.call("send_message", sealed);
    expect((await cleo.call("wait_for_messages")).messages).toMatchObject([{ sealed: true, verified: "agent" }]);
  });
});

describe("Characters that nobody sees", () => {
  /** Tag characters, an override of the text's direction, and a space without a width. */
  const UNSEEN = "\u{e0041}\u{e0042}\u202e\u200b";
  const ANY_UNSEEN = /[\u{e0000}-\u{e0fff}\u202e\u200b]/u;
  const MESSAGE = `Lines\nand 👩‍🚀 stay.${UNSEEN}`;

  test("reach no model as they are, but after a note that they are no instructions; a program gets the same value", async () => {
    const host = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob-hmac", stage.url);
    for (let n = 0; n < 2; n += 1)
      await bob.send("agent://alice", { message: MESSAGE, [UNSEEN]: n }, { taskId: `task ${UNSEEN}` });

    const { messages } = await host.call("wait_for_messages", { max: 1 });
    expect(JSON.stringify(messages)).not.toMatch(ANY_UNSEEN);
    expect(messages[0].payload.message).toBe("Lines\nand 👩‍🚀 stay.\\udb40\\udc41\\udb40\\udc42\\u202e\\u200b");

    const texts = await host.texts("wait_for_messages", { max: 1 });
    expect(texts[0]).toBe(UNTRUSTED_NOTE);
    expect(texts.join()).not.toMatch(ANY_UNSEEN);
    const [message] = JSON.parse(texts.at(-1) as string).messages;
    expect(message).toMatchObject({ payload: { message: MESSAGE, [UNSEEN]: 1 }, task_id: `task ${UNSEEN}` });
  });
});

test("The note before messages of others names each member of one that its sender chooses", () => {
  for (const member of ["payload", "task_id", "type", "envelope_id"]) expect(UNTRUSTED_NOTE).toContain(member);
});

const LONG_MS = 60_000;
const never = new AbortController().signal;

function delivery(id: string, from = "agent://bob"): Delivery {
  const payload = {};
  const envelope = { id, type: "message.send", from, payload, ts: 0, key_id: "bob-1", sig: "" };
  const { type } = envelope;
  return withReply({ envelope, from, type, payload, verified: "unverified", sealed: false, receivedAt: 0 }, () =>
    Promise.reject(),
  );
}

function filled(max: number, ...ids: readonly string[]): MessageQueue<Delivery> {
  const queue = new MessageQueue<Delivery>(max, ({ from }) => from);
  for (const id of ids) queue.add(delivery(id));
  return queue;
}

async function taken(queue: MessageQueue<Delivery>, max = 10, timeoutMs = 0, signal = never) {
  const { items, putBack: _, ...rest } = await queue.take(max, timeoutMs, signal);
  return { ids: items.map(({ envelope }) => envelope.id), ...rest };
}

describe("The queue of messages", () => {
  test("drops nothing of others for the sender with the most", async () => {
    const queue = filled(2);
    queue.add(delivery("alice's", "agent://alice"));
    for (const id of ["1", "2", "3"]) queue.add(delivery(id));
    expect(await taken(queue)).toEqual({ ids: ["alice's", "3"], waiting: 0, dropped: 2 });
  });

  test("hands out what is there in order, each once, and says how many still wait", async () => {
    const queue = filled(10, "a", "b", "c");
    expect(await taken(queue, 2)).toEqual({ ids: ["a", "b"], waiting: 1, dropped: 0 });
    expect(await taken(queue, 2)).toEqual({ ids: ["c"], waiting: 0, dropped: 0 });
    expect(await taken(queue)).toEqual({ ids: [], waiting: 0, dropped: 0 });
  });

  test("loses the oldest when it is full, and says once how many were lost, here or before", async () => {
    const queue = filled(2, "a", "b", "c", "d");
    queue.countDropped();
    expect(await taken(queue)).toEqual({ ids: ["c", "d"], waiting: 0, dropped: 3 });
    expect(await taken(queue)).toMatchObject({ dropped: 0 });
  });

  test("hands out what comes while a call waits, to one of the calls that wait", async () => {
    const queue = filled(10);
    const [first, second] = [taken(queue, 10, LONG_MS), taken(queue, 10, LONG_MS)];
    expect(queue.isAwaited).toBe(true);
    queue.add(delivery("a"));
    expect((await first).ids).toEqual(["a"]);
    queue.add(delivery("b"));
    expect((await second).ids).toEqual(["b"]);
    expect(queue.isAwaited).toBe(false);
  });

  test("takes nothing away for a call that was cancelled", async () => {
    const queue = filled(10);
    const cancel = new AbortController();
    const waiting = taken(queue, 10, LONG_MS, cancel.signal);
    cancel.abort();
    queue.add(delivery("a"));
    await expect(waiting).rejects.toBe(cancel.signal.reason);
    expect((await taken(queue)).ids).toEqual(["a"]);
    expect(queue.isAwaited).toBe(false);
  });

  test("hands out what was put back in the order in which it came, before what came later, with what was lost before", async () => {
    const queue = filled(3, "a", "b", "c", "d");
    const [first, second] = [await queue.take(1, 0, never), await queue.take(1, 0, never)];
    second.putBack();
    first.putBack();
    expect(await taken(queue)).toEqual({ ids: ["b", "c", "d"], waiting: 0, dropped: 1 });
  });

  test("hands what was put back to a call that waits", async () => {
    const queue = filled(10, "a");
    const batch = await queue.take(1, 0, never);
    const waiting = taken(queue, 10, LONG_MS);
    batch.putBack();
    expect((await waiting).ids).toEqual(["a"]);
  });

  test("lets nobody wait after its end, but hands out what is left", async () => {
    const queue = filled(10);
    const waiting = taken(queue, 10, LONG_MS);
    queue.end();
    expect((await waiting).ids).toEqual([]);
    queue.add(delivery("a"));
    expect((await taken(queue, 10, LONG_MS)).ids).toEqual(["a"]);
    expect((await taken(queue, 10, LONG_MS)).ids).toEqual([]);
  });
});

describe("A client", () => {
  type Transport = Parameters<typeof serve>[1];

  /** A server with a client that reads when it is let to. */
  async function unread(isBehind?: () => boolean) {
    const waiting: (() => void)[] = [];
    const transport = {
      start: async () => {},
      close: async () => {},
      send: () => new Promise<void>((read) => waiting.push(read)),
    } as unknown as Transport;
    let arrive = () => {};
    const agent = {
      onDelivery: (listener: (agent: object) => void) => {
        arrive = () => listener({ queue: { isAwaited: false, size: 1 } });
        return () => {};
      },
    } as unknown as LateAgent;
    await serve(agent, transport, "1.0.0", undefined, isBehind);
    return { waiting, arrive: () => arrive() };
  }

  /** What was begun has come to an end, but for what waits for the client. */
  const settled = () => new Promise((resolve) => setImmediate(resolve));

  test("that does not read has one notification kept, however many messages come", async () => {
    const { waiting, arrive } = await unread();
    for (let n = 0; n < 100; n += 1) arrive();
    await settled();
    expect(waiting).toHaveLength(1);
    waiting[0]?.();
    await settled();
    arrive();
    await settled();
    expect(waiting).toHaveLength(2);
  });

  test("is told nothing while its stream is behind, and again after it", async () => {
    let isBehind = true;
    const { waiting, arrive } = await unread(() => isBehind);
    arrive();
    await settled();
    expect(waiting).toHaveLength(0);
    isBehind = false;
    arrive();
    await settled();
    expect(waiting).toHaveLength(1);
  });
});

describe("A model that waits", () => {
  test("gets a message when it comes, and each once", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob-hmac", stage.url);
    const waiting = alice.call("wait_for_messages", { timeout_seconds: 50 });
    await alice.untilRead();
    await bob.send(ALICE, { n: 1 });
    expect(await waiting).toMatchObject({ messages: [{ payload: { n: 1 } }], waiting: 0, dropped: 0 });
    expect(await alice.call("wait_for_messages", { timeout_seconds: 0 })).toMatchObject({ messages: [] });
    expect(alice.notifications).toEqual([]);
  });

  test("gets at most as many as it asked for, and is told how many are left; its host heard of each", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob-hmac", stage.url);
    for (const n of [1, 2, 3]) {
      await bob.send(ALICE, { n });
      await until("the host heard of it", () => alice.notifications.length === n);
    }
    expect(alice.notifications.at(-1)).toEqual({ event: "message_arrived", waiting: 3 });
    expect(await alice.call("my_status")).toMatchObject({ agent_id: ALICE, waiting: 3, dropped: 0 });
    const first = await alice.call("wait_for_messages", { max: 2 });
    expect(first).toMatchObject({ messages: [{ payload: { n: 1 } }, { payload: { n: 2 } }], waiting: 1 });
    expect(await alice.call("wait_for_messages")).toMatchObject({ messages: [{ payload: { n: 3 } }], waiting: 0 });
  });
});
