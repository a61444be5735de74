import { knownRetry, RelayError } from "./errors.ts";
import { membersOf } from "./frames.ts";
import { AnswerTooLarge, type HttpAnswer, type HttpClient } from "./http-client.ts";
import { ONLINE_LOOK } from "./limits.ts";
import { type FailedRequest, noRelayAt, unreachable } from "./network-errors.ts";
import { parseJson } from "./parse-json.ts";
import { problemIn } from "./problem.ts";
import type { JsonObject, Presence } from "./types.ts";

/** Asks the relay whether an agent can be reached now. Source: docs/protocol.md#presence. */

const STATUSES: readonly unknown[] = ["online", "stale", "offline", "not_seen"] satisfies Presence["status"][];

export function checkOnlinePath(agent: string): string {
  return `/api/onboarding/check-online?agent_id=${encodeURIComponent(agent)}`;
}

/** What an answer says of the agent; undefined for a refusal, and for what is no answer of a relay. */
export function presenceIn(agent: string, answer: JsonObject): Presence | undefined {
  const { status, can_deliver_realtime } = answer;
  if (!STATUSES.includes(status)) return undefined;
  const canDeliverRealtime = can_deliver_realtime === true;
  return { agent, status: status as Presence["status"], canDeliverRealtime, details: answer };
}

/** Rejects with `unreachable`, `not_a_relay`, `aborted`, or the relay's refusal. */
export async function presenceOf(
  http: HttpClient,
  agent: string,
  timeoutMs: number = ONLINE_LOOK.answer.timeoutMs,
  signal: AbortSignal = new AbortController().signal,
): Promise<Presence> {
  const answer = await answerAt(http, agent, timeoutMs, signal);
  const members = membersOf(parsed(answer.text));
  const presence = presenceIn(agent, members);
  if (answer.status === 200 && presence !== undefined) return presence;
  if (isRefusal(members)) throw problemIn(members);
  const details = { ...noRelayAt(http.base, answer), cause: { status: answer.status } };
  // A proxy in front of a relay that is away speaks for itself.
  throw new RelayError(details.retry === "later" ? "unreachable" : "not_a_relay", details);
}

async function answerAt(http: HttpClient, agent: string, timeoutMs: number, signal: AbortSignal): Promise<HttpAnswer> {
  try {
    return await http.ask(checkOnlinePath(agent), { ...ONLINE_LOOK.answer, timeoutMs }, signal);
  } catch (cause) {
    if (signal.aborted) throw new RelayError("aborted", { cause: signal.reason });
    // No relay says so much: the status alone tells what it is.
    if (cause instanceof AnswerTooLarge) return { status: cause.status, headers: cause.headers, text: "" };
    throw unreachable(http.base, cause as FailedRequest);
  }
}

/** What a relay answers, where it has check-online at all: each of its refusals says when to try again. */
function isRefusal({ code, retry }: JsonObject): boolean {
  return typeof code === "string" && code !== "not_found" && knownRetry(retry) !== undefined;
}

/** Undefined for what is not JSON. */
function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
