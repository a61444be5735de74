import { type GuideQuery, SENDER_PLACEHOLDER, TARGET_PLACEHOLDER } from "relay-protocol/contract/reports/guides.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { GuideContext } from "./guide-context.ts";

/** The session request that guides print: the same in each. An unnamed agent is a placeholder, which no agent can have as an id. */
export function sessionRequest({ settings, query }: Pick<GuideContext, "settings" | "query">) {
  return {
    method: "POST",
    endpoint: settings.baseUrl + SURFACES.requestSession.path,
    auth_header: "x-api-key",
    content_type: "application/json",
    body: bodyOf(query),
  } as const;
}

/** The agents alone: a session of before is not the one that a request opens. */
export function withoutSession({ session_id: _, ...agents }: GuideQuery): GuideQuery {
  return agents;
}

function bodyOf({ from, target_agent_id }: GuideQuery) {
  return {
    from: from ?? SENDER_PLACEHOLDER,
    to: target_agent_id ?? TARGET_PLACEHOLDER,
    purpose: "Prove live negotiation through the relay before a handoff.",
    ttl_minutes: SESSION_LIMITS.ttlMinutesDefault,
  };
}
