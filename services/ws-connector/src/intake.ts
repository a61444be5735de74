import type { ErrorCode } from "protocol/contract/errors.ts";
import { CONNECTION_LIMITS, HTTP_LIMITS, WINDOW_LIMITS } from "protocol/contract/limits.ts";
import { sessionRefusal } from "protocol/contract/rate-limits.ts";
import { isRefusal, type Refusal } from "protocol/intake/refusal.ts";
import { checkBeforeSignature, type VerifiedEnvelope } from "protocol/intake/steps.ts";
import type { KeyStore } from "runtime/key-store.ts";
import type { KeyRefusals } from "runtime/metrics/key-refusals.ts";
import type { Tally } from "runtime/metrics/service-metrics.ts";
import type { SignatureVerifier } from "runtime/verification/signature-verifier.ts";
import type { Acceptance, AcceptanceItem, Prepared } from "window/acceptance/acceptance.ts";
import type { Acceptor } from "window/acceptance/acceptor.ts";
import { principalOfKey } from "window/principal.ts";
import type { Connection } from "./connection.ts";
import { deliveryAck, type ErrorDetails, errorFrame } from "./frames.ts";
import type { Registrar } from "./registrar.ts";
import { IDLE, type PreparationEvent, type PreparationState, preparationStep } from "./session-preparation.ts";
import { VerificationQueue } from "./verification-queue.ts";

/** Envelopes of one connection in flight at once; beyond that its socket is not read. */
const MAX_IN_FLIGHT = 256;

/** Outcomes that do not count as refusals in a row: a client that goes on with its other agents is not closed for them. */
const NO_ROOM = {
  unavailable: { retryAfterMs: HTTP_LIMITS.unavailableRetryAfterMs },
  over_capacity: { retryAfterMs: WINDOW_LIMITS.memoryRetryAfterMs },
  agents_per_key: {},
} as const;

/** What intake works with, the same for all connections of the pod. */
export interface IntakeDependencies {
  readonly keys: KeyStore;
  readonly verifier: SignatureVerifier;
  readonly acceptor: Acceptor;
  readonly registrar: Registrar;
  /** Error frames sent, by code. */
  readonly refusals: Tally;
  /** Base address of the HTTP surfaces, for links in acks. */
  readonly baseUrl: string;
  /** Those that a key's holder got, by key. */
  readonly keyRefusals: KeyRefusals;
}

/** Takes in one text frame. Most connections are silent most of the time, and have no intake then. */
export function receiveText(connection: Connection, text: string, dependencies: IntakeDependencies): void {
  connection.intake ??= new Intake(connection, dependencies);
  connection.intake.receive(text);
}

/**
 * Intake of one connection: decode … authority (the steps shared with the self-test) → ownership → acceptance →
 * ack. What is still in flight when its connection closes is discarded, except for a session decision that may be in
 * effect. Source: docs/protocol.md#frames.
 */
class Intake {
  readonly #connection: Connection;
  readonly #keys: KeyStore;
  readonly #acceptor: Acceptor;
  readonly #registrar: Registrar;
  readonly #refusals: Tally;
  readonly #baseUrl: string;
  readonly #keyRefusals: KeyRefusals;
  readonly #queue: VerificationQueue;
  #accepting = 0;
  /** Of the envelope at the head of the queue. */
  #preparation: PreparationState = IDLE;

