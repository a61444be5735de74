import type { Mutation } from "../mutation.ts";

/** From a text to a verified envelope. */
export const ENVELOPE_MUTATIONS: readonly Mutation[] = [
  {
    name: "depth cap",
    file: "shared/src/intake/decode.ts",
    find: "if (level > ENVELOPE_LIMITS.maxPayloadDepth)",
    replace: "if (level > 1000 * ENVELOPE_LIMITS.maxPayloadDepth)",
    tests: ["shared/test/intake/decode.test.ts"],
  },
  {
    name: "no member named __proto__",
    file: "shared/src/intake/decode.ts",
    find: 'if (name === "__proto__")',
    replace: "if (false)",
    tests: ["shared/test/intake/decode.test.ts"],
  },
  {
    name: "no lone surrogates",
    file: "shared/src/intake/decode.ts",
    find: 'value.isWellFormed() ? undefined : "A string',
    replace: 'true ? undefined : "A string',
    tests: ["shared/test/intake/decode.test.ts"],
  },
  {
    name: "unknown fields refused",
    file: "shared/src/contract/envelope.ts",
    find: "message: z.strictObject({",
    replace: "message: z.looseObject({",
    tests: ["test/conformance/invalid-envelope.test.ts"],
  },
  {
    name: "size of the canonical text",
    file: "shared/src/intake/steps.ts",
    find: "if (Buffer.byteLength(canonical) <= ENVELOPE_LIMITS.maxFrameBytes)",
    replace: "if (true)",
    tests: ["shared/test/intake/steps.test.ts"],
  },
  {
    name: "clock window",
    file: "shared/src/intake/steps.ts",
    find: "if (Math.abs(envelope.ts - now) <= ENVELOPE_LIMITS.maxClockSkewMs)",
    replace: "if (true)",
    tests: ["shared/test/intake/steps.test.ts"],
  },
  {
    name: "clock window, ahead",
    file: "shared/src/intake/steps.ts",
    find: "Math.abs(envelope.ts - now)",
    replace: "now - envelope.ts",
    tests: ["shared/test/intake/steps.test.ts"],
  },
  {
    name: "signature check",
    file: "shared/src/intake/steps.ts",
    find: "const refused = valid ?",
    replace: "const refused = true ?",
    tests: ["shared/test/intake/steps.test.ts"],
  },
  {
    name: "key binding: a key signs for its own agents",
    file: "shared/src/intake/steps.ts",
    find: "return entry.mayAct(envelope.from) ?",
    replace: "return true ?",
    tests: ["shared/test/intake/steps.test.ts"],
  },
  {
    name: "nobody outside signs as a gateway",
    file: "shared/src/intake/steps.ts",
    find: "if (envelope.key_id.startsWith(GATEWAY_KEY_PREFIX))",
    replace: "if (false)",
    tests: ["shared/test/intake/steps.test.ts"],
  },
  {
    name: "canonical text is what is forwarded",
    file: "shared/src/intake/steps.ts",
    find: "text: signedText(canonical, envelope.sig)",
    replace: "text: JSON.stringify(envelope)",
    tests: ["shared/test/intake/steps.test.ts"],
  },
];
