import type { AgentReadableHealth } from "@agent-relay/shared/contract/documents.ts";
import { PRESENCE_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { PRIVACY } from "@agent-relay/shared/contract/reports/common.ts";
import type { Ready } from "@agent-relay/shared/contract/responses.ts";
import { PROOF_BOUNDARY } from "@agent-relay/shared/contract/session.ts";
import type { z } from "zod";
import { SERVICE } from "./about.ts";
import { linksOf } from "./links.ts";

const STALE_AFTER_SECONDS = PRESENCE_LIMITS.staleAfterMs / 1000;

const MEANING = {
  status: "The process answers. It says nothing about connectors, nor about whether envelopes flow.",
  ready:
    "True when the relay reaches its window: envelopes can be accepted. While false, wait; nothing needs restarting.",
  online_agents: `Agents with a live connection and a signed heartbeat within ${STALE_AFTER_SECONDS} seconds. With 0, connect one, or wait for your target.`,
  stale_agents: "Agents whose connection is gone or silent: requests to them stay pending.",
  not_proven: `A healthy relay is no proof of a session. ${PROOF_BOUNDARY}`,
};

/** What health means for an agent, beside the live state. */
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
    links: linksOf(baseUrl, ["probes", "presence"]),
    privacy: PRIVACY,
  };
}
