import { describe, expect, test } from "@jest/globals";
import { UNTRUSTED_NOTE } from "../../src/mcp/instructions.ts";
import { shared } from "../fixture.ts";
import { McpStage } from "./kit.ts";

const stage = shared(new McpStage("alice", "bob"));

/** Tag characters, an override of the text's direction, and a space without a width. */
const UNSEEN = "\u{e0041}\u{e0042}\u202e\u200b";
const ANY_UNSEEN = /[\u{e0000}-\u{e0fff}\u202e\u200b]/u;
const MESSAGE = `Lines\nand 👩‍🚀 stay.${UNSEEN}`;

describe("Characters that nobody sees", () => {
  test("reach no model as they are, wherever another agent writes them, and a program gets the same value", async () => {
    const host = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob", stage.url);
    for (let n = 0; n < 2; n += 1)
      await bob.send("agent://alice", { message: MESSAGE, [UNSEEN]: n }, { taskId: `task ${UNSEEN}` });

    const { messages } = await host.call("wait_for_messages", { max: 1 });
    expect(JSON.stringify(messages)).not.toMatch(ANY_UNSEEN);
    expect(messages[0].payload.message).toBe("Lines\nand 👩‍🚀 stay.\\udb40\\udc41\\udb40\\udc42\\u202e\\u200b");

    const texts = await host.texts("wait_for_messages", { max: 1 });
    expect(texts.join()).not.toMatch(ANY_UNSEEN);
    const [message] = JSON.parse(texts.at(-1) as string).messages;
    expect(message).toMatchObject({ payload: { message: MESSAGE, [UNSEEN]: 1 }, task_id: `task ${UNSEEN}` });
  });
});

test("The note before messages names each member of one that its sender chooses", () => {
  for (const member of ["payload", "task_id", "type", "envelope_id"]) expect(UNTRUSTED_NOTE).toContain(member);
});
