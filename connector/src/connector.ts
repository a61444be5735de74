/// <reference lib="esnext.disposable" preserve="true" />

import { relayAddress } from "./address.ts";
import { AGENT_ID } from "./agent-id.ts";
import { Clock } from "./clock.ts";
import { Connection, type PresenceType } from "./connection.ts";
import { Emitter } from "./emitter.ts";
import { CONNECTOR_ERRORS, type ErrorCode, knownCode, RelayError } from "./errors.ts";
import type { AckFrame, Frame, HelloFrame } from "./frames.ts";
import { GatewayKeys } from "./gateway-keys.ts";
import { Inbox } from "./inbox.ts";
import { MAX_DELIVERY_AGE_MS, MAX_INBOX, MAX_PENDING } from "./limits.ts";
import { Reconnector } from "./reconnector.ts";
import { ReplayGuard } from "./replay-guard.ts";
import { SendQueue } from "./send-queue.ts";
import { SenderVerifier } from "./sender-verifier.ts";
import { Signer } from "./signer.ts";
import type {
  Accepted,
  AcceptedSession,
  CallOptions,
  ConnectorEvents,
  ConnectorOptions,
  ConnectorState,
  Delivery,
  SendOptions,
  SessionProposal,
  Warning,
} from "./types.ts";
import { outdatedWarning } from "./version.ts";
import {
  accepted,
  acceptedSession,
  draftOf,
  type EnvelopeContent,
  sessionDecision,
  sessionRequest,
} from "./wire-mapping.ts";

/**
 * One agent on the relay: registers it, keeps it present, and reconnects whenever the connection is lost. Only `close`, a
 * refused or revoked key, another connection that registers the same agent, or a close for what it sent
 * (1003, 1007, 1008, 1009) end it for good.
 */
export class Connector implements AsyncDisposable, AsyncIterable<Delivery> {
  /** `agent://name`. */
  readonly agent: string;
  readonly #emitter = new Emitter();
  readonly #signer: Signer;
  readonly #gatewayKeys: GatewayKeys;
  readonly #verifier: SenderVerifier;
  readonly #inbox: Inbox;
  readonly #sendQueue: SendQueue;
  readonly #reconnector: Reconnector;
  readonly #started = Promise.withResolvers<void>();
  #state: ConnectorState = { status: "idle" };
  /** The version that was warned of. */
  #outdatedBy: string | undefined;
  #stopped: Promise<void> | undefined;

