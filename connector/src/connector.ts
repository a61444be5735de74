/// <reference lib="esnext.disposable" preserve="true" />

import { presenceOf } from "./check-online.ts";
import { Connection, type ConnectionEvents } from "./connection.ts";
import { Emitter } from "./emitter.ts";
import { type ErrorCode, RelayError } from "./errors.ts";
import type { AckFrame, Frame, HelloFrame } from "./frames.ts";
import { ignoreRejection } from "./ignore-rejection.ts";
import { checkOptions } from "./options-check.ts";
import { Parts } from "./parts.ts";
import type { Receipt } from "./receipts/contract.ts";
import { Reconnector } from "./reconnector.ts";
import { refusalOf } from "./refusal.ts";
import type {
  Accepted,
  AcceptedSession,
  AskOptions,
  CallOptions,
  ConnectorEvents,
  ConnectorOptions,
  ConnectorState,
  Delivery,
  Notice,
  Presence,
  SendOptions,
  SessionProposal,
  StartOptions,
} from "./types.ts";
import { Warnings } from "./warnings.ts";
import { acceptedSession, sessionRequest } from "./wire-mapping.ts";

/**
 * One agent on the relay: registers it, keeps it present, renews its credential, and reconnects whenever the connection is
 * lost. Only `close`, a refused or revoked key, a credential that ended without another, another connection that registers
 * the same agent, or a close for what it sent (1003, 1007, 1008, 1009) end it for good.
 */
export class Connector implements AsyncDisposable, AsyncIterable<Delivery> {
  /** `agent://name`. */
  readonly agent: string;
  readonly #emitter = new Emitter();
  readonly #parts: Parts;
  readonly #reconnector: Reconnector;
  readonly #started = Promise.withResolvers<void>();
  #state: ConnectorState = { status: "idle" };
  #stopped: Promise<void> | undefined;

