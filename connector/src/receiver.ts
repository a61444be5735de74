import { type ErrorCode, RelayError } from "./errors.ts";
import { type DeliverFrame, membersOf } from "./frames.ts";
import { MAX_SEEN } from "./limits.ts";
import type { Delivery, Envelope, JsonObject } from "./types.ts";
import type { Verifier } from "./verifier.ts";

export interface ReceiverOptions {
  readonly agent: string;
  readonly verifier: Verifier;
  readonly requireVerified: boolean;
  /** Deliveries that may wait for their check. */
  readonly maxWaiting: number;
  readonly delivered: (delivery: Delivery) => void;
  readonly dropped: (error: RelayError) => void;
  readonly overflowed: () => void;
}

/** From the relay's deliveries to what this agent may rely on, in the order in which they came. */
export class Receiver {
  readonly #options: ReceiverOptions;
  readonly #seen = new Set<string>();
  #lane: Promise<void> = Promise.resolve();
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
    this.#lane = this.#lane.then(async () => {
      await this.#take(frame, receivedAt);
      this.#waiting -= 1;
    });
  }

  async #take(frame: DeliverFrame, receivedAt: number): Promise<void> {
    const { agent, verifier, requireVerified, delivered } = this.#options;
    const envelope = readEnvelope(frame.envelope);
    if (envelope === undefined) return this.#drop("malformed_delivery");
    if (envelope.to !== agent) return this.#drop("misdirected_delivery", envelope);
    if (this.#seen.has(nameOf(envelope))) return;

    const verified = await verifier.check(envelope);
    if (verified === "forged") return this.#drop("forged_delivery", envelope);
    if (verified === "unverified" && requireVerified) return this.#drop("unverified_delivery", envelope);
    this.#remember(envelope);
    const { from, type, payload } = envelope;
    const sessionId = sessionOf(envelope, frame);
    delivered({ envelope, ...(sessionId && { sessionId }), from, type, payload, verified, receivedAt });
  }

  #drop(code: ErrorCode, envelope?: Envelope): void {
    this.#options.dropped(new RelayError(code, { envelopeId: envelope?.id }));
  }

  /** Only what was delivered: a forgery must not stand in the way of the envelope whose id it took. */
  #remember(envelope: Envelope): void {
    this.#seen.add(nameOf(envelope));
    const [oldest] = this.#seen;
    if (this.#seen.size > MAX_SEEN && oldest !== undefined) this.#seen.delete(oldest);
  }
}

/** An id is unique per signer only. */
function nameOf({ key_id, id }: Envelope): string {
  return `${key_id} ${id}`;
}

/** Of a decision, the session that was signed; of a request, the one that the relay made of it. */
function sessionOf({ type, payload }: Envelope, { sessionId }: DeliverFrame): string | undefined {
  const isDecision = type === "session.approve" || type === "session.reject";
  return isDecision && typeof payload.session_id === "string" ? payload.session_id : sessionId;
}

/** The members that are signed, and no other; undefined when one is missing or of another kind. */
function readEnvelope(value: unknown): Envelope | undefined {
  const { id, type, from, to, task_id, payload, ts, key_id, sig } = membersOf(value);
  const texts = [id, type, from, key_id, sig];
  const optional = [to, task_id].filter((text) => text !== undefined);
  if (![...texts, ...optional].every((text) => typeof text === "string")) return undefined;
  if (typeof ts !== "number" || typeof payload !== "object" || payload === null || Array.isArray(payload))
    return undefined;
  const [sent, signed] = [
    { id, type, from } as Envelope,
    { payload: payload as JsonObject, ts, key_id, sig } as Envelope,
  ];
  return {
    ...sent,
    ...(to !== undefined && { to: to as string }),
    ...(task_id !== undefined && { task_id: task_id as string }),
    ...signed,
  };
}
