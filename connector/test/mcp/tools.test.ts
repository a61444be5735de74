import { beforeAll, describe, expect, test } from "@jest/globals";
import { EmptyResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { ENVELOPE_LIMITS, SESSION_LIMITS, TEXT_LIMITS } from "relay-protocol/wire/limits.ts";
import { INSTRUCTIONS } from "../../src/mcp/tool.ts";
import { sharedByAll } from "../fixture.ts";
import { type Host, McpStage } from "./kit.ts";

const BOB = "agent://bob";
const INVALID_PARAMS = -32_602;
const SESSION = `ses_${"0".repeat(26)}`;

const stage = sharedByAll(new McpStage("alice", "bob"));
let alice: Host;

beforeAll(async () => {
  alice = await stage.onlineHost("alice", stage.url);
});

/** A JSON object of that many levels. */
function nested(levels: number): object {
  return levels === 1 ? {} : { in: nested(levels - 1) };
}

describe("A client that lists the tools", () => {
  test("finds the ten, each with title, description, both schemas and hints", async () => {
    const { tools } = await alice.client.listTools();
    const hints = tools.map(({ name, annotations }) => [name, annotations]);
    expect(hints).toEqual([
      ["send_message", { destructiveHint: false }],
      ["ask_agent", { destructiveHint: false }],
      ["wait_for_messages", { destructiveHint: false }],
      ["reply_to", { destructiveHint: false }],
      ["request_session", { destructiveHint: false }],
      ["approve_session", { destructiveHint: false, idempotentHint: true }],
      ["reject_session", { idempotentHint: true }],
      ["session_receipt", { readOnlyHint: true }],
      ["check_presence", { readOnlyHint: true }],
      ["my_status", { readOnlyHint: true, openWorldHint: false }],
    ]);
    for (const { title, description, inputSchema, outputSchema } of tools) {
      expect([title, description]).toEqual([expect.any(String), expect.any(String)]);
      expect(inputSchema).toMatchObject({ type: "object", additionalProperties: false });
      expect(outputSchema).toMatchObject({ type: "object", properties: expect.any(Object) });
    }
    const [messages, sessions] = ["wait_for_messages", "my_status"].map(
      (name) => tools.find((tool) => tool.name === name)?.outputSchema?.properties,
    );
    expect(messages).toMatchObject({ messages: { items: { properties: { from: {}, envelope_id: {}, payload: {} } } } });
    expect(sessions).toMatchObject({ pending_sessions: { items: { properties: { session_id: {} } } } });
  });

  test("gives no more than 8 KB of a model's context for them", async () => {
    const list = await alice.client.listTools();
    expect(Buffer.byteLength(JSON.stringify(list))).toBeLessThan(8192);
  });

  test("is told their bounds, which are the relay's own", async () => {
    const { tools } = await alice.client.listTools();
    const input = (name: string) => tools.find((tool) => tool.name === name)?.inputSchema.properties;
    expect(input("send_message")).toMatchObject({
      to: { type: "string", description: expect.stringContaining("agent://") },
      message: { minLength: 1, maxLength: TEXT_LIMITS.message },
      payload: { type: "object", description: expect.stringContaining("message") },
      type: { type: "string", description: expect.stringContaining("message.") },
      task_id: { minLength: 1, maxLength: TEXT_LIMITS.taskId },
    });
    expect(input("request_session")).toMatchObject({
      purpose: { minLength: 1, maxLength: TEXT_LIMITS.purpose },
      intro: { maxLength: TEXT_LIMITS.intro },
      scope: { maxLength: TEXT_LIMITS.scope },
      ttl_minutes: { type: "integer", minimum: SESSION_LIMITS.ttlMinutesMin, maximum: SESSION_LIMITS.ttlMinutesMax },
    });
    expect(input("reject_session")).toMatchObject({
      session_id: { type: "string" },
      reason: { maxLength: TEXT_LIMITS.reason },
    });
  });

  test("gets the instructions, which name only tools that exist", async () => {
    const { tools } = await alice.client.listTools();
    const names = tools.map(({ name }) => name);
    expect(alice.client.getInstructions()).toBe(INSTRUCTIONS);
    const named = INSTRUCTIONS.match(/\b(?:my|wait|send|ask|reply|request|approve|reject|check)_\w+/g) ?? [];
    expect(named.length).toBeGreaterThan(0);
    for (const name of named) expect(names).toContain(name);
  });
});

describe("What the relay would refuse", () => {
  test.each([
    ["send_message", { to: "bob", message: "hi" }, "to"],
    ["send_message", { to: "agent://Bob", message: "hi" }, "to"],
    ["send_message", { to: BOB }, "payload"],
    ["send_message", { to: BOB, message: "hi", payload: {} }, "payload"],
    ["send_message", { to: BOB, message: "" }, "message"],
    ["send_message", { to: BOB, message: "x".repeat(TEXT_LIMITS.message + 1) }, "message"],
    ["send_message", { to: BOB, payload: [] }, "payload"],
    ["send_message", { to: BOB, payload: "text" }, "payload"],
    ["send_message", { to: BOB, payload: nested(ENVELOPE_LIMITS.maxPayloadDepth + 1) }, "payload"],
    ["send_message", { to: BOB, payload: nested(2000) }, "payload"],
    ["send_message", { to: BOB, payload: JSON.parse('{"a":{"__proto__":{}}}') }, "payload"],
    ["send_message", { to: BOB, message: "hi", task_id: "" }, "task_id"],
    ["send_message", { to: BOB, message: "hi", type: "weather" }, "type"],
    ["ask_agent", { to: BOB, message: "hi", type: "message.Weather" }, "type"],
    ["ask_agent", { to: 7, message: "hi" }, "to"],
    ["send_message", { to: BOB, message: "hi", from: BOB }, "from"],
    ["send_message", { to: BOB, message: "hi", wait_online_seconds: 60 }, "wait_online_seconds"],
    ["ask_agent", { to: BOB }, "payload"],
    ["ask_agent", { to: BOB, message: "hi", timeout_seconds: 51 }, "timeout_seconds"],
    ["ask_agent", { to: BOB, message: "hi", timeout_seconds: 40, wait_online_seconds: 20 }, "timeout_seconds"],
    ["reply_to", { to: BOB, message: "hi" }, "envelope_id"],
    ["request_session", { to: BOB }, "purpose"],
    ["request_session", { to: BOB, purpose: "work", ttl_minutes: 4 }, "ttl_minutes"],
    ["request_session", { to: BOB, purpose: "work", ttl_minutes: 7.5 }, "ttl_minutes"],
    ["approve_session", { session_id: "ses_1" }, "session_id"],
    ["approve_session", { session_id: SESSION, to: BOB }, "to"],
    ["reject_session", { session_id: SESSION, reason: "x".repeat(TEXT_LIMITS.reason + 1) }, "reason"],
    ["wait_for_messages", { timeout_seconds: 3600 }, "timeout_seconds"],
    ["wait_for_messages", { max: 0 }, "max"],
    ["check_presence", { agent_id: "agent://*" }, "agent_id"],
    ["my_status", { verbose: true }, "verbose"],
  ])("is an error of the tool %s that names the member, and is not sent: %#", async (name, input, member) => {
    const refused = { code: "invalid_arguments", retry: "fix", outcome: "refused", hint: expect.any(String) };
    const error = await alice.error(name, input);
    expect(error).toMatchObject({
      ...refused,
      errors: [{ member, message: expect.any(String) }, ...error.errors.slice(1)],
    });
  });

  test.each(["no_such_tool", "__proto__", "constructor"])(
    "is a call of a tool that does not exist: %s",
    async (name) => {
      await expect(alice.call(name)).rejects.toMatchObject({ code: INVALID_PARAMS });
    },
  );

  test("is a call without a name, or whose arguments are no object", async () => {
    const { client } = alice;
    for (const params of [{}, { name: 1 }, { name: "my_status", arguments: [] }]) {
      const request = { method: "tools/call", params } as Parameters<typeof client.request>[0];
      await expect(client.request(request, EmptyResultSchema)).rejects.toMatchObject({ code: INVALID_PARAMS });
    }
  });

  test("is told from what nobody received, which says what to do then", async () => {
    const sent = await alice.call("send_message", { to: "agent://nobody", message: "hi" });
    expect(sent).toMatchObject({ can_deliver_realtime: false, sealed: false, next_action: expect.any(String) });
    expect(await alice.call("send_message", { to: "agent://alice", message: "hi" })).not.toHaveProperty("next_action");
  });

  test("is told with code and hint: a session that nobody requested of this agent", async () => {
    const input = { session_id: SESSION };
    const refused = { retry: "never", outcome: "refused", connection: expect.objectContaining({ status: "online" }) };
    const unknown = { ...refused, code: "unknown_session", message: expect.any(String), hint: expect.any(String) };
    expect(await alice.error("approve_session", input)).toEqual(unknown);
    expect(await alice.error("reject_session", { ...input, reason: "no" })).toEqual(unknown);
  });

  test("is told of a payload that is too large before it goes out, and of one that no JSON can hold", async () => {
    const tooLarge = { text: "x".repeat(ENVELOPE_LIMITS.maxFrameBytes) };
    expect(await alice.error("send_message", { to: BOB, payload: tooLarge })).toMatchObject({
      code: "frame_too_large",
    });
    expect(await alice.error("send_message", { to: BOB, message: "\ud800" })).toMatchObject({
      code: "invalid_envelope",
    });
  });

  test("takes what is just within the bounds", async () => {
    const payload = nested(ENVELOPE_LIMITS.maxPayloadDepth);
    expect(await alice.call("send_message", { to: BOB, payload })).toMatchObject({ target_status: "not_seen" });
  });
});
