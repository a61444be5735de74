import type { DeliveryStatus } from "relay-protocol/contract/presence.ts";
import type { SpanAttributes } from "relay-runtime/tracing/span.ts";
import type { Acceptance } from "./acceptance.ts";

/** What spans tell of the outcome of an envelope that is no register or heartbeat. Source: docs/operations.md#traces. */
export function outcomeAttributes(acceptance: Acceptance): SpanAttributes {
  const { outcome } = acceptance;
  const delivery = deliveryOf(acceptance);
  if (delivery === undefined) return { "agent_relay.outcome": outcome, "error.type": outcome };
  return { "agent_relay.outcome": outcome, "agent_relay.delivery": delivery };
}

function deliveryOf(acceptance: Acceptance): DeliveryStatus | undefined {
  if (acceptance.outcome === "replayed") return acceptance.first.delivery;
  return "about" in acceptance && acceptance.about === "delivery" ? acceptance.delivery : undefined;
}
