import { describe, expect, test } from "@jest/globals";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const relay = conformingRelay("alice", "bob-hmac");
const BOB = "agent://bob-hmac";
const SESSION = `ses_00${"0".repeat(24)}`;
const pod = given(() => relay.startWsConnectors());
const alice = given(() => relay.online(pod, "alice"));
const bob = given(() => relay.online(pod, "bob-hmac"));

type Fields = { readonly [name: string]: unknown };

/** A correctly signed envelope: only what `fields` say is wrong with it. */
function envelope(type: string, fields: Fields = {}) {
  return relay.envelope("alice", type, type.startsWith("agent.") ? fields : { to: BOB, ...fields });
}
const message = (fields: Fields = {}) => envelope("message.send", fields);

/** The answer to a text; the message after it, to an agent that was never seen, shows that the connection goes on. */
async function answerTo(text: string) {
  const answer = await alice.answerTo(text);
  expect(await alice.ask(message({ to: "agent://never-seen" }))).toMatchObject({ accepted: true });
  return answer;
}

async function expectInvalid(text: string, envelopeId?: string): Promise<void> {
  const answer = await answerTo(text);
  expect(answer).toMatchObject({ frame: "error", code: "invalid_envelope" });
  expect(answer.envelope_id).toBe(envelopeId);
}

async function expectDelivered(text: string, id: string) {
  expect(await answerTo(text)).toMatchObject({ accepted: true, envelope_id: id });
  return (await bob.delivered(id)).envelope;
}

const tooLong = (length: number) => "x".repeat(length + 1);

const FORMS: Record<string, readonly (readonly [string, Fields])[]> = {
  "message.send": [
    ["an unknown field", { extra: 1 }],
    ["an algorithm of its own choice", { alg: "none" }],
    ["no sender", { from: undefined }],
    ["no receiver", { to: undefined }],
    ["a receiver that is null", { to: null }],
    ["no payload", { payload: undefined }],
    ["a payload that is an array", { payload: [] }],
    ["a payload that is null", { payload: null }],
    ["a payload that is text", { payload: "hi" }],
    ["no ts", { ts: undefined }],
    ["a ts that is text", { ts: String(Date.now()) }],
    ["a ts that is no integer", { ts: Date.now() + 0.5 }],
    ["a ts beyond every clock", { ts: 1e300 }],
    ["no key_id", { key_id: undefined }],
    ["an empty key_id", { key_id: "" }],
    ["a key_id with a colon", { key_id: "alice:1" }],
    ["a key_id of 129 characters", { key_id: tooLong(128) }],
    ["an empty task_id", { task_id: "" }],
    ["a task_id of 129 characters", { task_id: tooLong(128) }],
    ["a task_id that is a number", { task_id: 7 }],
    ["no sig", { sig: undefined }],
    ["an empty sig", { sig: "" }],
    ["a sig of 85 characters", { sig: "A".repeat(85) }],
    ["a sig of 44 characters", { sig: "A".repeat(44) }],
    ["a sig with padding", { sig: `${"A".repeat(86)}==` }],
    ["a sig in plain base64", { sig: `${"A".repeat(85)}+` }],
    ["a sig in hex", { sig: "0f".repeat(64) }],
    ["a sig with a line break", { sig: `${"A".repeat(86)}\n` }],
    ["a sig that is a list", { sig: ["A".repeat(86)] }],
  ],
  "agent.register": [
    ["an unknown field", { extra: 1 }],
    ["33 capabilities", { payload: { capabilities: Array(33).fill("c") } }],
    ["capabilities that are no texts", { payload: { capabilities: [1] } }],
    ["51 senders that it accepts", { payload: { accept_from: Array(51).fill("agent://a") } }],
    ["a sender that it accepts without a scheme", { payload: { accept_from: ["bob"] } }],
    ["everybody as a sender that it accepts", { payload: { accept_from: ["*"] } }],
    ["a namespace without its dot as a sender that it accepts", { payload: { accept_from: ["agent://acme*"] } }],
    ["an issuer without a name as a sender that it accepts", { payload: { accept_from: ["issuer:"] } }],
    ["a text in place of the senders that it accepts", { payload: { accept_from: "agent://bob" } }],
    ["a label of 121 characters", { payload: { label: tooLong(120) } }],
    ["a receiver that is no agent id", { to: "bob" }],
  ],
  "session.request": [
    ["an unknown field", { extra: 1, payload: { purpose: "p" } }],
    ["no receiver", { to: undefined, payload: { purpose: "p" } }],
    ["no purpose", { payload: {} }],
    ["an empty purpose", { payload: { purpose: "" } }],
    ["a purpose of 501 characters", { payload: { purpose: tooLong(500) } }],
    ["4 minutes to live", { payload: { purpose: "p", ttl_minutes: 4 } }],
    ["1441 minutes to live", { payload: { purpose: "p", ttl_minutes: 1441 } }],
    ["half a minute to live", { payload: { purpose: "p", ttl_minutes: 5.5 } }],
    ["minutes to live as text", { payload: { purpose: "p", ttl_minutes: "60" } }],
    ["an intro of 1001 characters", { payload: { purpose: "p", intro: tooLong(1000) } }],
    ["a scope of 1001 characters", { payload: { purpose: "p", scope: tooLong(1000) } }],
    ["an expected_frequency of 201 characters", { payload: { purpose: "p", expected_frequency: tooLong(200) } }],
  ],
  "session.approve": [
    ["an unknown field", { extra: 1, payload: { session_id: SESSION } }],
    ["no receiver", { to: undefined, payload: { session_id: SESSION } }],
    ["no session_id", { payload: {} }],
    ["a session_id in upper case", { payload: { session_id: SESSION.toUpperCase() } }],
    ["a session_id with a letter that Crockford leaves out", { payload: { session_id: SESSION.replace(/.$/, "u") } }],
    ["a reason of 501 characters", { payload: { session_id: SESSION, reason: tooLong(500) } }],
  ],
};