  /** Does no I/O. Throws a TypeError when `url`, `agent`, or what is left out of `key`, is invalid. */
  constructor(options: ConnectorOptions) {
    checkOptions(options);
    const emitter = this.#emitter;
    const parts = new Parts(options, {
      emitter,
      notRegistered: () => this.#reconnector.checkRegistration(),
      renewed: () => this.#reconnector.registerAgain(),
      ended: (error) => void this.#stop(error),
    });
    const { address, usesProxy, clock, credential, firstStart } = parts;
    const warnings = new Warnings(emitter);
    const connect = (events: ConnectionEvents) =>
      new Connection({ url: address.websocket, usesProxy, clock, presence: parts.presence(), events });
    this.agent = options.agent;
    this.#parts = parts;
    this.#reconnector = new Reconnector(connect, {
      greeted: ({ connectorVersion }) => {
        warnings.compareVersion(connectorVersion);
        if (!parts.inbox.canJudge) warnings.clockUntrusted();
      },
      online: (connection) => this.#online(connection),
      offline: ({ reason, closeCode, error, cause }, retryInMs) => {
        parts.sendQueue.pause();
        parts.conversations.lost();
        const why = { reason, closeCode, ...(error && { error }) };
        if (cause !== undefined && firstStart.isEndedBy(cause)) void this.#stop(cause);
        else this.#setState({ status: "reconnecting", retryInMs: Math.round(retryInMs), ...why });
        if (cause !== undefined) firstStart.unreachable(cause);
      },
      frame: (frame) => this.#receive(frame),
      presenceRefused: (error) => {
        if (error.code === "invalid_credential") credential?.refused();
        emitter.emit("error", error);
      },
      mayReturn: (error) =>
        firstStart.mayPass(error) || (CREDENTIAL_ENDS.has(error.code) && credential?.isRenewable === true),
      hasChanged: async (error) => firstStart.triesAgain(error) || (await credential?.hasAnother()),
      ended: (error) => void this.#stop(error),
    });
  }

  get state(): ConnectorState {
    return this.#state;
  }

  /** How many deliveries were dropped for what they are, by the code of the `error` event that reported each. */
  get dropped(): ReadonlyMap<ErrorCode, number> {
    return this.#parts.inbox.dropped;
  }

  /**
   * Connects; resolves once the agent is registered. Rejects with the RelayError that ended the connector: `invalid_key`,
   * `superseded_elsewhere`, `not_a_relay`, the refusal of the register, `unreachable` for what no further attempt can heal (its `cause` and
   * hint tell), `timeout`, `closed` or `aborted`. Each attempt that fails is an `error` event before that.
   */
  start(options: StartOptions = {}): Promise<void> {
    if (this.#state.status === "closed") return rejected(this.#state.error ?? new RelayError("closed"));
    const release = this.#parts.firstStart.limit(options);
    if (this.#state.status === "idle") void this.#begin();
    return ignoreRejection(this.#started.promise.finally(release));
  }

  /**
   * Ends the connection. What came in before is handed over, then sends without answer are rejected with `closed`. Resolves when
   * the socket is gone.
   */
  async close(): Promise<void> {
    await this.#stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * Sends a message. Resolves when the relay has accepted it; `delivery` says whether the target got it. While there is
   * no connection it waits. Sends to one target arrive in the order of the calls, except one that the relay refused for
   * the moment (`unavailable`, `rate_limited`) while later ones were in flight: where that matters, await each.
   *
   * Rejects with a RelayError: `queue_full`, `timeout`, `aborted`, `outcome_unknown`, `frame_too_large`,
   * `recipient_unknown`, `recipient_unverified` or `recipient_unsealable` of what is sealed, a refusal of the relay, or what ended the connector. `unavailable` and
   * `rate_limited` come at once where the wait that the relay asks for is longer than the call has time; `retryAfterMs` says how long it still is. A rejection that nobody
   * handles is dropped.
   * @param payload a JSON object, at most 32 levels deep; with the envelope around it at most 32768 bytes, sealed at most
   * 23000 bytes of JSON. One member alone may not be called `sealed`.
   */
  send(to: string, payload: object, options: SendOptions = {}): Promise<Accepted> {
    return ignoreRejection(this.#parts.conversations.send(to, payload, options));
  }

  /**
   * Sends a message and resolves with the reply to it, which is then no delivery for others: the first `message.reply` of the
   * asked agent in a task of its own. Of an agent whose keys or issuer `trust` names, only what they vouch for counts, and of a
   * sealed question only a sealed reply. Every other delivery, a late reply included, comes as all do.
   *
   * Rejects as `send` does, at once with `target_not_online` when nobody received it, and with `timeout` when no reply came
   * within `timeoutMs`: `outcome` says whether the target may have got it. At most `maxPending` may be without a reply.
   */
  ask(to: string, payload: object, options: AskOptions = {}): Promise<Delivery> {
    return ignoreRejection(this.#parts.conversations.ask(to, payload, options));
  }

  /** Requests a session. The target's decision comes as a delivery of type `session.approve` or `session.reject`. */
  requestSession(to: string, proposal: SessionProposal, options: CallOptions = {}): Promise<AcceptedSession> {
    return resultOf(this.#parts.ownEnvelopes.session(sessionRequest(to, proposal), options), acceptedSession);
  }

  /** Approves a session. @param to who requested it. */
  approve(sessionId: string, to: string, options: CallOptions = {}): Promise<AcceptedSession> {
    return resultOf(this.#parts.ownEnvelopes.decision("approve", { sessionId, to }, options), acceptedSession);
  }

  /** Rejects a session. @param to who requested it. @param reason at most 500 characters. */
  reject(sessionId: string, to: string, reason?: string, options: CallOptions = {}): Promise<AcceptedSession> {
    return resultOf(this.#parts.ownEnvelopes.decision("reject", { sessionId, to, reason }, options), acceptedSession);
  }

  /**
   * What shows anybody that a session was requested and decided: `verifyReceipt` checks it without a relay. Of the newest
   * 1000 sessions, whose two envelopes this connector signed or verified. Throws `receipt_incomplete`, with what is missing.
   */
  receipt(sessionId: string): Receipt {
    return this.#parts.sessions.receipt(sessionId);
  }

  /**
   * Whether an agent can be reached now, within `timeoutMs` (3000). Rejects with `unreachable`, `aborted`, or a refusal of
   * the relay.
   */
  checkOnline(agent: string, { timeoutMs, signal }: CallOptions = {}): Promise<Presence> {
    return ignoreRejection(presenceOf(this.#parts.http, agent, timeoutMs, signal));
  }

  /**
   * Resolves when an agent can be reached. Rejects with `target_not_online` after `timeoutMs`, `timeout` when the relay did
   * not answer in it, at once with a refusal that lasts, and with `queue_full`, `aborted`, or what ended the connector.
   */
  waitOnline(agent: string, options: CallOptions = {}): Promise<Presence> {
    return ignoreRejection(this.#parts.conversations.waitOnline(agent, options));
  }

  /** Adds a listener. What it throws is reported as `error`. @returns a function that removes it. */
  on<N extends keyof ConnectorEvents>(event: N, listener: (value: ConnectorEvents[N]) => unknown): () => void {
    return this.#emitter.on(event, listener);
  }

  /**
   * Deliveries in the order in which they came, each to one reader. Those before the first read are kept, unless there is
   * a `delivery` listener. Ends with the connector: normally after `close`, else by throwing the RelayError that ended it.
   */
  [Symbol.asyncIterator](): AsyncGenerator<Delivery, void, undefined> {
    return this.#parts.inbox.read();
  }

  async #begin(): Promise<void> {
    this.#setState({ status: "connecting" });
    try {
      await this.#parts.start();
      if (this.#stopped === undefined) this.#reconnector.start();
    } catch (error) {
      await this.#stop(error as RelayError);
    }
  }

  #stop(error?: RelayError): Promise<void> {
    if (this.#stopped !== undefined) return this.#stopped;
    const told = Promise.withResolvers<void>();
    this.#stopped = Promise.all([this.#reconnector.stop(), told.promise]).then(() => {});
    this.#parts.stop(error, () => {
      ignoreRejection(this.#started.promise);
      this.#started.reject(error ?? new RelayError("closed"));
      this.#setState({ status: "closed", ...(error && { error }) });
      told.resolve();
    });
    return this.#stopped;
  }

  #online(connection: Connection): void {
    this.#parts.firstStart.succeeded();
    this.#emitter.logAnew();
    this.#parts.sendQueue.resume(connection);
    this.#parts.conversations.found();
    this.#started.resolve();
    if (this.#state.status !== "online") this.#setState({ status: "online" });
  }

  #setState(state: ConnectorState): void {
    this.#state = state;
    this.#emitter.emit("state", state);
  }

  #receive(frame: Exclude<Frame, HelloFrame>): void {
    if (frame.frame === "ack") this.#parts.sendQueue.acknowledge(frame);
    else if (frame.frame === "deliver") this.#parts.inbox.receive(frame);
    else if (frame.frame === "notice") this.#noticed(frame.notice);
    else if (!this.#parts.sendQueue.refuse(frame) && frame.envelopeId === undefined) {
      this.#emitter.emit("error", refusalOf(frame));
    }
  }

  /** The end is told behind what was promised before it. */
  #noticed(notice: Notice): void {
    const tell = () => this.#emitter.emit("notice", notice);
    if (notice.kind === "superseded") this.#parts.inbox.afterDeliveries(tell);
    else tell();
  }
}

/** What another credential can mend. */
const CREDENTIAL_ENDS: ReadonlySet<ErrorCode> = new Set(["key_revoked", "invalid_credential"]);

function resultOf<T>(ack: Promise<AckFrame>, read: (ack: AckFrame) => T): Promise<T> {
  return ignoreRejection(ack.then(read));
}

function rejected(error: RelayError): Promise<never> {
  return ignoreRejection(Promise.reject(error));
}
