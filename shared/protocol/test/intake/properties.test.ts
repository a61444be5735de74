import { describe, expect, test } from "@jest/globals";
import { fc } from "../../../../test/support/fast-check.ts";
import { isRefusal } from "../../src/intake/refusal.ts";
import { ERRORS } from "../../src/wire/errors.ts";
import { parseJson } from "../../src/wire/json.ts";
import { ED25519, intake, signed } from "./support.ts";

/** Intake answers, with a refusal of the catalogue or with what it would forward. */
function answers(text: string): void {
  const result = intake(text);
  if (isRefusal(result)) expect(Object.keys(ERRORS)).toContain(result.code);
  else expect(parseJson(result.text)).toEqual(result.envelope);
}

const anyJson = fc.jsonValue({ stringUnit: "binary", depthSize: "medium" });
const hostile = fc.oneof(
  anyJson,
  fc.constantFrom("\ud800", "__proto__", "agent://*", "a\0b", "gateway-x", "а", Number.MAX_VALUE, -0, 2 ** 53, [], {}),
);
const valid = fc.constantFrom(
  signed(),
  signed({ key_id: "alice-ed" }, ED25519),
  signed({ type: "agent.register", payload: { label: "A" } }),
  signed({ type: "session.request", payload: { purpose: "talk" } }),
);

describe("Intake never throws, and always answers", () => {
  test("on any text", () => {
    fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 200 }), answers));
  });

  test("on any JSON", () => {
    fc.assert(fc.property(anyJson, (value) => answers(JSON.stringify(value))));
  });

  test("on a valid envelope with any one member changed, added or taken away", () => {
    const names = fc.oneof(fc.constantFrom(...Object.keys(signed()), "task_id", "__proto__", "toJSON"), fc.string());
    fc.assert(
      fc.property(valid, names, fc.option(hostile, { nil: undefined }), (envelope, name, value) => {
        const members = Object.entries(envelope).filter(([other]) => other !== name);
        answers(JSON.stringify(Object.fromEntries([...members, [name, value]])));
      }),
      { numRuns: 500 },
    );
  });

  test("on the text of a valid envelope with any one character changed", () => {
    fc.assert(
      fc.property(valid, fc.nat(), fc.string({ unit: "binary", maxLength: 2 }), (envelope, at, piece) => {
        const text = JSON.stringify(envelope);
        const place = at % text.length;
        answers(text.slice(0, place) + piece + text.slice(place + 1));
      }),
      { numRuns: 500 },
    );
  });
});