  /** Does no I/O. Throws a TypeError when `url` or `agent` is invalid. */
  constructor({ url, agent, key, trust = {}, requireVerified = false, ...bounds }: ConnectorOptions) {
    if (!AGENT_ID.test(agent)) throw new TypeError("agent must be agent:// and a name");
    const { maxPending = MAX_PENDING, maxInbox = MAX_INBOX, maxDeliveryAgeMs = MAX_DELIVERY_AGE_MS } = bounds;
    const { websocket, signingManifest } = relayAddress(url);
    const clock = new Clock();
    const emitter = this.#emitter;
    const signPresence = (type: PresenceType) => this.#signPresence(type);
    const notRegistered = () => this.#reconnector.checkRegistration();
    this.agent = agent;
    this.#signer = new Signer(key, clock);
    this.#gatewayKeys = new GatewayKeys(signingManifest);
    this.#verifier = new SenderVerifier(trust, this.#gatewayKeys);
    const replayGuard = new ReplayGuard(clock, maxDeliveryAgeMs);
    this.#inbox = new Inbox({ agent, verifier: this.#verifier, replayGuard, requireVerified, maxInbox, emitter });
    this.#sendQueue = new SendQueue({ signer: this.#signer, clock, maxPending, notRegistered });
    this.#reconnector = new Reconnector((events) => new Connection({ url: websocket, clock, signPresence, events }), {
      greeted: ({ connectorVersion }) => {
        this.#compareVersion(connectorVersion);
        if (!replayGuard.canJudge) emitter.emit("warning", clockWarning());
      },
      online: (connection) => this.#online(connection),
      offline: ({ reason, closeCode }, retryInMs) => {
        this.#sendQueue.pause();
        this.#setState({ status: "reconnecting", reason, retryInMs: Math.round(retryInMs), closeCode });
      },
      frame: (frame) => this.#receive(frame),
      heartbeatRefused: (error) => emitter.emit("error", error),
      ended: (error) => void this.#stop(error),
    });
  }

  get state(): ConnectorState {
    return this.#state;
  }

  /** How many deliveries were dropped for what they are, by the code of the `error` event that reported each. */
  get dropped(): ReadonlyMap<ErrorCode, number> {
    return this.#inbox.dropped;
  }

  /**
   * Connects; resolves once the agent is registered, however long that takes. Rejects with the RelayError that ended the
   * connector: `invalid_key`, the refusal of the register, `closed`, or `aborted` (by `signal`, which counts
   * only until then).
   */
  start({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    const abort = () => void this.#stop(new RelayError("aborted", { cause: signal?.reason }));
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort);
    if (this.#state.status === "idle") void this.#begin();
    return ignoreRejection(this.#started.promise.finally(() => signal?.removeEventListener("abort", abort)));
  }

  /** Ends the connection. Sends without answer are rejected with `closed`. Resolves when the socket is gone. */
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
   * Rejects with a RelayError: `queue_full`, `timeout`, `aborted`, `outcome_unknown`, `frame_too_large`, a refusal of the
   * relay, or what ended the connector. A rejection that nobody handles is dropped.
   * @param payload a JSON object, at most 32 levels deep; with the envelope around it at most 32768 bytes.
   */
  send(
    to: string,
    payload: object,
    { type = "message.send", taskId, ...options }: SendOptions = {},
  ): Promise<Accepted> {
    return this.#publish({ type, to, task_id: taskId, payload }, options, accepted);
  }

  /** Requests a session. The target's decision comes as a delivery of type `session.approve` or `session.reject`. */
  requestSession(to: string, proposal: SessionProposal, options: CallOptions = {}): Promise<AcceptedSession> {
    return this.#publish(sessionRequest(to, proposal), options, acceptedSession);
  }

  /** Approves a session. @param to who requested it. */
  approve(sessionId: string, to: string, options: CallOptions = {}): Promise<AcceptedSession> {
    return this.#publish(sessionDecision("approve", sessionId, to), options, acceptedSession);
  }

  /** Rejects a session. @param to who requested it. @param reason at most 500 characters. */
  reject(sessionId: string, to: string, reason?: string, options: CallOptions = {}): Promise<AcceptedSession> {
    return this.#publish(sessionDecision("reject", sessionId, to, reason), options, acceptedSession);
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
    return this.#inbox.read();
  }

  async #begin(): Promise<void> {
    this.#setState({ status: "connecting" });
    try {
      await this.#signer.start();
      await this.#verifier.start();
      if (this.#stopped === undefined) this.#reconnector.start();
    } catch (error) {
      await this.#stop(error as RelayError);
    }
  }

  #stop(error?: RelayError): Promise<void> {
    if (this.#stopped !== undefined) return this.#stopped;
    const reason = error ?? new RelayError("closed");
    this.#stopped = this.#reconnector.stop();
    this.#gatewayKeys.stop();
    this.#sendQueue.end(reason);
    this.#inbox.end(error);
    ignoreRejection(this.#started.promise);
    this.#started.reject(reason);
    this.#setState({ status: "closed", ...(error && { error }) });
    return this.#stopped;
  }

  #compareVersion(offered: string | undefined): void {
    const warning = outdatedWarning(offered);
    if (warning === undefined || offered === this.#outdatedBy) return;
    this.#outdatedBy = offered;
    this.#emitter.emit("warning", warning);
  }

  #online(connection: Connection): void {
    this.#sendQueue.resume(connection);
    this.#started.resolve();
    if (this.#state.status !== "online") this.#setState({ status: "online" });
  }

  #setState(state: ConnectorState): void {
    this.#state = state;
    this.#emitter.emit("state", state);
  }

  #publish<T>(content: EnvelopeContent, options: CallOptions, read: (ack: AckFrame) => T): Promise<T> {
    return ignoreRejection(this.#add(content, options).then(read));
  }

  async #add(content: EnvelopeContent, options: CallOptions): Promise<AckFrame> {
    const id = crypto.randomUUID();
    return await this.#sendQueue.add(id, this.#signer.draft(draftOf(content, id, this.agent)), options);
  }

  async #signPresence(type: PresenceType): Promise<{ id: string; text: string }> {
    const id = crypto.randomUUID();
    const draft = this.#signer.draft(draftOf({ type, payload: {} }, id, this.agent));
    return { id, text: (await this.#signer.sign(draft)).text };
  }

  #receive(frame: Exclude<Frame, HelloFrame>): void {
    if (frame.frame === "ack") this.#sendQueue.acknowledge(frame);
    else if (frame.frame === "deliver") this.#inbox.receive(frame);
    else if (frame.frame === "notice") this.#emitter.emit("notice", frame.notice);
    else if (!this.#sendQueue.refuse(frame) && frame.envelopeId === undefined) {
      const { code, message, hint, retry, retryAfterMs } = frame;
      this.#emitter.emit("error", new RelayError(knownCode(code), { message, hint, retry, retryAfterMs }));
    }
  }
}

function clockWarning(): Warning {
  const { message, hint } = CONNECTOR_ERRORS.clock_untrusted;
  return { code: "clock_untrusted", message, hint };
}

/** A rejection that the caller does not handle must not end the process. */
function ignoreRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
