import type { IssuerRecord } from "./credentials/contract.ts";

/** What a caller gives. Durations are milliseconds. */

/** A key of WebCrypto, as this platform's types call it. */
export type WebCryptoKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

/** What this agent signs with. The algorithm is the key's, never the envelope's. */
export type AgentKey =
  | {
      /** May be left out where there is a credential, which then says it. */
      readonly keyId?: string | undefined;
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

/** An X25519 key that payloads are sealed to, both halves in base64url. */
export interface SealingKeyPair {
  readonly publicKey: string;
  readonly privateKey: string;
  /** Epoch milliseconds from which on it opens nothing any more; of a former key. */
  readonly until?: number | undefined;
}

/** What another agent's signatures are checked with. Whoever holds an HMAC secret can also sign with it. */
export type TrustedKey =
  | { readonly keyId: string; readonly alg: "ed25519" /** 32 bytes in base64url. */; readonly publicKey: string }
  | { readonly keyId: string; readonly alg: "hmac-sha256" /** base64url. */; readonly secret: string };

/** Whom this agent believes. The relay checks signatures too; with these it need not be trusted. */
export interface Trust {
  /** Keys of other agents, by agent id. Such an agent is believed under them alone. */
  readonly keys?: Readonly<Record<string, readonly TrustedKey[]>> | undefined;
  /** Issuers of credentials, each believed for its `agents` only. */
  readonly issuers?: readonly IssuerRecord[] | undefined;
  /** Ids of gateway keys: what they sign passes `requireVerified`. */
  readonly gateways?: readonly string[] | undefined;
}

/** A credential, and what it is for where that is something new. */
export interface CredentialWithKeys {
  /** The token. */
  readonly credential: string;
  /** The key that it is for, from now on the agent's. Left out: the present one. */
  readonly key?: AgentKey | undefined;
  /** In place of `sealingKeys`; those of earlier credentials go on to open what was sealed to them. Left out: as before. */
  readonly sealingKeys?: readonly SealingKeyPair[] | undefined;
}

/** A token, or what gives the present one: it is called at the start, and again long before the token ends. */
export type CredentialSource = string | (() => Promise<string | CredentialWithKeys>);

export interface ConnectorOptions {
  /** Base address of the relay (http, https), or of its websocket (ws, wss; path /ws when there is none). */
  readonly url: string | URL;
  /** Base address of the relay's HTTP side, where it is another one than that of `url`. */
  readonly httpUrl?: string | URL | undefined;
  /** `agent://name`. */
  readonly agent: string;
  readonly key: AgentKey;
  /** False: without the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name. Default true. Browsers have settings of their own. */
  readonly proxy?: boolean | undefined;
  /**
   * Register although the agent is online elsewhere, or nobody tells whether it is, which ends that connection. Default false:
   * `superseded_elsewhere`, or `not_a_relay` where no relay answers over HTTP.
   */
  readonly takeOver?: boolean | undefined;
  /**
   * How long a start may take where `start` is not told. By default it waits until the relay is there, and ends where something else
   * answers in its place: after 60 s to the upgrade, after 10 s over HTTP. Infinity: it goes on there, too.
   */
  readonly startTimeoutMs?: number | undefined;
  /** What an issuer signed for the key. Without one, the relay's keys file lists the key. */
  readonly credential?: CredentialSource | undefined;
  /** X25519 keys that others seal payloads to: the one of the credential first, then those before it. */
  readonly sealingKeys?: readonly SealingKeyPair[] | undefined;
  /** Whom to believe; or only keys of other agents, by agent id. */
  readonly trust?: Trust | NonNullable<Trust["keys"]> | undefined;
  /**
   * Senders that the relay is to accept envelopes to this agent from, 50 at most: agent ids, namespaces such as `agent://acme.*`, and
   * `issuer:<name>` for all agents with a credential of that issuer. Others get `not_accepted_by_target`, also while this agent is
   * offline, until it registers with another list, or none. Left out: everyone is accepted.
   */
  readonly acceptFrom?: readonly string[] | undefined;
  /** Drop deliveries that are not `agent`, nor `gateway` by a key of `trust.gateways`. Default false. */
  readonly requireVerified?: boolean | undefined;
  /**
   * Drop deliveries whose `ts` is farther than this from this machine's clock, as the relay corrects it by at most 5
   * minutes. Default 600000; 0 or Infinity takes any, so that after a new start whatever was ever signed can come again.
   */
  readonly maxDeliveryAgeMs?: number | undefined;
  /** Seal every message, asked or not. Texts of sessions stay readable. */
  readonly seal?: "required" | undefined;
  /** Sends that may be unsettled, and questions that may be without a reply, at once; one more is rejected with `queue_full`. Default 1000. */
  readonly maxPending?: number | undefined;
  /** Deliveries that may wait to be read; one more drops the oldest of the sender with the most and is reported as `overflow`. Default 1000. */
  readonly maxInbox?: number | undefined;
}

/** How long a start may take, and a signal that ends it early. Both count until the agent is registered. */
export interface StartOptions {
  /** Default: `startTimeoutMs`. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** How long one call waits, and a signal that ends it early. */
export interface CallOptions {
  /** Default 30000, counted from the call, with the time in which there was no connection. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What a message has beside its target, payload and task. */
interface MessageOptions extends CallOptions {
  /** `message.send`, or a kind of your own: `message.` and 1–32 characters of a–z 0–9 _, a letter first. */
  readonly type?: `message.${string}` | undefined;
  /** Let nobody but the recipient read the payload. Needs `trust.issuers`, and a credential of the recipient. */
  readonly seal?: boolean | undefined;
  /**
   * Wait so many milliseconds for the target to come online; `timeoutMs` counts from then. When it does not come, nothing is
   * sent, and the call is rejected with `target_not_online`. The payload is read when it goes out. Default 0: at once.
   */
  readonly waitOnline?: number | undefined;
}

export interface SendOptions extends MessageOptions {
  /** 1–128 characters. */
  readonly taskId?: string | undefined;
}

/** `timeoutMs` is how long the reply may take. */
export type AskOptions = MessageOptions;

/** What was sealed is always replied to sealed. */
export type ReplyOptions = Omit<MessageOptions, "type">;

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
