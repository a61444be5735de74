import { expect, test } from "@jest/globals";
import { Clock } from "../src/clock.ts";
import { PAYLOAD_LIMITS } from "../src/limits.ts";
import { Signer } from "../src/signer.ts";
import { draftOf } from "../src/wire-mapping.ts";

const signer = new Signer({ keyId: "k", alg: "hmac-sha256", secret: "A".repeat(43) }, new Clock());
const { maxLevels, maxMembers } = PAYLOAD_LIMITS;

function draft(payload: object): string {
  return signer.draft(draftOf({ type: "message.send", to: "agent://bob", payload }, "e", "agent://ann"));
}

function nested(levels: number): object {
  return levels === 1 ? {} : { a: nested(levels - 1) };
}

test.each([
  ["more levels than the relay takes", nested(maxLevels + 1)],
  ["far more levels", nested(3000)],
  ["more members than the relay takes", { a: Array(maxMembers).fill(0) }],
  ["more levels, which toJSON gives it", { toJSON: () => nested(maxLevels + 1) }],
  ["a member __proto__", { a: [JSON.parse('{"__proto__":1}')] }],
])("A payload with %s is not signed", (_, payload) => {
  const errors = [{ field: "payload", message: expect.stringMatching(/32 levels and 2000 members/) }];
  expect(() => draft(payload)).toThrow(expect.objectContaining({ code: "invalid_envelope", errors }));
});

test.each([
  ["as many levels as the relay takes", nested(maxLevels)],
  ["as many members as the relay takes", { a: Array(maxMembers - 1).fill(0) }],
  ["members that are left out", Object.fromEntries(Array.from({ length: maxMembers + 1 }, (_, n) => [n, undefined]))],
])("A payload with %s is signed", (_, payload) => {
  expect(draft(payload)).toMatch(/"payload":\{/);
});
