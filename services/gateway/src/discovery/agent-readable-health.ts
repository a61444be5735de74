import type { AgentReadableHealth } from "relay-protocol/contract/documents.ts";
import { PRIVACY } from "relay-protocol/contract/reports/common.ts";
import type { Ready } from "relay-protocol/contract/responses.ts";
import { PROOF_BOUNDARY } from "relay-protocol/contract/session.ts";
import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import type { z } from "zod";
import { linksIn } from "./links.ts";
import { SERVICE } from "./relay-description.ts";

const STALE_AFTER_SECONDS = PRESENCE_LIMITS.staleAfterMs / 1000;

const MEANING = {
  status: "The process runs. This says nothing about connectors or the delivery of envelopes.",
  ready: "True when the relay reaches Redis and can accept envelopes. While false, wait; a restart does not help.",
  online_agents: `Agents with a live connection and a signed heartbeat within ${STALE_AFTER_SECONDS} seconds. If 0, connect one or wait for your target.`,
  stale_agents: "Agents whose connection is closed or silent; session requests to them stay pending.",
  not_proven: `A healthy relay does not prove a session. ${PROOF_BOUNDARY}`,
};

/** The live state, and what it means for an agent. */
export function agentReadableHealth(
  state: z.infer<typeof Ready>,
  baseUrl: string,
): z.infer<typeof AgentReadableHealth> {
  const { ready, online_agents, stale_agents, next_action } = state;
  return {
    ok: true,
    service: SERVICE,
    status: "healthy",
    ready,
    online_agents,
    stale_agents,
    next_action,
    meaning: MEANING,
    links: linksIn(["probes", "presence"], baseUrl),
    privacy: PRIVACY,
  };
}
