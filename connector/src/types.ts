import type { RelayError } from "./errors.ts";
import type { ReplyOptions } from "./options.ts";

export type * from "./options.ts";

/** The public types. Durations are milliseconds. Source: docs/protocol.md. */

/** A JSON object as it was parsed. */
export type JsonObject = { readonly [name: string]: unknown };

/** A signed envelope as it was delivered. Source: docs/protocol.md#envelopes. */
export interface Envelope {
  readonly id: string;
  readonly type: string;
  readonly from: string;
  readonly to?: string;
  readonly task_id?: string;
  readonly payload: JsonObject;
  /** Epoch milliseconds, by the signer's clock. */
  readonly ts: number;
  readonly key_id: string;
  readonly sig: string;
}

/** The target's presence at the moment of acceptance. */
export interface TargetDelivery {
  readonly status: "online" | "stale" | "not_seen";
  /** True: handed to the target's connection. False: nobody received it; send it again once the target is online. */
  readonly canDeliverRealtime: boolean;
}

/** An accepted message. Accepted is not delivered: see `delivery`. */
export interface Accepted {
  readonly envelopeId: string;
  readonly delivery: TargetDelivery;
  /** True when the relay had accepted this envelope before: it was sent again because the first answer was lost. */
  readonly duplicate: boolean;
}

export type SessionStatus = "pending_until_session.approve_or_session.reject" | "approved" | "rejected" | "expired";

/** An accepted session request or decision. */
export interface AcceptedSession extends Accepted {
  readonly sessionId: string;
  readonly status: SessionStatus;
}

/** An envelope that came in for this agent. */
export interface Delivery {
  readonly envelope: Envelope;
  /** Of `session.*`. */
  readonly sessionId?: string;
  /** The task that a message belongs to. */
  readonly taskId?: string;
  readonly from: string;
  readonly type: string;
  /** Of a sealed one: what was sealed. */
  readonly payload: JsonObject;
  /**
   * Who vouches for the sender. `agent`: a key, or an issuer, that `trust` names. `relay_issuer`: an issuer that only the
   * relay names. `gateway`: one of the relay's gateways signed, on behalf of a sender that it authenticated.
   * `unverified`: the relay, nobody else.
   */
  readonly verified: "agent" | "relay_issuer" | "gateway" | "unverified";
  /** Of the credential by which it is verified. */
  readonly issuer?: string;
  /** Only this agent could read it on its way. */
  readonly sealed: boolean;
  /** Epoch milliseconds, by this machine's clock. */
  readonly receivedAt: number;
  /**
   * Replies to a message: by a `message.reply` to its sender, in its task. Rejects as `send` does, and with
   * `not_answerable` for a `message.reply` and for `session.*`. Not part of a copy of the delivery.
   */
  reply(payload: object, options?: ReplyOptions): Promise<Accepted>;
}

/** Whether an agent can be reached now. Source: docs/protocol.md#presence. */
export interface Presence {
  readonly agent: string;
  readonly status: "online" | "stale" | "offline" | "not_seen";
  readonly canDeliverRealtime: boolean;
  /** All members of the relay's answer. */
  readonly details: JsonObject;
}

/** An undecided session that waits for this agent: ids and times, never contents. */
export interface PendingSession {
  readonly sessionId: string;
  readonly requester: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

/** A decision on a session that this agent requested, made while it was not online. It may be told more than once. */
export interface DecidedSession {
  readonly sessionId: string;
  readonly target: string;
  readonly status: "approved" | "rejected";
  readonly decidedAt: Date;
}

/** Notices of the relay, which answer no call. */
export type Notice =
  | { readonly kind: "pending_sessions"; readonly total: number; readonly sessions: readonly PendingSession[] }
  | { readonly kind: "decided_sessions"; readonly sessions: readonly DecidedSession[] }
  | { readonly kind: "superseded" }
  /**
   * The relay let the agent go: no key or credential of it holds there any more. `reason`: why, as in `invalid_credential`;
   * `key_revoked_or_expired` of a listed key.
   */
  | { readonly kind: "released"; readonly reason: string }
  | { readonly kind: "draining"; readonly reconnectAfterMs: number }
  /** The relay reads this connection more slowly than it sends. Nothing is lost; the limits of one connection, 0 = none. */
  | { readonly kind: "slow_down"; readonly envelopesPerSecond: number; readonly bytesPerSecond: number };

export type ConnectorState =
  | { readonly status: "idle" }
  | { readonly status: "connecting" }
  | { readonly status: "online" }
  /**
   * `unreachable`: no relay answered. `lost`: there was a connection. `closeCode` is 1006 when the websocket had none.
   * `error`: what the relay refused the agent, or let it go, with, where that may pass.
   */
  | {
      readonly status: "reconnecting";
      readonly reason: "unreachable" | "lost";
      readonly retryInMs: number;
      readonly closeCode: number;
      readonly error?: RelayError;
    }
  /** `error`: why it stopped for good; absent after `close()`. */
  | { readonly status: "closed"; readonly error?: RelayError };

/** What works, and should be changed nevertheless. */
export interface Warning {
  /**
   * `outdated_connector`: the relay hands out a newer version of this package than this one. `clock_untrusted`: this
   * machine's clock and the relay's are more than 5 minutes apart, so that no delivery is `verified`, and what seems old is
   * dropped.
   */
  readonly code: "outdated_connector" | "clock_untrusted";
  /** One short sentence. */
  readonly message: string;
  /** What to do. */
  readonly hint: string;
}

/** What `connector.on` listens to, and what listeners are called with. */
export interface ConnectorEvents {
  readonly state: ConnectorState;
  readonly delivery: Delivery;
  readonly notice: Notice;
  /** Errors that belong to no call: why an attempt to connect failed (`unreachable`, `unknown_key`), dropped deliveries, refused heartbeats, listeners that threw. */
  readonly error: RelayError;
  /** Once for each version that a relay offers, and each time that the clocks turn out to be apart. */
  readonly warning: Warning;
  /** The inbox was full. `dropped`: how many deliveries were dropped for that since the start. */
  readonly overflow: { readonly dropped: number };
}
