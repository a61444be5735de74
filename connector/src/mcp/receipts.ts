import { z } from "zod";
import { UNTRUSTED_NOTE } from "./instructions.ts";
import { SessionId } from "./schemas.ts";
import type { Tool } from "./tool.ts";

const ReceiptInput = z.strictObject({ session_id: SessionId });
const ReceiptOutput = z.strictObject({ receipt: z.looseObject({}) });

export const sessionReceipt: Tool<typeof ReceiptInput, typeof ReceiptOutput> = {
  name: "session_receipt",
  title: "Session receipt",
  description: "Evidence of who requested and decided a session, signed by both.",
  input: ReceiptInput,
  output: ReceiptOutput,
  annotations: { readOnlyHint: true },
  async run({ session_id }, { connector }) {
    return { receipt: { ...(await connector.receipt(session_id)) } };
  },
  preface: () => UNTRUSTED_NOTE,
};
