import { SESSION_TTL_MINUTES } from "../../limits.ts";
import { AGENT_OPTIONS, readArguments, wholeNumber } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { Failure, usageError } from "../failure.ts";
import { jsonLine, writeLine } from "../output.ts";
import { RejectReasons } from "../reject-reasons.ts";
import { type Opened, sendOnce } from "../send-once.ts";
import { decisionOn } from "../session-decision.ts";
import { receiptOf, type WriteReceipt, withReceiptFile } from "../session-receipt.ts";
import type { ControlResult } from "../sharing/requests.ts";
import { targetOf } from "../target.ts";

/** Of the relay, to say that a session has expired. */
const GRACE_S = 60;
const MAX_WAIT_S = SESSION_TTL_MINUTES.max * 60 + GRACE_S;

export const request: Command = {
  help: `relay request <to> --purpose TEXT: request a session with an agent.

  relay request agent://bob --purpose "weekly report" --ttl 120 --wait

  --purpose TEXT    what the session is for, 1 to 500 characters
  --ttl MINUTES     how long the target may take to decide, 5 to 1440; default 60
  --intro TEXT      who you are
  --scope TEXT      what it covers
  --frequency TEXT  how often you expect to send messages
  --wait            wait for the decision, also while the relay is away, and print it, too: exit code 0 when approved, 3 when
                    rejected or expired, or when the relay came back without the session, 5 at once when the target is not online
  --receipt FILE    with --wait: write the receipt of the decision to this new file, for relay verify; exit code 8 when there
                    is none. It is signed by the agent's own key, never over HTTP
  --timeout SECONDS how long to wait for it at most; default until the session ends, and a minute
  --take-over       send although the agent is online elsewhere, which ends that connection
  --key FILE        the agent's key file; or RELAY_KEY_FILE
  --url URL         the relay; or RELAY_URL; default http://127.0.0.1:8080
  --json            the result as one line of JSON; with --wait a second one has session_id and the decision in session_status,
                    its receipt, where there is one, and the reason of a reject, where it came over a connection of this
                    command (a relay listen prints it itself)

It is sent as relay send does; see its help. A session is an agreement to communicate, never a payment or a promise of work.
`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, {
      ...AGENT_OPTIONS,
      purpose: { type: "string" },
      ttl: { type: "string" },
      intro: { type: "string" },
      scope: { type: "string" },
      frequency: { type: "string" },
      wait: { type: "boolean" },
      receipt: { type: "string" },
      timeout: { type: "string" },
      "take-over": { type: "boolean" },
    });
    const [target, ...others] = positionals;
    const { purpose, intro, scope, frequency } = values;
    if (target === undefined || others.length > 0) throw usageError("request takes one word, the target.");
    if (purpose === undefined) throw usageError("The purpose of the session is missing: --purpose TEXT.");
    if (values.receipt !== undefined && !values.wait) throw usageError("--receipt needs --wait.");
    const ttl_minutes = wholeNumber("ttl", values.ttl, SESSION_TTL_MINUTES.min, SESSION_TTL_MINUTES.max);
    const sent = {
      to: targetOf(target),
      request: { purpose, ttl_minutes, intro, scope, expected_frequency: frequency },
    };
    const endS = (ttl_minutes ?? SESSION_TTL_MINUTES.default) * 60 + GRACE_S;
    const timeoutS = wholeNumber("timeout", values.timeout, 1, MAX_WAIT_S) ?? endS;
    const reasons = new RejectReasons(sent.to);
    const after = async (result: ControlResult, { http, reporter, transport }: Opened, write?: WriteReceipt) => {
      // A duplicate says how the target is now: it may have got the first.
      if (!result.target_delivery.can_deliver_realtime && !result.duplicate) throw notOnline();
      const { session_id = "" } = result;
      const decided = decisionOn(session_id, { http, reporter }, Date.now() + timeoutS * 1000, io.signal);
      const text = `Waiting for ${sent.to} to decide, up to ${timeoutS} s.`;
      const decision = await reporter.whileWaiting(text, decided);
      const reason = decision === "rejected" ? await reasons.of(session_id, io.signal) : undefined;
      const wantsReceipt = decision !== "expired" && (values.json === true || write !== undefined);
      const made = wantsReceipt ? await settled(receiptOf(session_id, transport, io.signal)) : {};
      const line = values.json
        ? jsonLine({ ok: true, session_id, session_status: decision, reason, receipt: made.receipt })
        : `The session is ${decision}${reason === undefined ? "" : `: ${jsonLine(reason)}`}.`;
      await writeLine(io.stdout, line);
      if (wantsReceipt && write !== undefined) {
        if (made.error !== undefined) throw made.error;
        await write(made.receipt);
      }
      return decision === "approved" ? EXIT.ok : EXIT.refused;
    };
    const once = async (write?: WriteReceipt) => {
      const decided = (result: ControlResult, opened: Opened) => after(result, opened, write);
      const waits = values.wait && { after: decided, heard: reasons.heard };
      return await sendOnce(values, { isForGateway: write === undefined, request: async () => sent, ...waits }, io);
    };
    return values.receipt === undefined ? await once() : await withReceiptFile(values.receipt, once);
  },
};

/** The receipt, or why there is none. */
async function settled(making: Promise<unknown>): Promise<{ readonly receipt?: unknown; readonly error?: unknown }> {
  return await making.then(
    (receipt) => ({ receipt }),
    (error: unknown) => ({ error }),
  );
}

/** A decision on what nobody received would prove nothing. */
function notOnline(): Failure {
  const hint = "Request again once relay status shows it online.";
  return new Failure("target_not_online", "The target is not online: no decision is waited for.", hint, {
    retry: "later",
  });
}
