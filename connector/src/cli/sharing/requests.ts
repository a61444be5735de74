import type { Connector } from "../../connector.ts";
import { membersOf, textOf } from "../../frames.ts";
import { parseJson } from "../../parse-json.ts";
import type { Accepted, AcceptedSession, AskOptions, JsonObject, SendOptions } from "../../types.ts";
import { PROPOSAL_MEMBERS, type Proposal, proposalOf } from "../../wire-mapping.ts";
import { failureOf, usageError } from "../failure.ts";
import { deliveryMembers, jsonLine } from "../io.ts";

/**
 * What another program asks an agent to send, with the protocol's member names: one JSON line of `relay listen
 * --stdin`.
 */
export type ControlRequest =
  | {
      readonly to: string;
      readonly payload: JsonObject;
      readonly type?: string;
      readonly task_id?: string;
      readonly seal?: boolean;
      /** How long to wait for the target to come online. */
      readonly wait_online_ms?: number;
    }
  | { readonly to: string; readonly request: Proposal }
  | { readonly to: string; readonly approve: string }
  | { readonly to: string; readonly reject: string; readonly reason?: string };

/** A question that another program has an agent ask, with the protocol's member names. */
export interface AskRequest {
  readonly to: string;
  /** Its payload. */
  readonly ask: JsonObject;
  readonly type?: string | undefined;
  readonly seal?: boolean | undefined;
  /** How long the reply may take. */
  readonly timeout_ms?: number | undefined;
  /** How long to wait for the target to come online. */
  readonly wait_online_ms?: number | undefined;
}

/** The result of a request that the relay accepted. */
export interface ControlResult {
  readonly envelope_id: string;
  readonly target_delivery: { readonly status: string; readonly can_deliver_realtime: boolean };
  /** The relay had accepted it before: it was sent again because the first answer was lost. */
  readonly duplicate?: boolean;
  readonly session_id?: string;
  readonly session_status?: string;
}

/** A way for an agent's envelopes to reach the relay. */
export interface Transport {
  /** The member `via` of a command's result. */
  readonly name: "gateway" | "listener" | "connection";
  /** Rejects with a Failure or a RelayError. */
  send(request: ControlRequest): Promise<ControlResult>;
  /** The receipt of a session, where this agent's own key signs. Rejects as `send` does. */
  receipt?(sessionId: string): Promise<unknown>;
  close(): Promise<void>;
}

/** Over the agent's connection, which receives replies, too. */
export interface AgentTransport extends Transport {
  /** Resolves with the reply, as `relay listen` prints a delivery. Rejects with a Failure or a RelayError. */
  ask(request: AskRequest): Promise<JsonObject>;
}

type MemberType = "object" | "string" | "boolean" | "number";
type Kind = Readonly<Record<string, MemberType>>;

/** Of a wait: an hour, as that of the commands. A timer takes a longer one, or one below 0, for 1 ms. */
const MAX_WAIT_MS = 3_600_000;

/** Each kind of request, as its members and their types; the first member, which must be there, tells the kind. */
const KINDS: readonly Kind[] = [
  { payload: "object", type: "string", task_id: "string", seal: "boolean", wait_online_ms: "number" },
  { ask: "object", type: "string", seal: "boolean", timeout_ms: "number", wait_online_ms: "number" },
  { request: "object" },
  { approve: "string" },
  { reject: "string", reason: "string" },
];
/** Every member that a control line may have, for its help to name: of every line, of the kinds, and of a proposal. */
export const CONTROL_MEMBERS: ReadonlySet<string> = new Set([
  ...["to", "ref", "follow", "receipt"],
  ...KINDS.flatMap((kind) => Object.keys(kind)),
  ...PROPOSAL_MEMBERS,
]);

/** Whether a line asks to be told what comes over the connection. */
function isFollow(value: unknown): boolean {
  const { follow, ref: _, ...others } = membersOf(value);
  return follow === true && Object.keys(others).length === 0;
}

/** The session that a line asks for the receipt of; undefined for any other line. */
function receiptAskedBy(value: unknown): string | undefined {
  const { receipt, ref: _, ...others } = membersOf(value);
  return Object.keys(others).length === 0 ? textOf(receipt) : undefined;
}

/** Checks members and types of a JSON value; the relay checks their contents. @throws {Failure} `usage`. */
function parseRequest(value: unknown): ControlRequest | AskRequest {
  const { to, ref: _, ...members } = membersOf(value);
  const kind = KINDS.find((types) => members[Object.keys(types)[0] as string] !== undefined);
  if (typeof to !== "string" || kind === undefined || !isOfKind(kind, members)) {
    throw usageError(
      "A line is not a valid request.",
      'A valid line is {"to":"agent://bob","payload":{"message":"hi"}}. CLI.md#control-requests lists all members.',
    );
  }
  return { to, ...members } as ControlRequest | AskRequest;
}

function isOfKind(kind: Kind, members: JsonObject): boolean {
  return Object.entries(members).every(([name, member]) => Object.hasOwn(kind, name) && hasType(member, kind[name]));
}

function hasType(value: unknown, type: MemberType | undefined): boolean {
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  if (typeof value === "number") return type === "number" && value >= 0 && value <= MAX_WAIT_MS;
  return value === undefined || typeof value === type;
}

