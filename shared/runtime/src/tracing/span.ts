import type { DeliveryStatus } from "relay-protocol/contract/presence.ts";
import type { VerifiedEnvelope } from "relay-protocol/intake/steps.ts";

/**
 * What a trace tells, a closed list: ids, codes, counts and times, never contents, addresses, agents or keys.
 * Source: docs/operations.md#traces.
 */
export interface SpanAttributes {
  readonly "http.request.method"?: string;
  /** Of the catalogue, never as it was asked for. */
  readonly "http.route"?: string;
  readonly "http.response.status_code"?: number;
  /** An error code of the relay, or what acceptance refused for. */
  readonly "error.type"?: string;
  readonly "agent_relay.kind"?: VerifiedEnvelope["kind"];
  readonly "agent_relay.partition"?: number;
  /** Of acceptance, or of a delivery, as `relay_deliver_frames_total` counts it. */
  readonly "agent_relay.outcome"?: string;
  /** The target's presence at acceptance. */
  readonly "agent_relay.delivery"?: DeliveryStatus;
}

export interface SpanOptions {
  readonly kind: "server" | "client" | "consumer";
  /** Monotonic ms; by default now. */
  readonly startedAt?: number | undefined;
  /** Of another process. Source: W3C Trace Context, section 3.2. */
  readonly traceparent?: string | undefined;
  readonly attributes?: SpanAttributes;
}

/** A span under way of a trace that is sampled. */
export interface TraceSpan {
  /** Names the span to another process. Source: W3C Trace Context, section 3.2. */
  readonly traceparent: string;
  /** Undefined if the span could not be made: no fault of a trace fails its envelope. */
  child(name: string, options: Omit<SpanOptions, "traceparent">): TraceSpan | undefined;
  /** Once. Its status is an error where `error.type` is a fault of the relay. */
  end(attributes: SpanAttributes): void;
}

/** Makes spans and sends them to a collector. */
export interface Tracer {
  /** Undefined where the trace is not sampled. */
  begin(name: string, options: SpanOptions): TraceSpan | undefined;
  /** Sends what has ended. */
  stop(): Promise<void>;
}
