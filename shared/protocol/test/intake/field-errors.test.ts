import { describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { ENVELOPE_SCHEMAS } from "../../src/contract/envelope.ts";
import { SimpleSessionRequest } from "../../src/contract/requests.ts";
import { fieldErrors, IN_PLAIN_WORDS, namedFieldErrors } from "../../src/intake/refusal.ts";
import { generateApiKey } from "../../src/signing/api-key.ts";

const Schema = z.strictObject({ known: z.strictObject({}).optional() });
const UNNAMED = { field: "unknown field", message: "not allowed" };

function errorOf(value: object): z.ZodError {
  const { error } = Schema.safeParse(value);
  if (error === undefined) throw new Error("the value is valid");
  return error;
}
const named = (...names: string[]) => namedFieldErrors(errorOf(Object.fromEntries(names.map((name) => [name, 1]))));

describe("An unknown field", () => {
  test.each([
    ...["mesage", "x", "_private", "api_key", "x-api-key", "request_sha256", "Purpose2"],
    ...["expectedFrequency", "target_agent_id_2", "a_name_of_thirty_two_characters"],
  ])("is named to who sent it: %s", (name) => {
    expect(named(name)).toEqual([{ field: name, message: "unknown field" }]);
  });

  test.each([
    ["an API key", generateApiKey()],
    ["the beginning of an API key", generateApiKey().slice(0, 14)],
    ["a secret of 32 bytes", Buffer.alloc(32, 250).toString("base64url")],
    ["16 random bytes", "Zm9vYmFyMTIzNDU2Nzg5MA"],
    ["a digest of 16 bytes", "d41d8cd98f00b204e9800998ecf8427e"],
    ["random letters", "qGzWvTRkLmNbXpQs"],
    ["a name of more than 32 characters", "a".repeat(33)],
    ["a name with a space", "my field"],
    ["a name with a line break", "field\n"],
    ["a name that begins with a digit", "1st"],
    ["a name beyond ASCII", "größe"],
    ["no name", ""],
  ])("is not named when it is %s", (_, name) => {
    expect(named(name)).toEqual([UNNAMED]);
  });

  test("in a known one is named with its path", () => {
    expect(namedFieldErrors(errorOf({ known: { more: 1 } }))).toEqual([
      { field: "known.more", message: "unknown field" },
    ]);
  });

  test("is one of ten at most that are named, and the others are told of", () => {
    const errors = named(...Array.from({ length: 1000 }, (_, n) => `f${n}`), generateApiKey());
    expect(errors).toHaveLength(11);
    expect(errors.at(-1)).toEqual(UNNAMED);
  });

  test("is never named in a log", () => {
    expect(fieldErrors(errorOf({ mesage: 1, more: 1 }))).toEqual([UNNAMED]);
    expect(fieldErrors(errorOf({ known: { more: 1 } }))).toEqual([{ ...UNNAMED, field: "known.unknown field" }]);
  });
});

describe("An invalid field", () => {
  const request = { from: "agent://alice", to: "agent://bob", purpose: "p" };
  const envelope = { ...request, id: "-", type: "session.request", ts: 1, key_id: "k", sig: "s", payload: {} };
  const invalid: [z.ZodType, object][] = [
    [SimpleSessionRequest, {}],
    [SimpleSessionRequest, { ...request, to: request.from }],
    ...[1, null, "", "x".repeat(501), []].map((purpose): [z.ZodType, object] => [
      SimpleSessionRequest,
      { ...request, purpose },
    ]),
    ...["5", 1.5, 4, 1441, Number.NaN].map((ttl_minutes): [z.ZodType, object] => [
      SimpleSessionRequest,
      { ...request, ttl_minutes },
    ]),
    ...Object.values(ENVELOPE_SCHEMAS).flatMap((schema): [z.ZodType, object][] => [
      [schema, {}],
      [schema, []],
      [schema, { ...envelope, payload: { capabilities: [1], session_id: "s" } }],
      [schema, { ...envelope, payload: { capabilities: Array(33).fill("c"), label: 1 } }],
    ]),
  ];

  test("is told of by the relay's own words, never by the validator's", () => {
    for (const [schema, value] of invalid) {
      const { error } = schema.safeParse(value, IN_PLAIN_WORDS);
      expect(error?.issues.length).toBeGreaterThan(0);
      const own = schema.safeParse(value).error?.issues.map(({ message }) => message) ?? [];
      const raw = own.filter((message) => /^(Invalid|Too|Unrecognized)/.test(message));
      const told = namedFieldErrors(error as z.ZodError).map(({ message }) => message);
      expect(told.filter((message) => raw.includes(message))).toEqual([]);
      expect(told.every((message) => /^(must|is|unknown field)/.test(message))).toBe(true);
    }
  });

  test("that is missing is told apart from one of another type", () => {
    const told = (value: object) =>
      namedFieldErrors(SimpleSessionRequest.safeParse(value, IN_PLAIN_WORDS).error as z.ZodError);
    const [missing] = told({ ...request, purpose: undefined });
    const [wrong] = told({ ...request, purpose: 1 });
    expect(missing?.field).toBe("purpose");
    expect(missing?.message).not.toBe(wrong?.message);
  });

  test("is told of without its value", () => {
    const secret = "rk_secret";
    const value = { from: secret, to: secret, purpose: [secret], ttl_minutes: secret };
    const { error } = SimpleSessionRequest.safeParse(value, IN_PLAIN_WORDS);
    expect(JSON.stringify(namedFieldErrors(error as z.ZodError))).not.toContain(secret);
  });
});
