import type { Connector } from "../connector.ts";
import { membersOf } from "../frames.ts";
import type { Accepted, AcceptedSession, JsonObject, SendOptions } from "../types.ts";
import { usage } from "./failure.ts";

/** What an agent may be asked to say, in the words of the wire: one JSON line of `relay listen --stdin`. */
export type Order =
  | { readonly to: string; readonly payload: JsonObject; readonly type?: string; readonly task_id?: string }
  | { readonly to: string; readonly request: Proposal }
  | { readonly to: string; readonly approve: string }
  | { readonly to: string; readonly reject: string; readonly reason?: string };

export interface Proposal {
  readonly purpose: string;
  readonly ttl_minutes?: number | undefined;
  readonly intro?: string | undefined;
  readonly scope?: string | undefined;
  readonly expected_frequency?: string | undefined;
}

/** An accepted order, in the words of the wire. */
export interface Receipt {
  readonly envelope_id: string;
  readonly target_delivery: { readonly status: string; readonly can_deliver_realtime: boolean };
  /** Accepted before: it went out again because the first answer was lost. */
  readonly duplicate?: boolean;
  readonly session_id?: string;
  readonly session_status?: string;
}

/** Members of each kind of order, the one that tells the kind first. */
const KINDS: readonly (readonly string[])[] = [
  ["payload", "type", "task_id"],
  ["request"],
  ["approve"],
  ["reject", "reason"],
];
const OBJECTS: ReadonlySet<string> = new Set(["payload", "request"]);

/** Takes a JSON value for an order; what its members may hold, the relay says. @throws {Failure} `usage`. */
export function orderOf(value: unknown): Order {
  const { to, ref: _, ...members } = membersOf(value);
  const kind = KINDS.find(([name]) => members[name as string] !== undefined);
  const isKnown = kind !== undefined && Object.keys(members).every((name) => kind.includes(name));
  if (typeof to !== "string" || !isKnown || !kind.every((name) => hasItsForm(name, members[name]))) {
    throw usage(
      "A line is no order.",
      'Such as {"to":"agent://bob","payload":{"message":"hi"}}; see: relay listen --help',
    );
  }
  return { to, ...members } as Order;
}

function hasItsForm(name: string, value: unknown): boolean {
  if (OBJECTS.has(name)) return typeof value === "object" && value !== null && !Array.isArray(value);
  return value === undefined || typeof value === "string";
}

/** Rejects with a RelayError. */
export async function carryOut(connector: Connector, order: Order, signal?: AbortSignal): Promise<Receipt> {
  const { to } = order;
  if ("payload" in order) {
    const options = { type: order.type, taskId: order.task_id, signal } as SendOptions;
    return receiptOf(await connector.send(to, order.payload, options));
  }
  if ("request" in order) {
    const { purpose, ttl_minutes: ttlMinutes, intro, scope, expected_frequency: expectedFrequency } = order.request;
    const proposal = { purpose, ttlMinutes, intro, scope, expectedFrequency };
    return receiptOf(await connector.requestSession(to, proposal, { signal }));
  }
  if ("approve" in order) return receiptOf(await connector.approve(order.approve, to, { signal }));
  return receiptOf(await connector.reject(order.reject, to, order.reason, { signal }));
}

function receiptOf({ envelopeId, delivery, duplicate, ...rest }: Accepted | AcceptedSession): Receipt {
  const session = rest as Partial<AcceptedSession>;
  return {
    envelope_id: envelopeId,
    target_delivery: { status: delivery.status, can_deliver_realtime: delivery.canDeliverRealtime },
    ...(duplicate && { duplicate }),
    ...(session.sessionId !== undefined && { session_id: session.sessionId, session_status: session.status as string }),
  };
}
