import { z } from "zod";
import { RelayError } from "../errors.ts";
import { PENDING } from "../session-status.ts";
import type { McpAgent } from "./agent.ts";
import { UNTRUSTED_NOTE } from "./instructions.ts";
import { SessionId } from "./schemas.ts";
import { sessionState } from "./session-state.ts";
import type { Tool } from "./tool.ts";

const ReceiptInput = z.strictObject({ session_id: SessionId });
const ReceiptOutput = z.strictObject({ receipt: z.looseObject({}), next_action: z.string() });

export const sessionReceipt: Tool<typeof ReceiptInput, typeof ReceiptOutput> = {
  name: "session_receipt",
  title: "Session receipt",
  description: "Evidence of who requested and decided a session, signed by both.",
  input: ReceiptInput,
  output: ReceiptOutput,
  annotations: { readOnlyHint: true },
  isWithoutConnection: true,
  async run({ session_id }, agent, { signal }) {
    try {
      return { receipt: { ...(await agent.connector.receipt(session_id)) }, next_action: TO_KEEP };
    } catch (error) {
      throw await whyNone(agent, session_id, signal, error);
    }
  },
  isSigned: true,
  preface: () => UNTRUSTED_NOTE,
};

const TO_KEEP =
  "To keep it, your user runs relay receipt with the session's id while this process runs; relay verify checks it.";

/** What is missing may be no fault of anybody: the session is undecided, or there is none of that id. @throws for no such session. */
async function whyNone({ sessionOf }: McpAgent, sessionId: string, signal: AbortSignal, error: unknown) {
  if (!(error instanceof Error && "code" in error && error.code === "receipt_incomplete")) return error;
  const state = await sessionState(sessionOf, sessionId, signal).catch((failure) => failure);
  if (state.code === "unknown_session") return state;
  if (state.status === PENDING) {
    const hint = `${state.target} has until ${state.expiresAt} to decide; then there is a receipt.`;
    return new RelayError("receipt_incomplete", { message: "The session is not decided yet.", hint, retry: "later" });
  }
  if (state.status !== "expired") return error;
  const hint = "Its requester may request a new session.";
  return new RelayError("receipt_incomplete", { message: "The session expired: nobody decided it.", hint });
}