  constructor(connection: Connection, dependencies: IntakeDependencies) {
    const { keys, verifier, acceptor, registrar, refusals, keyRefusals, baseUrl } = dependencies;
    this.#connection = connection;
    this.#keys = keys;
    this.#acceptor = acceptor;
    this.#registrar = registrar;
    this.#refusals = refusals;
    this.#baseUrl = baseUrl;
    this.#keyRefusals = keyRefusals;
    this.#queue = new VerificationQueue(
      verifier,
      (result) => this.#handle(result),
      () => this.#adjustReading(),
    );
  }

  receive(text: string): void {
    this.#queue.push(checkBeforeSignature(text, this.#keys.ring, Date.now()));
    this.#adjustReading();
  }

  /** Handles the head of the queue; false while it must wait there. */
  #handle(result: Refusal | VerifiedEnvelope): boolean {
    if (this.#preparation.kind !== "idle") return this.#handlePrepared(result as VerifiedEnvelope);
    if (this.#connection.isClosing) return true;
    if (isRefusal(result)) {
      const { code, envelopeId, canonicalSha256, keyId } = result;
      this.#refuse(code, { envelopeId, detail: detailOf(result), canonicalSha256 }, keyId);
      return true;
    }
    if (isPresence(result)) return this.#handlePresence(result);
    return this.#handlePublication(result);
  }

  #handlePresence(verified: VerifiedEnvelope): boolean {
    const { envelope } = verified;
    if (this.#connection.agents.countWith(envelope.from) > CONNECTION_LIMITS.maxAgentsPerConnection) {
      const detail = `A connection carries at most ${CONNECTION_LIMITS.maxAgentsPerConnection} agents.`;
      this.#refuse("invalid_envelope", { envelopeId: envelope.id, detail }, verified.keyId);
      return true;
    }
    if (!this.#registrar.canTakeAgents(this.#connection)) {
      this.#answer(verified, { outcome: "unavailable" });
      return true;
    }
    this.#registrar.requested(this.#connection, envelope.from);
    this.#accept(verified, (acceptance) => {
      this.#registrar.answered(this.#connection, verified, acceptance, (refused) => this.#answer(verified, refused));
      this.#queue.advance();
    });
    return true;
  }

  #handlePublication(verified: VerifiedEnvelope): boolean {
    const { envelope, kind } = verified;
    const { agents } = this.#connection;
    if (!agents.owns(envelope.from)) {
      if (agents.isPending(envelope.from)) return false;
      this.#refuse("not_registered", { envelopeId: envelope.id }, verified.keyId);
      return true;
    }
    if (this.#acceptor.needsPreparation(kind)) return this.#handlePrepared(verified);
    this.#accept(verified, (acceptance) => this.#answer(verified, acceptance));
    return true;
  }

  #handlePrepared(verified: VerifiedEnvelope): boolean {
    return this.#applyPreparation(verified, { kind: "handed_over" });
  }

  /** True when the envelope at the head of the queue is done with. */
  #applyPreparation(verified: VerifiedEnvelope, event: PreparationEvent): boolean {
    const { state, effect } = preparationStep(this.#preparation, event);
    this.#preparation = state;
    if (effect.kind === "prepare") void this.#prepare(verified);
    else if (effect.kind === "advance") this.#queue.advance();
    else if (effect.kind === "answer") this.#answer(verified, effect.answer);
    else if (effect.kind === "accept") {
      this.#accept(verified, (acceptance) => this.#answer(verified, acceptance), effect.prepared);
    }
    return effect.kind === "accept" || effect.kind === "answer";
  }

  async #prepare(verified: VerifiedEnvelope): Promise<void> {
    const answer = await this.#acceptor.prepare({ ...verified, principal: principalOfKey(verified.keyId) });
    const event = "outcome" in answer ? { kind: "refused", answer } : { kind: "prepared", prepared: answer };
    this.#applyPreparation(verified, event as PreparationEvent);
  }

  #accept(verified: VerifiedEnvelope, done: (acceptance: Acceptance) => void, prepared?: Prepared): void {
    this.#accepting += 1;
    const item: AcceptanceItem = {
      envelope: verified.envelope,
      kind: verified.kind,
      text: verified.text,
      origin: "websocket",
      principal: principalOfKey(verified.keyId),
      connection: this.#connection.id,
      isCongested: () => this.#connection.isCongested,
      prepared,
      hasNamespace: isPresence(verified) && this.#keys.ring.hasNamespace(verified.keyId, Date.now()),
      // A decision that comes this far is in effect: it must reach its requester.
      abandoned: () => this.#connection.isClosing && verified.kind !== "session_decision",
      done: (acceptance) => {
        this.#accepting -= 1;
        done(acceptance);
        this.#adjustReading();
      },
    };
    this.#acceptor.accept(item);
  }

  #answer({ envelope, keyId }: VerifiedEnvelope, acceptance: Acceptance): void {
    if (acceptance.outcome === "accepted" || acceptance.outcome === "duplicate") {
      this.#connection.noteValid(keyId);
      if (acceptance.about === "delivery") this.#connection.send(deliveryAck(envelope, acceptance, this.#baseUrl));
    } else if (isNoRoom(acceptance.outcome)) {
      this.#connection.noteValid(keyId);
      if (acceptance.outcome === "agents_per_key") this.#keyRefusals.add(keyId);
      this.#sendError(acceptance.outcome, { envelopeId: envelope.id, ...NO_ROOM[acceptance.outcome] });
    } else if (acceptance.outcome === "rate_limited") {
      this.#keyRefusals.add(keyId);
      const { limit, retryAfterMs } = acceptance;
      this.#sendError("rate_limited", { envelopeId: envelope.id, ...sessionRefusal(limit, retryAfterMs) });
    } else if (isWebsocketRefusal(acceptance.outcome)) {
      this.#refuse(acceptance.outcome, { envelopeId: envelope.id }, keyId);
    }
  }

  /** @param keyId the key, once the signature was verified; anybody can write another's key id. */
  #refuse(code: ErrorCode, details: ErrorDetails, keyId: string | undefined): void {
    const serverTime = code === "clock_skew" ? { serverTime: Date.now() } : {};
    if (keyId !== undefined) this.#keyRefusals.add(keyId);
    this.#sendError(code, { ...details, ...serverTime });
    this.#connection.noteRefusal();
  }

  #sendError(code: ErrorCode, details: ErrorDetails): void {
    this.#refusals.add(code);
    this.#connection.send(errorFrame(code, details));
  }

  /** Stops or resumes reading from the socket, and ends this intake when nothing is in flight. */
  #adjustReading(): void {
    const inFlight = this.#queue.length + this.#accepting;
    if (inFlight === 0) this.#connection.allAnswered();
    if (inFlight > MAX_IN_FLIGHT) this.#connection.pause("full_intake");
    else this.#connection.resume("full_intake");
  }
}

function isPresence({ kind }: VerifiedEnvelope): boolean {
  return kind === "register" || kind === "heartbeat";
}

function isNoRoom(outcome: Acceptance["outcome"]): outcome is keyof typeof NO_ROOM {
  return outcome in NO_ROOM;
}

function isWebsocketRefusal(outcome: Acceptance["outcome"]): outcome is Extract<Acceptance["outcome"], ErrorCode> {
  return outcome !== "abandoned" && outcome !== "replayed" && outcome !== "reused";
}

function detailOf({ detail, errors }: Refusal): string | undefined {
  const fields = errors?.map(({ field, message }) => `${field}: ${message}`).join("; ");
  return [detail, fields].filter((text) => text !== undefined).join(" ") || undefined;
}
