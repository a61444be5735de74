import type { RelayError } from "./errors.ts";

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

/** A key of WebCrypto, as this platform's types call it. */
export type WebCryptoKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

/** What this agent signs with. The algorithm is the key's, never the envelope's. */
export type AgentKey =
  | {
      readonly keyId: string;
      readonly alg: "ed25519";
      /** The 32-byte seed in base64url, or a key of WebCrypto with the usage `sign`. */
      readonly privateKey: string | WebCryptoKey;
    }
  | {
      readonly keyId: string;
      readonly alg: "hmac-sha256";
      /** At least 32 bytes in base64url, or a key of WebCrypto with the usage `sign`. */
      readonly secret: string | WebCryptoKey;
    };

/** What another agent's signatures are checked with. Whoever holds an HMAC secret can also sign with it. */
export type TrustedKey =
  | { readonly keyId: string; readonly alg: "ed25519" /** 32 bytes in base64url. */; readonly publicKey: string }
  | { readonly keyId: string; readonly alg: "hmac-sha256" /** base64url. */; readonly secret: string };

export interface ConnectorOptions {
  /** Base address of the relay (http, https), or of its websocket (ws, wss; path /ws when there is none). */
  readonly url: string | URL;
  /** `agent://name`. */
  readonly agent: string;
  readonly key: AgentKey;
  /** Keys of other agents, by agent id. The relay checks every signature too; with these it need not be trusted. */
  readonly trust?: Readonly<Record<string, readonly TrustedKey[]>> | undefined;
  /** Drop deliveries whose key is neither in `trust` nor a gateway's. Default false: they are marked `unverified`. */
  readonly requireVerified?: boolean | undefined;
  /**
   * Drop deliveries whose `ts` is farther than this from this machine's clock, as the relay corrects it by at most 5
   * minutes. Default 600000; 0 or Infinity takes any.
   */
  readonly maxDeliveryAgeMs?: number | undefined;
  /** Sends that may be unsettled at once; one more is rejected with `queue_full`. Default 1000. */
  readonly maxPending?: number | undefined;
  /** Deliveries that may wait to be read; one more drops the oldest and is reported as `overflow`. Default 1000. */
  readonly maxInbox?: number | undefined;
}

/** How long one call waits, and a signal that ends it early. */
export interface CallOptions {
  /** Default 30000, counted from the call, with the time in which there was no connection. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface SendOptions extends CallOptions {
  /** `message.send`, or a kind of your own: `message.` and 1–32 characters of a–z 0–9 _, a letter first. */
  readonly type?: `message.${string}` | undefined;
  /** 1–128 characters. */
  readonly taskId?: string | undefined;
}

/** Lengths are characters. Source: docs/protocol.md#envelopes. */
export interface SessionProposal {
  /** 1–500. */
  readonly purpose: string;
  /** 5–1440, 60 when left out. */
  readonly ttlMinutes?: number | undefined;
  /** At most 1000. */
  readonly intro?: string | undefined;
  /** At most 1000. */
  readonly scope?: string | undefined;
  /** At most 200. */
  readonly expectedFrequency?: string | undefined;
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
  readonly from: string;
  readonly type: string;
  readonly payload: JsonObject;
  /**
   * `agent`: signed with a key that `trust` lists for the sender. `gateway`: signed by one of the relay's gateways, on
   * behalf of a sender that it authenticated. `unverified`: the relay vouches for it, nobody else.
   */
  readonly verified: "agent" | "gateway" | "unverified";
  /** Epoch milliseconds, by this machine's clock. */
  readonly receivedAt: number;
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
  | { readonly kind: "draining"; readonly reconnectAfterMs: number }
  /** The relay reads this connection more slowly than it sends. Nothing is lost; the limits of one connection, 0 = none. */
  | { readonly kind: "slow_down"; readonly envelopesPerSecond: number; readonly bytesPerSecond: number };

export type ConnectorState =
  | { readonly status: "idle" }
  | { readonly status: "connecting" }
  | { readonly status: "online" }
  /**
   * `unreachable`: no relay answered. `lost`: there was a connection. `closeCode` is 1006 when the websocket had none.
   */
  | {
      readonly status: "reconnecting";
      readonly reason: "unreachable" | "lost";
      readonly retryInMs: number;
      readonly closeCode: number;
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
  /** Errors that belong to no call: dropped deliveries, refused heartbeats, listeners that threw. */
  readonly error: RelayError;
  /** Once for each version that a relay offers, and each time that the clocks turn out to be apart. */
  readonly warning: Warning;
  /** The inbox was full. `dropped`: how many deliveries were dropped for that since the start. */
  readonly overflow: { readonly dropped: number };
}
