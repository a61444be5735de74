import type { Connector } from "../connector.ts";
import type { RelayError } from "../errors.ts";
import type { ConnectorState, DecidedSession, Notice, Warning } from "../types.ts";
import { Failure, failureOf } from "./failure.ts";
import type { Reporter } from "./io.ts";
import { NO_RELAY_REACHED } from "./sharing/events.ts";

type Reports = Pick<Reporter, "report">;

/** Reports the connection's events on stderr. Of the reconnects of one outage, the text output shows the first only, and each cause once. */
export function reportConnection(connector: Connector, websocketUrl: string, reporter: Reporter, json: boolean): void {
  let isReconnecting = false;
  let told: RelayError | undefined;
  const said = new Set<string>();
  const repeats = new Repeats();
  connector.on("state", (state) => {
    const isRepeat = isReconnecting && state.status === "reconnecting";
    // Why no relay was reached follows as an error, which says all.
    const isSaidNext = state.status === "reconnecting" && state.reason === "unreachable" && state.error === undefined;
    // Nothing was lost that had not been: the relay closes what does not register.
    const isSaid = state.status === "reconnecting" && told?.code === "not_a_relay";
    if (json || !(isRepeat || isSaidNext || isSaid)) reportState(connector.agent, state, websocketUrl, told, reporter);
    isReconnecting = state.status === "reconnecting";
    if (state.status !== "online") return;
    said.clear();
    told = undefined;
  });
  connector.on("notice", (notice) => {
    if (notice.kind !== "slow_down" && notice.kind !== "released") return reportNotice(notice, reporter);
    const leftOut = repeats.next(notice.kind);
    if (leftOut !== undefined) reportNotice(notice, counting(leftOut, reporter));
  });
  connector.on("error", (error) => {
    const { code, retry, cause, envelopeId } = error;
    const { state } = connector;
    // Whoever ran the connector says what ended it.
    if (state.status === "closed" && state.error === error) return;
    told = error;
    const isTriedAgain = NO_RELAY_REACHED.includes(code);
    const isRepeat = isTriedAgain && said.has(error.message);
    if (isTriedAgain) said.add(error.message);
    if (isRepeat && !json) return;
    const leftOut = isTriedAgain || envelopeId !== undefined ? 0 : repeats.next(`error ${code}`);
    if (leftOut === undefined) return;
    const { message, hint } = cause instanceof Failure ? cause : failureOf(error);
    const next = isTriedAgain ? ` ${nextAttempt(state, error)}` : "";
    counting(leftOut, reporter).report("problem", `${message} ${hint}${next}`, { code, retry }, "yellow");
  });
  connector.on("warning", (warning) => reportWarning(warning, reporter));
  connector.on("overflow", ({ dropped }) => {
    const leftOut = repeats.next("overflow");
    const text = `Deliveries arrived faster than they were read; ${dropped} were dropped.`;
    if (leftOut !== undefined) counting(leftOut, reporter).report("overflow", text, { dropped }, "yellow");
  });
}

/** With the wait that an answer asked for. */
function nextAttempt(state: ConnectorState, { retryAfterMs }: RelayError): string {
  if (state.status !== "reconnecting" || retryAfterMs === undefined) return "Trying again.";
  return `Next attempt in ${Math.ceil(state.retryInMs / 1000)} s.`;
}

/** Tells how many of the same were left out before. */
function counting(leftOut: number, reporter: Reporter): Reports {
  if (leftOut === 0) return reporter;
  return {
    report: (event, text, fields, style) =>
      reporter.report(event, `${text} (${leftOut} more before.)`, { ...fields, left_out: leftOut }, style),
  };
}

export function reportWarning({ code, message, hint }: Warning, reporter: Reporter): void {
  reporter.warn(`${message} ${hint}`, { code });
}

/** @param told the error that was reported last. */
function reportState(
  agent: string,
  state: ConnectorState,
  url: string,
  told: RelayError | undefined,
  reporter: Reporter,
): void {
  if (state.status === "online")
    reporter.report("online", `${agent} is online at ${url}`, { agent_id: agent }, "green");
  if (state.status !== "reconnecting") return;
  const { reason, retryInMs, closeCode, error } = state;
  const cause = error ?? (told?.code === "not_a_relay" ? told : undefined);
  const fields = { reason, retry_in_ms: retryInMs, close_code: closeCode, ...(cause && { code: cause.code }) };
  // A refusal that lasts, as of a credential that was not replaced meanwhile, ends the command then.
  const why = error === undefined || error === told ? "" : `The relay refuses the agent: ${error.message} `;
  const refused = error && `${why}Checking whether that has changed.`;
  reporter.report("reconnecting", refused ?? `${lossOf(state, url)}; reconnecting.`, fields, "yellow");
}

