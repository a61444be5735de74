import { describe, expect, test } from "@jest/globals";
import { codeOf, post, useGateway, useGatewayKit } from "./kit.ts";

const kit = useGatewayKit();
const gateway = useGateway(kit);

describe("feedback", () => {
  test.each(["/api/public/feedback", "/api/feedback"])("is counted and its text is not kept: POST %s", async (path) => {
    const before = (await kit.snapshot()).feedback;
    const feedback = { surface: "checkOnline", sentiment: "blocked", category: "Mallory was here", message: "secret" };
    const answer = await post(gateway.url + path, feedback);
    expect(answer.status).toBe(202);
    const note = expect.stringContaining("reaches no person");
    expect(await answer.json()).toEqual({ ok: true, stored: "aggregate_only", raw_message_stored: false, note });

    const { feedback: after } = await kit.snapshot();
    for (const name of ["total", "surface:checkOnline", "sentiment:blocked", "category:other", "message_provided"]) {
      expect(after.get(name)).toBe((before.get(name) ?? 0) + 1);
    }
    expect([...after.keys()].join()).not.toMatch(/mallory|secret/i);
  });

  test("refuses what it does not know", async () => {
    expect(await codeOf(post(`${gateway.url}/api/feedback`, { email: "a@b.c" }))).toBe("400 invalid_request");
    expect(await codeOf(post(`${gateway.url}/api/feedback`, { message: 1 }))).toBe("400 invalid_request");
  });
});
