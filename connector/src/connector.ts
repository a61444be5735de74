/// <reference lib="esnext.disposable" preserve="true" />

import { relayAddress } from "./address.ts";
import { accepted, acceptedSession, draftOf, type Message, sessionDecision, sessionRequest } from "./calls.ts";
import { Clock } from "./clock.ts";
import { Emitter } from "./emitter.ts";
import { knownCode, RelayError } from "./errors.ts";
import type { AckFrame, Frame, HelloFrame } from "./frames.ts";
import { GatewayKeys } from "./gateway-keys.ts";
import { MAX_INBOX, MAX_PENDING } from "./limits.ts";
import { Link, type PresenceType } from "./link.ts";
import { Mailbox } from "./mailbox.ts";
import { Outbox } from "./outbox.ts";
import { Reconnector } from "./reconnector.ts";
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
} from "./types.ts";
import { Verifier } from "./verifier.ts";

const AGENT_PATTERN = /^agent:\/\/[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/;

/**
 * One agent on the relay: registered, present, and back after whatever befalls the connection. Only `close`, a refused
 * or revoked key, another connection that registers the same agent, or a close for misconduct end it for good.
 */
export class Connector implements AsyncDisposable, AsyncIterable<Delivery> {
  /** `agent://name`. */
  readonly agent: string;
  readonly #emitter = new Emitter();
  readonly #signer: Signer;
  readonly #gatewayKeys: GatewayKeys;
  readonly #verifier: Verifier;
  readonly #mailbox: Mailbox;
  readonly #outbox: Outbox;
  readonly #reconnector: Reconnector;
  readonly #started = Promise.withResolvers<void>();
  #state: ConnectorState = { status: "idle" };
  #stopped: Promise<void> | undefined;

  /** Does no I/O. Throws a TypeError when `url` or `agent` does not have its form. */
  constructor({ url, agent, key, trust = {}, requireVerified = false, ...bounds }: ConnectorOptions) {
    if (!AGENT_PATTERN.test(agent)) throw new TypeError("agent must be agent:// and a name");
    const { maxPending = MAX_PENDING, maxInbox = MAX_INBOX } = bounds;
    const { websocket, signingManifest } = relayAddress(url);
    const clock = new Clock();
    const emitter = this.#emitter;
    const presence = (type: PresenceType) => this.#presence(type);
    this.agent = agent;
    this.#signer = new Signer(key, clock);
    this.#gatewayKeys = new GatewayKeys(signingManifest);
    this.#verifier = new Verifier(trust, this.#gatewayKeys);
    this.#mailbox = new Mailbox({ agent, verifier: this.#verifier, requireVerified, maxInbox, emitter });
    this.#outbox = new Outbox({ signer: this.#signer, clock, maxPending, suspect: () => this.#reconnector.check() });
    this.#reconnector = new Reconnector((events) => new Link({ url: websocket, clock, presence, events }), {
      online: (link) => this.#online(link),
      offline: ({ reason, closeCode }, retryInMs) => {
        this.#outbox.pause();
        this.#enter({ status: "reconnecting", reason, retryInMs: Math.round(retryInMs), closeCode });
      },
      frame: (frame) => this.#receive(frame),
      troubled: (error) => emitter.emit("error", error),
      ended: (error) => void this.#stop(error),
    });
  }

  get state(): ConnectorState {
    return this.#state;
  }

  /**
   * Connects; resolves once the agent is registered, however long that takes. Rejects with the RelayError that ended the
   * connector: `invalid_key`, what the relay said of the register, `closed`, or `aborted` (by `signal`, which counts
   * only until then).
   */
  start({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    const abort = () => void this.#stop(new RelayError("aborted", { cause: signal?.reason }));
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort);
    if (this.#state.status === "idle") void this.#begin();
    return unheeded(this.#started.promise.finally(() => signal?.removeEventListener("abort", abort)));
  }

  /** Ends the connection. Sends without answer are rejected with `closed`. Resolves when the socket is gone. */
  async close(): Promise<void> {
    await this.#stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * Sends a message. Resolves when the relay has accepted it; whether the target got it, `delivery` says. While there is
   * no connection it waits. Sends to one target arrive in the order of the calls, but for one that the relay refused for
   * the moment (`unavailable`, `rate_limited`) while later ones were on their way: where that matters, await each.
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

  /** Asks for a session. The target's decision comes as a delivery of type `session.approve` or `session.reject`. */
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

  /** Listens. What a listener throws is reported as `error`. @returns a function that ends it. */
  on<N extends keyof ConnectorEvents>(event: N, listener: (value: ConnectorEvents[N]) => unknown): () => void {
    return this.#emitter.on(event, listener);
  }

  /**
   * Deliveries in the order in which they came, each to one reader. Those before the first read are kept, unless there is
   * a `delivery` listener. Ends with the connector: quietly after `close`, else by throwing the RelayError that ended it.
   */
  [Symbol.asyncIterator](): AsyncGenerator<Delivery, void, undefined> {
    return this.#mailbox.read();
  }

  async #begin(): Promise<void> {
    this.#enter({ status: "connecting" });
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
    this.#outbox.end(reason);
    this.#mailbox.end(error);
    unheeded(this.#started.promise);
    this.#started.reject(reason);
    this.#enter({ status: "closed", ...(error && { error }) });
    return this.#stopped;
  }

  #online(link: Link): void {
    this.#outbox.resume(link);
    this.#started.resolve();
    if (this.#state.status !== "online") this.#enter({ status: "online" });
  }

  #enter(state: ConnectorState): void {
    this.#state = state;
    this.#emitter.emit("state", state);
  }

  #publish<T>(message: Message, options: CallOptions, read: (ack: AckFrame) => T): Promise<T> {
    return unheeded(this.#add(message, options).then(read));
  }

  async #add(message: Message, options: CallOptions): Promise<AckFrame> {
    const id = crypto.randomUUID();
    return await this.#outbox.add(id, this.#signer.draft(draftOf(message, id, this.agent)), options);
  }

  async #presence(type: PresenceType): Promise<{ id: string; text: string }> {
    const id = crypto.randomUUID();
    const draft = this.#signer.draft(draftOf({ type, payload: {} }, id, this.agent));
    return { id, text: (await this.#signer.sign(draft)).text };
  }

  #receive(frame: Exclude<Frame, HelloFrame>): void {
    if (frame.frame === "ack") this.#outbox.acknowledge(frame);
    else if (frame.frame === "deliver") this.#mailbox.receive(frame);
    else if (frame.frame === "notice") this.#emitter.emit("notice", frame.notice);
    else if (!this.#outbox.refuse(frame) && frame.envelopeId === undefined) {
      const { code, message, hint, retryAfterMs } = frame;
      this.#emitter.emit("error", new RelayError(knownCode(code), { message, hint, retryAfterMs }));
    }
  }
}

/** A rejection that the caller does not handle must not end the process. */
function unheeded<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