function lossOf({ reason, closeCode }: Extract<ConnectorState, { status: "reconnecting" }>, url: string): string {
  return reason === "unreachable" ? `The relay at ${url} is not reachable` : `The connection was lost (${closeCode})`;
}

function reportNotice(notice: Notice, reporter: Reports): void {
  if (notice.kind === "draining")
    reporter.report("draining", "The relay closes this connection; changing to another one.");
  if (notice.kind === "released") reportReleased(notice, reporter);
  if (notice.kind === "decided_sessions") reportDecided(notice.sessions, reporter);
  if (notice.kind === "slow_down") reportSlowDown(notice, reporter);
  if (notice.kind !== "pending_sessions" || notice.sessions.length === 0) return;
  const sessions = notice.sessions.map(({ sessionId, requester, createdAt, expiresAt }) => ({
    session_id: sessionId,
    requester,
    created_at_iso: createdAt.toISOString(),
    expires_at_iso: expiresAt.toISOString(),
  }));
  const ids = sessions.map(({ session_id, requester }) => `${session_id} from ${requester}`).join(", ");
  const count = notice.total === 1 ? "1 session waits" : `${notice.total} sessions wait`;
  const text = `${count} for your decision: ${ids}. ${DECIDE}`;
  reporter.report("pending_sessions", text, { total: notice.total, sessions }, "bold");
}

/** The notice does not tell which requests were delivered. */
const DECIDE =
  "Decide a session whose request you received with relay approve or relay reject. If a session was requested while you were away, ask its requester to request it again.";

const REPLACE_CREDENTIAL =
  "Have its issuer issue another (relay issue; 61 seconds after a revocation) and put it into the key file (relay credential). A command that still runs reads it from there. Start a command again that has ended.";

/** Source: docs/protocol.md#keys. */
const OF_LISTED_KEY = "key_revoked_or_expired";
const REPLACE_KEY =
  "since its key was revoked, removed or replaced in the relay's keys file, or has expired. Make another key (relay keygen), have the relay's operator list it, and start the command again with it.";

function reportReleased({ reason }: Extract<Notice, { kind: "released" }>, reporter: Reports): void {
  const ofCredential = `since no credential of it holds any more: ${reason}. ${REPLACE_CREDENTIAL}`;
  const text = `The relay let the agent go, ${reason === OF_LISTED_KEY ? REPLACE_KEY : ofCredential}`;
  reporter.report("released", text, { reason }, "yellow");
}

function reportDecided(decided: readonly DecidedSession[], reporter: Reports): void {
  if (decided.length === 0) return;
  const sessions = decided.map(({ sessionId, target, status, decidedAt }) => ({
    session_id: sessionId,
    target,
    status,
    decided_at_iso: decidedAt.toISOString(),
  }));
  const said = sessions.map(({ session_id, target, status }) => `${session_id} ${status} by ${target}`).join(", ");
  reporter.report("decided_sessions", `Decided while you were away: ${said}.`, { sessions }, "bold");
}

function reportSlowDown(
  { envelopesPerSecond, bytesPerSecond }: Extract<Notice, { kind: "slow_down" }>,
  reporter: Reports,
): void {
  const fields = { envelopes_per_second: envelopesPerSecond, bytes_per_second: bytesPerSecond };
  const text = `More is sent than the relay reads (${envelopesPerSecond} envelopes, ${bytesPerSecond} bytes a second): sends wait.`;
  reporter.report("slow_down", text, fields, "yellow");
}

const SAID_AGAIN_AFTER_MS = 60_000;

/** What a relay can say as often as it likes is said once in a while, with how often it was left out. */
export class Repeats {
  readonly #said = new Map<string, { readonly at: number; leftOut: number }>();

  /**
   * @param kind one of few.
   * @param now monotonic ms.
   * @returns how often it was left out since it was last said; undefined when it is left out now.
   */
  next(kind: string, now = performance.now()): number | undefined {
    const last = this.#said.get(kind);
    if (last !== undefined && now - last.at < SAID_AGAIN_AFTER_MS) {
      last.leftOut += 1;
      return undefined;
    }
    this.#said.set(kind, { at: now, leftOut: 0 });
    return last?.leftOut ?? 0;
  }
}
