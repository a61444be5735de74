import { describe, expect, test } from "@jest/globals";
import { fc } from "../../../../test/support/fast-check.ts";
import { canonicalText, signedText } from "../../src/signing/canonical.ts";
import {
  CANONICAL_SIGNING_ORDER,
  ENVELOPE_MEMBERS,
  type JsonObject,
  type UnsignedEnvelope,
} from "../../src/wire/envelope.ts";
import { parseJson } from "../../src/wire/json.ts";
import { JCS_SAMPLES } from "./jcs-samples.ts";

const ENVELOPE: UnsignedEnvelope = {
  id: "env-1",
  type: "message.send",
  from: "agent://alice",
  to: "agent://bob",
  payload: { message: "hi" },
  ts: 1_790_000_000_000,
  key_id: "alice-1",
};

/** The canonical text of any JSON value, as it stands in an envelope's payload. */
function canonicalValue(value: unknown): string {
  const text = canonicalText({ ...ENVELOPE, payload: { value } });
  return text.slice(text.indexOf('{"value":') + '{"value":'.length, text.lastIndexOf('},"ts":'));
}

/** The same value with the members of every object the other way round. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, reversed(member)]),
  );
}

describe("The canonical text", () => {
  test("holds every member of an envelope but the signature, in signing order", () => {
    const whole = { ...ENVELOPE, task_id: "task-1" };
    const { sig: _, ...members } = ENVELOPE_MEMBERS;
    const signed = Object.keys(parseJson(canonicalText(whole)) as object);
    expect(signed).toEqual([...CANONICAL_SIGNING_ORDER]);
    expect(signed.toSorted()).toEqual([...Object.keys(members), "type", "payload"].toSorted());
  });

  test("is the protocol's example, byte for byte", () => {
    expect(canonicalText(ENVELOPE)).toBe(
      '{"id":"env-1","type":"message.send","from":"agent://alice","to":"agent://bob","payload":{"message":"hi"},"ts":1790000000000,"key_id":"alice-1"}',
    );
  });

  test("has task_id between to and payload, and leaves out what is absent", () => {
    const { to: _, ...withoutTo } = ENVELOPE;
    expect(Object.keys(JSON.parse(canonicalText({ ...ENVELOPE, task_id: "t" })))).toEqual([
      ...["id", "type", "from", "to", "task_id", "payload", "ts", "key_id"],
    ]);
    expect(Object.keys(JSON.parse(canonicalText(withoutTo)))).toEqual([
      "id",
      "type",
      "from",
      "payload",
      "ts",
      "key_id",
    ]);
  });

  test("never holds the signature of a signed envelope", () => {
    const signed = { ...ENVELOPE, sig: "A".repeat(43) };
    expect(canonicalText(signed)).toBe(canonicalText(ENVELOPE));
  });

  test("takes the signature as its last member when it is forwarded", () => {
    const text = signedText(canonicalText(ENVELOPE), "abc-_");
    expect(text.endsWith(',"key_id":"alice-1","sig":"abc-_"}')).toBe(true);
    expect(JSON.parse(text)).toEqual({ ...ENVELOPE, sig: "abc-_" });
  });

  test("refuses what RFC 8785 cannot express", () => {
    expect(() => canonicalText({ ...ENVELOPE, payload: { message: "\ud800" } })).toThrow();
    expect(() => canonicalText({ ...ENVELOPE, task_id: "\udfff" })).toThrow();
    expect(() => canonicalText({ ...ENVELOPE, payload: { number: Number.POSITIVE_INFINITY } })).toThrow();
  });

  test("does not depend on the order of members, and says what the envelope says", () => {
    const payloads = fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue({ stringUnit: "binary" }));
    fc.assert(
      fc.property(payloads, fc.option(fc.string({ unit: "grapheme" }), { nil: undefined }), (payload, taskId) => {
        const envelope = {
          ...ENVELOPE,
          payload: payload as JsonObject,
          ...(taskId === undefined ? {} : { task_id: taskId }),
        };
        const text = canonicalText(envelope);
        expect(canonicalText(reversed(envelope) as UnsignedEnvelope)).toBe(text);
        expect(canonicalText(parseJson(text) as UnsignedEnvelope)).toBe(text);
        expect(parseJson(text)).toEqual(parseJson(JSON.stringify(envelope)));
      }),
    );
  });
});

describe("RFC 8785", () => {
  test("section 3.2.2: literals, numbers and strings are written as the RFC writes them", () => {
    const input = String.raw`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
      "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`;
    expect(canonicalValue(JSON.parse(input))).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });

  test("section 3.2.3: members are sorted by UTF-16 code units", () => {
    const input = String.raw`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",
      "\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`;
    const values = [...canonicalValue(JSON.parse(input)).matchAll(/:"([^"]*)"/g)].map(([, value]) => value);
    expect(values).toEqual([
      "Carriage Return",
      "One",
      "Control",
      "Latin Small Letter O With Diaeresis",
      "Euro Sign",
      "Emoji: Grinning Face",
      "Hebrew Letter Dalet With Dagesh",
    ]);
  });

  test.each([
    ["0000000000000000", "0"],
    ["8000000000000000", "0"],
    ["0000000000000001", "5e-324"],
    ["7fefffffffffffff", "1.7976931348623157e+308"],
    ["4340000000000000", "9007199254740992"],
    ["44b52d02c7e14af5", "9.999999999999997e+22"],
    ["44b52d02c7e14af6", "1e+23"],
    ["444b1ae4d6e2ef4e", "999999999999999700000"],
    ["444b1ae4d6e2ef50", "1e+21"],
    ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
    ["3eb0c6f7a0b5ed8d", "0.000001"],
    ["41b3de4355555554", "333333333.33333325"],
    ["becbf647612f3696", "-0.0000033333333333333333"],
    ["43143ff3c1cb0959", "1424953923781206.2"],
  ])("appendix B: the double %s is written %s", (bits, text) => {
    expect(canonicalValue(Buffer.from(bits, "hex").readDoubleBE())).toBe(text);
  });

  test.each(JCS_SAMPLES)("the published sample $name comes out byte for byte", ({ input, output }) => {
    expect(canonicalValue(JSON.parse(input))).toBe(output);
  });
});
