import { type ErrorCode, RelayError } from "./errors.ts";
import { type DeliverFrame, membersOf } from "./frames.ts";
import type { ReplayGuard } from "./replay-guard.ts";
import type { SenderVerifier } from "./sender-verifier.ts";
import type { Delivery, Envelope, JsonObject } from "./types.ts";

export interface ReceiverOptions {
  readonly agent: string;
  readonly verifier: SenderVerifier;
  readonly replayGuard: ReplayGuard;
  readonly requireVerified: boolean;
  /** Deliveries whose check may be outstanding; one more overflows. */
  readonly maxWaiting: number;
  readonly delivered: (delivery: Delivery) => void;
  readonly dropped: (error: RelayError) => void;
  readonly overflowed: () => void;
}

/**
 * Checks deliveries one after the other, so that their order holds, and drops those that are malformed, old, repeated or
 * forged.
 */
export class Receiver {
  readonly #options: ReceiverOptions;
  #lastCheck: Promise<void> = Promise.resolve();
  #waiting = 0;

  constructor(options: ReceiverOptions) {
    this.#options = options;
  }

  receive(frame: DeliverFrame): void {
    if (this.#waiting >= this.#options.maxWaiting) {
      this.#options.overflowed();
      return;
    }
    const receivedAt = Date.now();
    this.#waiting += 1;
    this.#lastCheck = this.#lastCheck.then(async () => {
      await this.#check(frame, receivedAt);
      this.#waiting -= 1;
    });
  }

  async #check(frame: DeliverFrame, receivedAt: number): Promise<void> {
    const { agent, verifier, replayGuard, requireVerified, delivered } = this.#options;
    const envelope = readEnvelope(frame.envelope);
    if (envelope === undefined) return this.#drop("malformed_delivery");
    if (envelope.to !== agent) return this.#drop("misdirected_delivery", envelope);
    if (replayGuard.isRepeat(envelope)) return;
    const { canJudge } = replayGuard;
    if (replayGuard.isStale(envelope)) return this.#drop(canJudge ? "stale_delivery" : "clock_untrusted", envelope);

    const signer = await verifier.check(envelope);
    if (signer === "forged") return this.#drop("forged_delivery", envelope);
    if (signer === "unverified" && requireVerified) return this.#drop("unverified_delivery", envelope);
    if (!canJudge && requireVerified) return this.#drop("clock_untrusted", envelope);
    const verified = canJudge ? signer : "unverified";
    replayGuard.remember(envelope, verified);
    const { from, type, payload } = envelope;
    const sessionId = sessionOf(envelope, frame);
    delivered({ envelope, ...(sessionId && { sessionId }), from, type, payload, verified, receivedAt });
  }

  #drop(code: ErrorCode, envelope?: Envelope): void {
    this.#options.dropped(new RelayError(code, { envelopeId: envelope?.id }));
  }
}

/** A decision names its session in the signed payload; the session of a request is named by the relay. */
function sessionOf({ type, payload }: Envelope, { sessionId }: DeliverFrame): string | undefined {
  const isDecision = type === "session.approve" || type === "session.reject";
  return isDecision && typeof payload.session_id === "string" ? payload.session_id : sessionId;
}

/** The signed members and no other; undefined when one is missing or has another type. */
function readEnvelope(value: unknown): Envelope | undefined {
  const { id, type, from, to, task_id, payload, ts, key_id, sig } = membersOf(value);
  const optional = [to, task_id].filter((text) => text !== undefined);
  if (![id, type, from, key_id, sig, ...optional].every((text) => typeof text === "string")) return undefined;
  if (typeof ts !== "number" || typeof payload !== "object" || payload === null || Array.isArray(payload))
    return undefined;
  const optionalMembers = { ...(to !== undefined && { to }), ...(task_id !== undefined && { task_id }) };
  return { id, type, from, ...optionalMembers, payload: payload as JsonObject, ts, key_id, sig } as Envelope;
}
