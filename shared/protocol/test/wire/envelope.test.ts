import { describe, expect, test } from "@jest/globals";
import { fc } from "../../../../test/support/fast-check.ts";
import { ENVELOPE_SCHEMAS } from "../../src/contract/envelope.ts";
import { ENVELOPE_MEMBERS, type EnvelopeKind, envelopeProblems, PAYLOAD_MEMBERS } from "../../src/wire/envelope.ts";
import { TEXT_LIMITS } from "../../src/wire/limits.ts";

const SESSION = "ses_00000000000000000000000000";
const VALID: Readonly<Record<EnvelopeKind, object>> = {
  register: { type: "agent.register", payload: {} },
  heartbeat: { type: "agent.heartbeat", payload: {} },
  message: { type: "message.send", to: "agent://bob", payload: { message: "hi" } },
  session_request: { type: "session.request", to: "agent://bob", payload: { purpose: "talk" } },
  session_decision: { type: "session.approve", to: "agent://bob", payload: { session_id: SESSION } },
};
const COMMON = { id: "e1", from: "agent://alice", ts: 1, key_id: "alice-1", sig: "A".repeat(86) };
const kinds = Object.keys(VALID) as EnvelopeKind[];

/** One code point of two units each, and one of one. */
const texts = [...new Set([0, 1, 2, 43, 86, ...Object.values(TEXT_LIMITS), 2048])].flatMap((length) =>
  [length, length + 1].flatMap((size) => ["a".repeat(size), "😀".repeat(size)]),
);
const lists = [0, 32, 33, 50, 51].flatMap((size) =>
  ["agent://bob", "issuer:acme", "agent://acme.*", "x", 1].map((item) => Array(size).fill(item)),
);
const member = fc.oneof(
  fc.constantFrom(...texts),
  fc.constantFrom<unknown>(...lists),
  fc.constantFrom<unknown>(undefined, null, true, {}, [], 4, 5, 5.5, 1440, 1441, 2 ** 53, -1, Number.NaN, SESSION),
  fc.constantFrom(
    "agent://bob",
    "agent://alice",
    "agent://BOB",
    "message.word",
    "message.",
    "session.reject",
    "\ud800",
  ),
  fc.jsonValue(),
  // With a hole, as an application may make it.
  fc.constant(Array(1)),
);

/** The first names of the paths that are wrong: whom the caller has to look at. */
function wrongMembers(kind: EnvelopeKind, envelope: object): string[] {
  const { error } = ENVELOPE_SCHEMAS[kind].safeParse(envelope);
  const issues = error?.issues ?? [];
  // The table says last that a session is between two: of members that are well by themselves.
  const counted = issues.filter(({ code }) => code !== "custom" || issues.length === 1);
  const names = counted.flatMap((issue) =>
    issue.code === "unrecognized_keys"
      ? issue.keys
      : [issue.path.slice(0, issue.path[0] === "payload" ? 2 : 1).join(".")],
  );
  return [...new Set(names)].sort();
}

describe.each(kinds)("An envelope of kind %s", (kind) => {
  const names = [...Object.keys(ENVELOPE_MEMBERS), "payload", "extra"];
  const inPayload = [...Object.keys(PAYLOAD_MEMBERS[kind]), "extra"];
  const changes = fc.array(fc.tuple(fc.constantFrom(...names, ...inPayload.map((name) => `payload.${name}`)), member), {
    maxLength: 3,
  });

  test("has the same wrong members by the table as by the schema that is made of it", () => {
    fc.assert(
      fc.property(changes, (changed) => {
        const envelope: Record<string, unknown> = { ...COMMON, ...structuredClone(VALID[kind]) };
        for (const [path, value] of changed) {
          const [name = "", inner] = path.split(".");
          if (inner === undefined) envelope[name] = value;
          else if (
            typeof envelope.payload === "object" &&
            envelope.payload !== null &&
            !Array.isArray(envelope.payload)
          )
            envelope.payload = { ...envelope.payload, [inner]: value };
        }
        const found = [...new Set(envelopeProblems(envelope).map(({ field }) => field))].sort();
        expect(found).toEqual(wrongMembers(kind, envelope));
      }),
      { numRuns: 1000 },
    );
  });
});
