import { open, rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { RelayError } from "../../errors.ts";
import { textOf } from "../../frames.ts";
import { keepNewest } from "../../keep-newest.ts";
import { SESSION_TTL_MINUTES } from "../../limits.ts";
import { pause } from "../../pause.ts";
import type { Delivery } from "../../types.ts";
import { AGENT_OPTIONS, readArguments, TAKE_OVER, targetOf, wholeNumber } from "../arguments.ts";
import { EXIT, Failure, failureOf, usageError } from "../failure.ts";
import type { Command, Options } from "../io.ts";
import { jsonLine, type Reporter, writeLine } from "../io.ts";
import type { RelayHttp } from "../relay-http.ts";
import { type Opened, sendOnce } from "../send-once.ts";
import type { ControlResult, Transport } from "../sharing/requests.ts";

/** Of the relay, to say that a session has expired. */
const GRACE_S = 60;
const MAX_WAIT_S = SESSION_TTL_MINUTES.max * 60 + GRACE_S;

const OPTIONS = {
  ...AGENT_OPTIONS,
  purpose: { type: "string", value: "TEXT", help: "what the session is for, 1 to 500 characters" },
  ttl: { type: "string", value: "MINUTES", help: "time for the decision, 5 to 1440; default 60" },
  intro: { type: "string", value: "TEXT", help: "who you are" },
  scope: { type: "string", value: "TEXT", help: "what the session covers" },
  frequency: { type: "string", value: "TEXT", help: "how often you expect to send messages" },
  wait: { type: "boolean", help: "wait for the decision and print it" },
  receipt: { type: "string", value: "FILE", help: "with --wait: write the receipt to this new file" },
  timeout: { type: "string", value: "SECONDS", help: "with --wait: how long; default until the session ends" },
  ...TAKE_OVER,
} as const satisfies Options;

export const request: Command = {
  usage: "<agent> --purpose TEXT [options]",
  options: OPTIONS,
  examples: [
    `relay request agent://bob --purpose "weekly report"`,
    `relay request agent://bob --purpose report --wait --receipt receipt.json`,
  ],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, OPTIONS);
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
  return new Failure(
    "target_not_online",
    "The target is not online, so the command does not wait for a decision.",
    hint,
    {
      retry: "later",
    },
  );
}

export const LOOK_MS = 1000;
const DECISIONS: ReadonlySet<unknown> = new Set(["approved", "rejected", "expired"]);

interface Asking {
  readonly http: RelayHttp;
  /** Told when the relay goes away meanwhile. */
  readonly reporter: Reporter;
}

/**
 * Asks the relay for the decision on a session, until there is one: the answer itself may be delivered to another process of the
 * agent, or while there is no connection. @param deadline Unix ms.
 * @throws {Failure} `timeout`; `unknown_session` where the relay has lost the session; what no repetition changes.
 */
async function decisionOn(
  sessionId: string,
  { http, reporter }: Asking,
  deadline: number,
  signal: AbortSignal,
): Promise<string> {
  let away: Failure | undefined;
  for (;;) {
    const read = http.patiently(() => http.session(sessionId), deadline);
    const session = await read.catch(passing);
    if (session instanceof Failure) {
      if (away === undefined) reporter.report("waiting", `${session.message} Waiting for it.`, { code: session.code });
      away = session;
    } else {
      away = undefined;
      if (DECISIONS.has(session?.status)) return String(session?.status);
    }
    if (Date.now() >= deadline) throw undecided(away);
    await pause(Math.min(LOOK_MS, deadline - Date.now()), signal);
  }
}

/** Why the relay does not say it for the moment, such as during its restart. @throws {Failure} what stays as it is. */
function passing(error: unknown): Failure {
  const failure = failureOf(error);
  if (failure.code === "unknown_session") throw lost();
  if (failure.retry !== "later") throw failure;
  return failure;
}

/** The relay accepted the request, so it had the session. */
function lost(): Failure {
  const text = "The relay no longer has the session. Perhaps its Redis started empty.";
  return new Failure("unknown_session", text, "Nobody can decide this session now. Request it again.");
}

function undecided(away: Failure | undefined): Failure {
  const why = away === undefined ? "" : ` ${away.message}`;
  return new Failure(
    "timeout",
    `The session was not decided in time.${why}`,
    "It may still be decided. Look it up with relay status; a relay listen of this agent prints the decision.",
  );
}

