import { growingMs } from "./backoff.ts";
import type { ReceivedDelivery } from "./delivery-judge.ts";
import { RelayError } from "./errors.ts";
import { ONLINE_LOOK, SEND_TIMEOUT_MS } from "./limits.ts";
import { noReply } from "./no-reply.ts";
import type { OwnEnvelopes } from "./own-envelopes.ts";
import { pause } from "./pause.ts";
import type { PresenceWatch } from "./presence-watch.ts";
import { isAnswerable, REPLY_TYPE, withReply } from "./replies.ts";
import type { SenderVerifier } from "./sender-verifier.ts";
import { targetNotOnline } from "./target-not-online.ts";
import type { Accepted, AskOptions, CallOptions, Delivery, Presence, SendOptions } from "./types.ts";
import { accepted } from "./wire-mapping.ts";

export interface ConversationsOptions {
  readonly ownEnvelopes: OwnEnvelopes;
  readonly presence: PresenceWatch;
  readonly verifier: SenderVerifier;
  /** Every message is sealed, asked or not. */
  readonly sealsAll: boolean;
  /** Questions that may be without a reply. */
  readonly maxAsks: number;
}

/** A question without a reply. */
interface Ask {
  readonly taskId: string;
  readonly to: string;
  readonly isSealed: boolean;
  readonly reply: PromiseWithResolvers<Delivery>;
  /** Aborted when it has its reply, or can get none any more. */
  readonly over: AbortController;
}

/** The messages of this agent, and its questions until they are replied to. */
export class Conversations {
  readonly #options: ConversationsOptions;
  /** By task. */
  readonly #asks = new Map<string, Ask>();
  readonly #ended = new AbortController();
  #end: RelayError | undefined;
  #isLost = false;
  /** Monotonic milliseconds. */
  #lostAt = Number.NEGATIVE_INFINITY;

  constructor(options: ConversationsOptions) {
    this.#options = options;
  }

