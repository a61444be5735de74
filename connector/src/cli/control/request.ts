import type { Connector } from "../../connector.ts";
import { membersOf, textOf } from "../../frames.ts";
import type { Accepted, AcceptedSession, JsonObject, SendOptions } from "../../types.ts";
import { PROPOSAL_MEMBERS, type Proposal, proposalOf } from "../../wire-mapping.ts";
import { usageError } from "../failure.ts";
import type { AskRequest } from "./ask.ts";

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

/** The result of a request that the relay accepted. */
export interface ControlResult {
  readonly envelope_id: string;
  readonly target_delivery: { readonly status: string; readonly can_deliver_realtime: boolean };
  /** The relay had accepted it before: it was sent again because the first answer was lost. */
  readonly duplicate?: boolean;
  readonly session_id?: string;
  readonly session_status?: string;
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
export function isFollow(value: unknown): boolean {
  const { follow, ref: _, ...others } = membersOf(value);
  return follow === true && Object.keys(others).length === 0;
}

/** The session that a line asks for the receipt of; undefined for any other line. */
export function receiptAskedBy(value: unknown): string | undefined {
  const { receipt, ref: _, ...others } = membersOf(value);
  return Object.keys(others).length === 0 ? textOf(receipt) : undefined;
}

/** Checks members and types of a JSON value; the relay checks their contents. @throws {Failure} `usage`. */
export function parseRequest(value: unknown): ControlRequest | AskRequest {
  const { to, ref: _, ...members } = membersOf(value);
  const kind = KINDS.find((types) => members[Object.keys(types)[0] as string] !== undefined);
  if (typeof to !== "string" || kind === undefined || !isOfKind(kind, members)) {
    throw usageError(
      "A line is not a valid request.",
      'Such as {"to":"agent://bob","payload":{"message":"hi"}}; see: relay listen --help',
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