/** A look-up of the session may overtake the delivery of its decision; nobody waits longer for one that went elsewhere. */
const DELIVERED_WITHIN_MS = 1000;
const ASK_AGAIN_MS = 50;
/** What is wrong with a receipt for good: only the decision may still come. */
const DECISION = "decision";
const CHOOSE_ANOTHER = "Give --receipt the name of a new file.";
const PRINTED_AGAIN = "If a relay listen of the agent runs, relay receipt prints the receipt again.";

/** The receipt of a session that was just decided. @throws {Failure | RelayError} `receipt_incomplete` when there is none. */
async function receiptOf(sessionId: string, transport: Transport, signal: AbortSignal): Promise<unknown> {
  if (transport.receipt === undefined) throw signedByGateway();
  const giveUpAt = performance.now() + DELIVERED_WITHIN_MS;
  for (;;) {
    try {
      return await transport.receipt(sessionId);
    } catch (error) {
      if (!mayStillCome(error) || performance.now() >= giveUpAt || signal.aborted) throw error;
      await delay(ASK_AGAIN_MS, undefined, { signal }).catch(() => {});
    }
  }
}

/** Writes a receipt as `relay receipt` prints it. */
type WriteReceipt = (receipt: unknown) => Promise<void>;

/**
 * Makes the file of a receipt before what it is the receipt of is sent: whoever names what exists, such as a key file, or what
 * cannot be written, has sent nothing. Without a receipt nothing is left of it.
 * @throws {Failure} `failed` when the file exists, or cannot be written.
 */
async function withReceiptFile<T>(file: string, use: (write: WriteReceipt) => Promise<T>): Promise<T> {
  const handle = await open(file, "wx").catch(({ code }: NodeJS.ErrnoException) => {
    if (code === "EEXIST") throw new Failure("failed", `${file} exists already. Nothing was sent.`, CHOOSE_ANOTHER);
    throw new Failure("failed", `${file} cannot be written (${code}). Nothing was sent.`, CHOOSE_ANOTHER);
  });
  let isWritten = false;
  try {
    return await use(async (receipt) => {
      await handle.writeFile(`${jsonLine(receipt)}\n`).catch(({ code }) => {
        throw new Failure("failed", `The receipt cannot be written to ${file} (${code}).`, PRINTED_AGAIN);
      });
      isWritten = true;
    });
  } finally {
    await handle.close();
    if (!isWritten) await rm(file, { force: true });
  }
}

/** A listener does not tell what is missing. */
function mayStillCome(error: unknown): boolean {
  if (error instanceof RelayError) return error.missing?.includes(DECISION) === true;
  return error instanceof Failure && error.code === "receipt_incomplete";
}

function signedByGateway(): Failure {
  return new Failure(
    "receipt_incomplete",
    "There is no receipt, because the relay's gateway signed the request and not this agent.",
    "Unset RELAY_API_KEY to request with the agent's own key.",
  );
}

/** A target may reject other sessions meanwhile, of other processes of this agent. */
const MAX_KEPT = 100;

/** Why an agent rejects sessions. The relay keeps no contents: the delivery of the reject alone says it. */
export class RejectReasons {
  readonly #target: string;
  /** By session, of rejects that were delivered or are waited for. */
  readonly #reasons = new Map<string, PromiseWithResolvers<string | undefined>>();

  constructor(target: string) {
    this.#target = target;
  }

  readonly heard = ({ type, from, sessionId, payload }: Delivery): void => {
    if (type === "session.reject" && from === this.#target && sessionId !== undefined)
      this.#reasonFor(sessionId).resolve(textOf(payload.reason));
  };

  /** Of a session that is rejected, once its reject is delivered; undefined when it gives none, or was delivered elsewhere. */
  async of(sessionId: string, signal: AbortSignal): Promise<string | undefined> {
    const { promise, resolve } = this.#reasonFor(sessionId);
    const giveUp = () => resolve(undefined);
    const timer = setTimeout(giveUp, signal.aborted ? 0 : DELIVERED_WITHIN_MS);
    signal.addEventListener("abort", giveUp, { once: true });
    const reason = await promise;
    clearTimeout(timer);
    signal.removeEventListener("abort", giveUp);
    return reason;
  }

  #reasonFor(sessionId: string): PromiseWithResolvers<string | undefined> {
    const known = this.#reasons.get(sessionId) ?? Promise.withResolvers<string | undefined>();
    keepNewest(this.#reasons, sessionId, known, MAX_KEPT);
    return known;
  }
}
