import { type CheckOnline, LIVENESS_CONTRACT, type PresenceStatus } from "relay-protocol/contract/presence.ts";
import { PRIVACY } from "relay-protocol/contract/reports/common.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Handlers } from "relay-runtime/http/router.ts";
import { canDeliverRealtime, type Presence, type PresenceStore } from "relay-window/presence/presence.ts";
import type { ProcessWindow } from "relay-window/window/process-window.ts";
import { fleetAdvice, timesOf, type WindowTimes, youngSince } from "relay-window/window/readiness.ts";
import type { RateLimits } from "./authentication.ts";

interface Parts {
  readonly window: ProcessWindow;
  readonly presenceStore: PresenceStore;
  readonly limits: RateLimits;
}

/** While partitions are missing, their agents may change what the counts alone would advise. */
const PARTIAL_ADVICE =
  "Agents of unavailable_partitions are not counted, and unavailable until these are back; those of the others go on. Check your target with /api/onboarding/check-online.";

/** Presence of one agent, and counts of all. Source: docs/protocol.md#presence. */
export function presenceEndpoints({
  window,
  presenceStore,
  limits,
}: Parts): Pick<Handlers<"gateway">, "checkOnline" | "onlineAgents"> {
  return {
    async checkOnline(ctx) {
      await limits.addresses.use("check_online", ctx.ip);
      const { agent_id } = ctx.state.query;
      const presence = await presenceStore.read(agent_id);
      return presenceOfAgent(agent_id, presence, timesOf(window.current));
    },

    async onlineAgents() {
      const { missing, ...counts } = await presenceStore.count();
      const isComplete = missing.length === 0;
      return {
        ok: true,
        complete: isComplete,
        ...(isComplete ? {} : { unavailable_partitions: missing }),
        online_agents: counts.ok,
        stale_agents: counts.stale + counts.critical_stale,
        offline_agents: counts.offline,
        stale_after_ms: PRESENCE_LIMITS.staleAfterMs,
        by_severity: counts,
        source: "websocket_presence",
        next_action: isComplete ? fleetAdvice(counts, timesOf(window.current)) : PARTIAL_ADVICE,
        privacy: PRIVACY,
      };
    },
  };
}

/** The 200 body of check-online. Source: docs/protocol.md#presence. */
export function presenceOfAgent(agentId: string, presence: Presence, times: WindowTimes): CheckOnline {
  const since = youngSince(times);
  const { status, severity, staleMs, lastSeen, onlineSince, stableInMs, isCongested } = presence;
  return {
    ok: true,
    agent_id: agentId,
    status,
    can_deliver_realtime: canDeliverRealtime(presence),
    ...(isCongested ? { reason: "congested" } : {}),
    stale_ms: staleMs,
    last_seen_iso: iso(lastSeen),
    online_since_iso: iso(onlineSince),
    stable: stableInMs === 0,
    severity,
    source: "websocket_presence",
    next_action: nextAction(presence, since),
    caveat: isCongested ? CONGESTED_CAVEAT : CAVEATS[status],
    recovery: {
      addressed_to: "the owner of this agent",
      quickstart: [...(isCongested ? CONGESTED_FIRST_STEP : FIRST_STEP[status]), ...QUICKSTART],
      liveness_contract: LIVENESS_CONTRACT,
    },
  };
}

/**
 * Advice for the agent that asks. It can wait, ask again or choose another target, but cannot bring the target online.
 */
function nextAction({ status, stableInMs, isCongested }: Presence, since: string | null): string {
  if (isCongested) {
    return `Check again in 5 s, or choose another target: until can_deliver_realtime is true, ${NOT_DELIVERED}`;
  }
  if (stableInMs === 0) return ASK;
  if (stableInMs !== null) {
    const seconds = Math.ceil(stableInMs / 1000);
    return `${ASK} The relay takes it at once; whoever can wait holds until it is stable, in ${seconds} s: then the connection is known to last.`;
  }
  if (status !== "not_seen") return `Check again in 30 s, or choose another target: now ${NOT_DELIVERED}`;
  return since === null
    ? NOT_SEEN
    : `This process window began at ${since}: agents from before count as not seen until they register again. Check again in 30 s. ${NOT_SEEN}`;
}

const ASK = `Request a session with POST ${SURFACES.requestSession.path}, or with a signed session.request on a websocket; or send a message.`;
const NOT_SEEN =
  "Compare agent_id with the one that you were given. If it is right, wait until its owner connects it, or choose another target.";
const NOT_DELIVERED =
  "what is sent to this agent is not delivered, and no contents are kept; a session request stays pending by its ids.";
const NOTHING_ARRIVES = "is accepted and stays pending by its ids; its contents are neither delivered nor kept.";
const CAVEATS: Readonly<Record<PresenceStatus, string>> = {
  online: "Online describes this moment; it does not guarantee that the agent answers.",
  stale: `A session request to a stale target ${NOTHING_ARRIVES}`,
  offline: `A session request to an offline target ${NOTHING_ARRIVES}`,
  not_seen: "Presence starts empty with each process window: not_seen says nothing about the time before it.",
};

const CONGESTED_CAVEAT = `The agent is online and reads too slowly. A session request to it ${NOTHING_ARRIVES}`;

/** What brings the agent online from where it is. */
const FIRST_STEP: Readonly<Record<PresenceStatus, readonly string[]>> = {
  online: [],
  stale: ["Send a signed agent.heartbeat; if the connection is closed, connect and send agent.register."],
  offline: ["Start the connector again: connect and send agent.register."],
  not_seen: [],
};

const CONGESTED_FIRST_STEP = [
  "Read what waits on the connection: it is closed with 1013 when nothing is read for 10 s.",
];

/** From nothing to online, and how to stay so. */
const QUICKSTART = [
  `Read ${SURFACES.signingManifest.path} and compare your signatures with its test vectors.`,
  `Check one signed envelope with POST ${SURFACES.selfTest.path}.`,
  "Connect to a websocket address from the manifest and wait for hello.",
  "Send agent.register within 10 seconds, then agent.heartbeat every 15 seconds.",
  "Check here again after 90 seconds: stable is then true.",
] as const;

function iso(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString();
}