/** Sends it over the agent's connection. Rejects with a RelayError. */
export async function execute(
  connector: Connector,
  request: ControlRequest,
  signal?: AbortSignal,
): Promise<ControlResult> {
  const { to } = request;
  if ("payload" in request) {
    const { type, task_id: taskId, seal, wait_online_ms: waitOnline } = request;
    const options = { type, taskId, seal, waitOnline, signal } as SendOptions;
    return resultOf(await connector.send(to, request.payload, options));
  }
  if ("request" in request) {
    return resultOf(await connector.requestSession(to, proposalOf(request.request), { signal }));
  }
  if ("approve" in request) return resultOf(await connector.approve(request.approve, to, { signal }));
  return resultOf(await connector.reject(request.reject, to, request.reason, { signal }));
}

/** Of a message: whether nobody but its target can read it. */
export function sealedOf(request: ControlRequest): { readonly sealed?: boolean } {
  return "payload" in request ? { sealed: request.seal === true } : {};
}

function resultOf({ envelopeId, delivery, duplicate, ...rest }: Accepted | AcceptedSession): ControlResult {
  const session = rest as Partial<AcceptedSession>;
  return {
    envelope_id: envelopeId,
    target_delivery: { status: delivery.status, can_deliver_realtime: delivery.canDeliverRealtime },
    ...(duplicate && { duplicate }),
    ...(session.sessionId !== undefined && { session_id: session.sessionId, session_status: session.status as string }),
  };
}

/** Asks over the agent's connection. Resolves with the reply, as `relay listen` prints a delivery. Rejects with a RelayError. */
export async function executeAsk(connector: Connector, request: AskRequest, signal?: AbortSignal): Promise<JsonObject> {
  const { to, ask, type, seal, timeout_ms: timeoutMs, wait_online_ms: waitOnline } = request;
  return deliveryMembers(await connector.ask(to, ask, { type, seal, timeoutMs, waitOnline, signal } as AskOptions));
}

/** With this many requests unanswered, no further line is read. */
const MAX_UNANSWERED = 100;

/** Where the hint of a command names one of its options: a line has members. */
const HINTS: Readonly<Record<string, string>> = {
  target_not_online: "Send it again when the target is online; wait_online_ms waits for that.",
  recipient_unknown:
    "Check its id. It has to have been online with a credential: wait_online_ms waits for that, then seals again.",
};

interface Serving {
  /**
   * Runs a call over the agent's connection, and ends it when nobody can wait for it any more.
   * @param outlasts it goes on where the connection is lost meanwhile, since it has a time of its own.
   */
  readonly bounded: <T>(call: (signal: AbortSignal) => Promise<T>, outlasts?: boolean) => Promise<T>;
  /** Begins to tell what comes over the connection. @returns the first line. */
  readonly follow?: (() => string) | undefined;
}

/**
 * Takes control requests, one JSON object a line, and answers each with one line, `accepted`, `reply`, `receipt` or `refused`, that
 * repeats the request's `ref`, or else the number of its line. Envelopes go out in the order of the lines; answers are written as
 * they arrive. Resolves when the lines have ended and all requests are answered.
 * @param write resolves when the next line can be written.
 */
export async function serveRequestLines(
  lines: AsyncIterable<string>,
  write: (line: string) => Promise<void>,
  connector: Connector,
  { bounded, follow }: Serving,
): Promise<void> {
  const unanswered = new Set<Promise<void>>();
  let number = 0;
  for await (const line of lines) {
    number += 1;
    if (line.trim() === "") continue;
    const answer = answerTo(line, number, connector, { bounded, follow }).then(write);
    unanswered.add(answer);
    void answer.then(() => unanswered.delete(answer));
    if (unanswered.size >= MAX_UNANSWERED) await Promise.race(unanswered);
  }
  await Promise.all(unanswered);
}

/** Never rejects. */
async function answerTo(line: string, number: number, connector: Connector, how: Serving): Promise<string> {
  let ref: unknown = number;
  try {
    const value = jsonOf(line);
    ref = refIn(value) ?? number;
    if (how.follow && isFollow(value)) return how.follow();
    const session = receiptAskedBy(value);
    if (session !== undefined) return jsonLine({ event: "receipt", ref, receipt: connector.receipt(session) });
    const request = parseRequest(value);
    if ("ask" in request) {
      const reply = await how.bounded((signal) => executeAsk(connector, request, signal), true);
      return jsonLine({ event: "reply", ref, ...reply });
    }
    const accepted = await how.bounded((signal) => execute(connector, request, signal));
    return jsonLine({ event: "accepted", ref, ...accepted, ...sealedOf(request) });
  } catch (error) {
    const { code, message, hint: hinted, retry, outcome } = failureOf(error);
    const hint = Object.hasOwn(HINTS, code) ? HINTS[code] : hinted;
    return jsonLine({ event: "refused", ref, code, message, hint, retry, outcome });
  }
}

/** A text or a number: a value of any depth could not be written again. */
function refIn(value: unknown): string | number | undefined {
  const { ref } = membersOf(value);
  return typeof ref === "string" || typeof ref === "number" ? ref : undefined;
}

function jsonOf(line: string): unknown {
  try {
    return parseJson(line);
  } catch {
    throw usageError("A line is not JSON.", "Send one JSON object per line.");
  }
}