  /** Rejects with a RelayError. */
  async send(to: string, payload: object, options: SendOptions): Promise<Accepted> {
    const { type = "message.send", taskId, seal, waitOnline = 0, timeoutMs, signal } = options;
    const content = { type, to, task_id: taskId, payload };
    this.#options.ownEnvelopes.check(content);
    if (waitOnline > 0) await this.#untilOnline(to, waitOnline, signal);
    return accepted(await this.#options.ownEnvelopes.message(content, this.#seals(seal), { timeoutMs, signal }));
  }

  /** Resolves with the reply. Rejects with a RelayError. */
  async ask(to: string, payload: object, { signal, ...options }: AskOptions): Promise<Delivery> {
    const { type = "message.send", seal } = options;
    if (typeof type === "string" && !isAnswerable(type)) throw new RelayError("not_answerable");
    if (this.#asks.size >= this.#options.maxAsks) throw new RelayError("queue_full");
    const taskId = crypto.randomUUID();
    this.#options.ownEnvelopes.check({ type, to, task_id: taskId, payload });
    const [reply, over] = [Promise.withResolvers<Delivery>(), new AbortController()];
    const ask = { taskId, to, isSealed: this.#seals(seal), reply, over };
    this.#asks.set(taskId, ask);
    const abort = () => over.abort(signal?.reason);
    signal?.addEventListener("abort", abort);
    if (signal?.aborted) abort();
    try {
      return await Promise.race([reply.promise, this.#unanswered(ask, payload, options)]);
    } finally {
      this.#asks.delete(taskId);
      signal?.removeEventListener("abort", abort);
      over.abort();
    }
  }

  /** Resolves when the agent can be reached. Rejects with a RelayError. */
  async waitOnline(agent: string, { timeoutMs = SEND_TIMEOUT_MS, signal }: CallOptions): Promise<Presence> {
    return await this.#untilOnline(agent, timeoutMs, signal);
  }

  /** @returns what was received as a delivery; undefined for the reply to a question of this agent, which is no other's. */
  receive(received: ReceivedDelivery): Delivery | undefined {
    const delivery = withReply(received, (to, payload, options) => this.send(to, payload, options));
    const ask = this.#askRepliedBy(received);
    if (ask === undefined) return delivery;
    this.#asks.delete(ask.taskId);
    ask.reply.resolve(delivery);
    return undefined;
  }

  /** The connection is lost: a reply that comes while there is none is lost, too. */
  lost(): void {
    if (!this.#isLost) this.#lostAt = performance.now();
    this.#isLost = true;
  }

  /** The connection is back. */
  found(): void {
    this.#isLost = false;
  }

  /** Rejects what waits, and all that comes. Sends on their way have ended before. */
  end(error: RelayError): void {
    this.#end = error;
    this.#ended.abort();
    for (const { over } of this.#asks.values()) over.abort();
  }

  /** To a sealed question the reply must be sealed. */
  #askRepliedBy(received: ReceivedDelivery): Ask | undefined {
    const { envelope, type, from, sealed } = received;
    const ask = type === REPLY_TYPE ? this.#asks.get(envelope.task_id ?? "") : undefined;
    const isReply = ask?.to === from && (sealed === true || !ask.isSealed) && this.#isBelieved(received);
    return isReply ? ask : undefined;
  }

  /** Puts the question. Never resolves: rejects with why there is no reply. */
  async #unanswered(ask: Ask, payload: object, options: AskOptions): Promise<never> {
    const { to, taskId, over } = ask;
    const { type, seal, timeoutMs = SEND_TIMEOUT_MS, waitOnline = 0 } = options;
    const onlineBy = performance.now() + waitOnline;
    for (let attempt = 0; ; attempt += 1) {
      if (waitOnline > 0) await this.#untilOnline(to, onlineBy - performance.now(), over.signal);
      const askedAt = performance.now();
      const sending = { type, seal, taskId, timeoutMs, signal: over.signal };
      const { delivery, duplicate, envelopeId } = await this.send(to, payload, sending);
      // A duplicate says how the target is now: it may have got the first.
      if (delivery.canDeliverRealtime || duplicate)
        return await this.#silence(askedAt, timeoutMs, envelopeId, over.signal);
      const waitMs = growingMs(attempt, ONLINE_LOOK.wait);
      if (performance.now() + waitMs >= onlineBy) throw targetNotOnline(delivery.status, envelopeId);
      await pause(waitMs, over.signal);
    }
  }

  /** The target may have the question, and says nothing. */
  async #silence(askedAt: number, timeoutMs: number, envelopeId: string, signal: AbortSignal): Promise<never> {
    await pause(askedAt + timeoutMs - performance.now(), signal);
    this.#throwIfOver(signal, "unknown");
    const [lostAt, isLost] = [this.#lostAt > askedAt ? this.#lostAt : undefined, this.#isLost];
    throw noReply({ envelopeId, lostAt, isLost }, performance.now());
  }

  async #untilOnline(to: string, ms: number, signal: AbortSignal = this.#ended.signal): Promise<Presence> {
    this.#throwIfOver(signal, "refused");
    const presence = await this.#options.presence.untilOnline(to, ms, AbortSignal.any([signal, this.#ended.signal]));
    this.#throwIfOver(signal, "refused");
    return presence as Presence;
  }

  #throwIfOver(signal: AbortSignal, outcome: "refused" | "unknown"): void {
    if (this.#end !== undefined) throw endedBy(this.#end, outcome);
    if (signal.aborted) throw new RelayError("aborted", { outcome, cause: signal.reason });
  }

  #seals(seal: boolean | undefined): boolean {
    return seal === true || this.#options.sealsAll;
  }

  /** Whom this agent pinned can prove who they are: what does not is not theirs. */
  #isBelieved(received: ReceivedDelivery): boolean {
    const { verifier } = this.#options;
    return !verifier.isPinned(received.from) || verifier.isVerified(received, received.envelope);
  }
}

function endedBy(error: RelayError, outcome: "refused" | "unknown"): RelayError {
  const { code, message, hint, retry, closeCode } = error;
  return new RelayError(code, { message, hint, retry, closeCode, outcome, cause: error });
}
