import { expect, test } from "@jest/globals";
import { SignedEnvelope as RelaysEnvelope } from "relay-protocol/contract/envelope.ts";
import { isRefusal } from "relay-protocol/intake/refusal.ts";
import { decode } from "relay-protocol/intake/steps.ts";
import { readEnvelope } from "../src/read-envelope.ts";

const ENVELOPE = {
  id: "env_1",
  type: "message.send",
  from: "agent://alice",
  to: "agent://bob",
  task_id: "t",
  payload: {},
  ts: 1,
  key_id: "alice-1",
  sig: "A".repeat(86),
};
const [MEGABYTE, LONGEST_AGENT] = ["x".repeat(1_000_000), `agent://${"a".repeat(63)}`];

test.each([
  {},
  { task_id: undefined },
  { task_id: "🙂".repeat(128) },
  { id: "i".repeat(128), task_id: "t".repeat(128), key_id: "k".repeat(128), from: LONGEST_AGENT, to: LONGEST_AGENT },
  { type: `message.${"t".repeat(32)}` },
  { type: "session.request", payload: { purpose: "p" } },
  { sig: "A".repeat(43) },
  { id: "i".repeat(129) },
  { id: MEGABYTE },
  { id: "a b" },
  { id: "" },
  { type: MEGABYTE },
  { type: `message.${"t".repeat(33)}` },
  { type: "other.send" },
  { type: `${MEGABYTE}.send` },
  { from: `${LONGEST_AGENT}a` },
  { from: "alice" },
  { to: MEGABYTE },
  { task_id: "t".repeat(129) },
  { task_id: "🙂".repeat(129) },
  { task_id: "" },
  { task_id: null },
  { key_id: "k".repeat(129) },
  { key_id: MEGABYTE },
  { sig: 1 },
  { ts: "1" },
  { payload: [] },
])("What a relay would not have taken is no envelope (%#)", (changes) => {
  const envelope = JSON.parse(JSON.stringify({ ...ENVELOPE, ...changes }));
  const isRelays = RelaysEnvelope.safeParse(envelope).success;
  expect(readEnvelope(envelope)).toEqual(isRelays ? envelope : undefined);
});

test("A task whose id has a lone surrogate is none for the connector, as it is none for the relay", () => {
  const envelope = { ...ENVELOPE, task_id: "\ud800" };
  expect(isRefusal(decode(JSON.stringify(envelope)))).toBe(true);
  expect(readEnvelope(envelope)).toBeUndefined();
});

const nested = (levels: number) => `{"a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
const listed = (items: number) => `{"a":[${Array(items).fill("[]")}]}`;

test.each([
  ["32 levels", nested(32)],
  ["33 levels", nested(33)],
  ["5,000 levels", nested(5000)],
  ["2,000 members", listed(1999)],
  ["2,001 members", listed(2000)],
  ["__proto__ as a member name", '{"a":{"__proto__":1}}'],
  ["a lone surrogate", '{"a":"\\ud800"}'],
  ["a number that is no double", '{"a":1e999}'],
])("A payload is one for the connector if it is one for the relay: %s", (_, payload) => {
  const text = JSON.stringify(ENVELOPE).replace('"payload":{}', `"payload":${payload}`);
  const envelope = JSON.parse(text);
  expect(readEnvelope(envelope) === undefined).toBe(isRefusal(decode(text)));
});