for (const [type, forms] of Object.entries(FORMS)) {
  test.each(forms)(`${type} with %s is invalid`, async (_form, fields) => {
    const wrong = envelope(type, fields);
    await expectInvalid(JSON.stringify(wrong), wrong.id);
  });
}

const NO_AGENT_IDS = [
  "",
  "alice",
  "agent://",
  "agent://Alice",
  "agent://-a",
  "agent://a-",
  "agent://a b",
  "agent://a*",
  "agent://{0}",
  "agent://a:b",
  "agent://a\n",
  "agent://a\u0000",
  "agent://\u0430lice",
  "http://a",
  `agent://${"a".repeat(64)}`,
  7,
].map((id) => [id]);

test.each(NO_AGENT_IDS)("%j is no agent id, neither as sender nor as receiver", async (id) => {
  for (const wrong of [message({ from: id }), message({ to: id })]) {
    await expectInvalid(JSON.stringify(wrong), wrong.id);
  }
});

test("an agent id may have 63 characters and . _ - within", async () => {
  for (const to of [`agent://${"a".repeat(63)}`, "agent://0", "agent://a.b_c-d"]) {
    expect(await answerTo(JSON.stringify(message({ to })))).toMatchObject({ accepted: true });
  }
});

test.each([undefined, "", ".a", "a b", "a\n", "é", tooLong(128), 7].map((id) => [id]))(
  "an envelope with the id %j is invalid, and its answer names none",
  async (id) => {
    await expectInvalid(JSON.stringify(message({ id })), undefined);
  },
);

test.each(
  ["", "message", "message.", "message.Send", "message.1", "message.a-b", `message.a${"x".repeat(32)}`, "agent.leave"]
    .concat("session.cancel", "Message.send", "message.send ")
    .map((type) => [type]),
)("'%s' is no envelope type", async (type) => {
  const wrong = envelope(type);
  await expectInvalid(JSON.stringify(wrong), wrong.id);
});

