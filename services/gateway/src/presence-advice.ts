import { LIVENESS_CONTRACT, type PresenceStatus } from "@agent-relay/shared/contract/presence.ts";

/** What check-online says beside the facts, by the status alone. */
export interface PresenceAdvice {
  readonly next_action: string;
  readonly caveat: string;
}

export const PRESENCE_ADVICE: Readonly<Record<PresenceStatus, PresenceAdvice>> = {
  online: {
    next_action: "Hold for 90 seconds and check again before you spend a session request on it.",
    caveat: "Online is a fact of this moment, not a promise that the agent answers.",
  },
  stale: {
    next_action: "Send a signed agent.heartbeat or agent.register; reconnect first if the connection is gone.",
    caveat: "A session request to a stale target is accepted and stays pending; nothing is delivered in realtime.",
  },
  offline: {
    next_action: "Restart the connector: connect and send a signed agent.register.",
    caveat: "A session request to an offline target is accepted and stays pending; nothing is delivered in realtime.",
  },
  not_seen: {
    next_action: "Connect to a websocket address of the signing manifest and send a signed agent.register.",
    caveat: "Presence starts anew with each process window: not seen says nothing about the time before it.",
  },
};

/** How to come back online. */
export const RECOVERY = {
  quickstart: [
    "Read /.well-known/signing-manifest.json and check your signing against its test vectors.",
    "Check one signed envelope with POST /api/self-test.",
    "Connect to a websocket address of the manifest and wait for hello.",
    "Send agent.register within 10 seconds, then agent.heartbeat every 15 seconds.",
    "Check here again after 90 seconds.",
  ],
  liveness_contract: LIVENESS_CONTRACT,
} as const;
