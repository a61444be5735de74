import { expect, test } from "@jest/globals";
import { newEnvelopeId } from "../src/api/publisher.ts";

test("envelope ids have env_ and 26 characters of Crockford base32, and no two are alike", () => {
  const ids = Array.from({ length: 1000 }, newEnvelopeId);
  for (const id of ids) expect(id).toMatch(/^env_[0-9a-hjkmnp-tv-z]{26}$/);
  expect(new Set(ids).size).toBe(ids.length);
});