test.each(["[]", "null", "7", '"text"', "true", "{}"])("%s is no envelope", async (text) => {
  await expectInvalid(text);
});

describe("JSON that the relay does not take", () => {
  /** A message whose payload member `x` is spelled as it stands here. */
  const spelled = (text: string) => {
    const wrong = message({ payload: { x: 12345 } });
    return { text: JSON.stringify(wrong).replace("12345", text), id: wrong.id };
  };
  const nested = (levels: number) => {
    const payload = `${'{"a":'.repeat(levels - 2)}[]${"}".repeat(levels - 2)}`;
    return message({ payload: JSON.parse(`{"a":${payload}}`) });
  };

  test.each([
    ["a number beyond doubles", "1e400"],
    ["a number below doubles' range", "-1e400"],
    ["a lone high surrogate", '"\\ud800"'],
    ["a lone low surrogate", '"a\\udc00b"'],
    ["surrogates in the wrong order", '"\\udc00\\ud800"'],
    ["a lone surrogate in a name", '{"\\ud800":1}'],
    ["__proto__ as a name", '{"__proto__":{"admin":true}}'],
    ["__proto__ as a name, spelled with an escape", '{"\\u005f_proto__":1}'],
    ["__proto__ deep in a list", '[[{"__proto__":null}]]'],
  ])("has %s", async (_form, text) => {
    const { text: wrong, id } = spelled(text);
    await expectInvalid(wrong, id);
  });

  test("is nested 33 levels; 32 are delivered", async () => {
    const deep = nested(32);
    expect(await expectDelivered(JSON.stringify(deep), deep.id)).toEqual(deep);
    const deeper = nested(33);
    await expectInvalid(JSON.stringify(deeper), deeper.id);
  });

  test("is nested as deep as a frame can hold, and the relay lives", async () => {
    await expectInvalid(`${"[".repeat(16_000)}${"]".repeat(16_000)}`);
    const { text, id } = spelled(`${'{"a":'.repeat(4000)}1${"}".repeat(4000)}`);
    await expectInvalid(text, id);
  });
});

test("an error never repeats what the envelope says, but for the name of an unknown field that cannot be a key", async () => {
  const key = `rk_secret${"A1".repeat(15)}`;
  const unknown = { mesage: "secret", [key]: 1, [Buffer.alloc(32, 7).toString("base64url")]: 1 };
  const wrong = message({ task_id: `secret${tooLong(128)}`, payload: "secret", to: "secret", ...unknown });
  const error = await answerTo(JSON.stringify(wrong));
  expect(error).toMatchObject({ code: "invalid_envelope", retry: "fix", message: expect.stringContaining("mesage") });
  expect(error.message).toContain("unknown field: not allowed");
  expect(error.errors).toContainEqual({ field: "mesage", message: expect.any(String) });
  for (const name of ["secret", ...Object.keys(unknown).slice(1)]) expect(JSON.stringify(error)).not.toContain(name);
});

test("a session is between two agents", async () => {
  for (const [type, payload] of [
    ["session.request", { purpose: "p" }],
    ["session.approve", { session_id: SESSION }],
    ["session.reject", { session_id: SESSION }],
  ] as const) {
    const envelope = message({ type, payload });
    const error = await answerTo(JSON.stringify({ ...envelope, to: envelope.from }));
    expect(error).toMatchObject({ code: "invalid_envelope", message: expect.stringContaining("to: ") });
  }
});

test("a payload has at most 2000 members and array elements", async () => {
  const error = await answerTo(JSON.stringify(message({ payload: { a: Array(2000).fill(0) } })));
  expect(error).toMatchObject({ code: "invalid_envelope", message: expect.stringContaining("2000") });
});
