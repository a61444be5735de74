import { type RelayAddress, relayAddress } from "./address.ts";
import { Clock } from "./clock.ts";
import { Conversations } from "./conversations.ts";
import { OwnCredential } from "./credentials/own-credential.ts";
import type { Emitter } from "./emitter.ts";
import { RelayError } from "./errors.ts";
import { FirstStart } from "./first-start.ts";
import { HttpClient } from "./http-client.ts";
import { Inbox } from "./inbox.ts";
import { LOOK_UP, MAX_PENDING } from "./limits.ts";
import type { ConnectorOptions } from "./options.ts";
import { OwnEnvelopes } from "./own-envelopes.ts";
import { Peers } from "./peers.ts";
import { Presence } from "./presence.ts";
import { PresenceWatch } from "./presence-watch.ts";
import { SessionRecords } from "./receipts/session-records.ts";
import { OwnSealingKeys } from "./sealing/own-sealing-keys.ts";
import { SendQueue } from "./send-queue.ts";
import { Signer } from "./signer.ts";

/** What the parts ask of the connector. */
export interface PartsEvents {
  readonly emitter: Emitter;
  /** The relay says that the agent is not registered. */
  readonly notRegistered: () => void;
  /** There is another credential to register with. */
  readonly renewed: () => void;
  /** The connector cannot go on. */
  readonly ended: (error: RelayError) => void;
}

/** What a connector is made of, its connections apart: they outlast each of them. */
export class Parts {
  readonly address: RelayAddress;
  readonly http: HttpClient;
  /** Whether the environment's proxy counts. */
  readonly usesProxy: boolean;
  readonly clock = new Clock();
  readonly sessions: SessionRecords;
  readonly credential: OwnCredential | undefined;
  readonly sendQueue: SendQueue;
  readonly ownEnvelopes: OwnEnvelopes;
  readonly conversations: Conversations;
  readonly inbox: Inbox;
  readonly firstStart: FirstStart;
  readonly #options: ConnectorOptions;
  readonly #signer: Signer;
  readonly #sealingKeys: OwnSealingKeys;
  readonly #peers: Peers;

  constructor(options: ConnectorOptions, events: PartsEvents) {
    const { agent, trust, requireVerified, maxPending = MAX_PENDING, takeOver = false, startTimeoutMs } = options;
    const { emitter, notRegistered, ended } = events;
    const { clock } = this;
    const sessions = new SessionRecords(agent);
    const address = relayAddress(options.url, options.httpUrl);
    const usesProxy = options.proxy ?? true;
    const http = new HttpClient(address.base, usesProxy);
    const signer = new Signer(options.key, clock);
    const sealingKeys = new OwnSealingKeys(clock);
    const peers = new Peers({ trust, http, relay: address.host, clock, requireVerified });
    const failed = (error: RelayError) => emitter.emit("error", error);
    const sendQueue = new SendQueue({ clock, maxPending, notRegistered, whyAway: () => this.firstStart.failure });
    const credential = ownCredential(options, { signer, sealingKeys, sendQueue, clock, failed, ...events });
    const ownEnvelopes = new OwnEnvelopes({ agent, signer, credential, sendQueue, sessions, peers });
    const conversations = new Conversations({
      ownEnvelopes,
      presence: new PresenceWatch(http, maxPending),
      verifier: peers.verifier,
      sealsAll: options.seal === "required",
      maxAsks: maxPending,
    });
    this.#options = options;
    this.#signer = signer;
    this.#sealingKeys = sealingKeys;
    this.#peers = peers;
    this.address = address;
    this.http = http;
    this.usesProxy = usesProxy;
    this.sessions = sessions;
    this.credential = credential;
    this.sendQueue = sendQueue;
    this.ownEnvelopes = ownEnvelopes;
    this.conversations = conversations;
    this.inbox = new Inbox({ options, peers, sealingKeys, sessions, conversations, clock, emitter });
    this.firstStart = new FirstStart({ agent, http, takeOver, timeoutMs: startTimeoutMs, failed, ended });
  }

  /** Rejects with a RelayError for a key, credential or trust that cannot be used. */
  async start(): Promise<void> {
    await this.#signer.start();
    await this.#sealingKeys.start(this.#options.sealingKeys ?? []);
    await this.credential?.start();
    await this.#peers.start();
  }

  /**
   * Ends all of them, once what came in before is handed over: it was promised to this agent.
   * @param error what ended the connector; undefined when it was closed.
   * @param ended called when nothing comes any more: at once where nothing is being checked.
   */
  stop(error: RelayError | undefined, ended: () => void): void {
    const reason = error ?? new RelayError("closed");
    this.credential?.stop();
    this.firstStart.stop();
    this.sendQueue.pause();
    // Without look-ups checks end at once, however many a relay has them wait for.
    const timer = setTimeout(() => this.#peers.stop(), LOOK_UP.lastMs);
    this.inbox.afterDeliveries(() => {
      clearTimeout(timer);
      this.#peers.stop();
      this.sendQueue.end(reason);
      this.conversations.end(reason);
      this.inbox.end(error);
      ended();
    });
  }

  /** The registers and heartbeats of one connection. */
  presence(): Presence {
    const { credential, firstStart, clock, address } = this;
    const listed = [{ signer: this.#signer, credential: undefined }];
    return new Presence({
      agent: this.#options.agent,
      relay: address.host,
      acceptFrom: this.#options.acceptFrom,
      clock,
      beforeRegister: (register) => firstStart.beforeRegister(register),
      registrations: () => credential?.registrations() ?? listed,
      presented: (registration) => credential?.presented(registration),
    });
  }
}

interface CredentialParts extends Pick<PartsEvents, "renewed"> {
  readonly signer: Signer;
  readonly sealingKeys: OwnSealingKeys;
  readonly sendQueue: SendQueue;
  readonly clock: Clock;
  readonly failed: (error: RelayError) => void;
}

function ownCredential(
  { agent, credential: source }: ConnectorOptions,
  { signer, sealingKeys, sendQueue, clock, failed, renewed }: CredentialParts,
): OwnCredential | undefined {
  if (source === undefined) return undefined;
  const needs = (keyId: string) => sendQueue.needs(keyId);
  return new OwnCredential({ source, agent, clock, signer, sealingKeys, needs, renewed, failed });
}
