import type { ErrorCode } from "protocol/contract/errors.ts";
import { CONNECTION_LIMITS, HTTP_LIMITS, WINDOW_LIMITS } from "protocol/contract/limits.ts";
import { sessionRefusal } from "protocol/contract/rate-limits.ts";
import { isCredentialKey } from "protocol/intake/credential-step.ts";
import { isRefusal, type Refusal } from "protocol/intake/refusal.ts";
import { type Candidate, checkBeforeSignature, type VerifiedEnvelope } from "protocol/intake/steps.ts";
import type { KeyRefusals } from "runtime/metrics/key-refusals.ts";
import type { Tally } from "runtime/metrics/service-metrics.ts";
import type { EnvelopeVerifier } from "runtime/verification/envelope-verifier.ts";
import type { Acceptance, AcceptanceItem, Prepared } from "window/acceptance/acceptance.ts";
import type { Acceptor } from "window/acceptance/acceptor.ts";
import { boundsFactorOf, labelsOf, type Principal, principalOf } from "window/principal.ts";
import type { Authority } from "./authority.ts";
import type { Connection } from "./connection.ts";
import { deliveryAck, type ErrorDetails, errorFrame } from "./frames.ts";
import type { Registrar } from "./registrar.ts";
import { IDLE, type PreparationEvent, type PreparationState, preparationStep } from "./session-preparation.ts";
import { VerificationQueue, type WaitingEnvelope } from "./verification-queue.ts";

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
  readonly verifier: EnvelopeVerifier;
  readonly authority: Authority;
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
  readonly #authority: Authority;
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
    const { verifier, authority, acceptor, registrar, refusals, keyRefusals, baseUrl } = dependencies;
    this.#connection = connection;
    this.#authority = authority;
    this.#acceptor = acceptor;
    this.#registrar = registrar;
    this.#refusals = refusals;
    this.#baseUrl = baseUrl;
    this.#keyRefusals = keyRefusals;
    this.#queue = new VerificationQueue({
      verifier,
      handle: (result) => this.#handle(result),
      recheck: (waiting) => this.#recheck(waiting),
      advanced: () => this.#adjustReading(),
    });
  }

  receive(text: string): void {
    const candidate = this.#check(text);
    const awaited = awaitedKeyOf(candidate);
    const isBehind = awaited !== undefined && (this.#queue.length > 0 || this.#connection.agents.hasPending);
    if (isBehind) this.#queue.pushWaiting({ text, ...awaited });
    else this.#queue.push(candidate);
    this.#adjustReading();
  }

  #check(text: string): Refusal | Candidate {
    return checkBeforeSignature(text, this.#authority.known, Date.now(), this.#connection.credentials);
  }

  /**
   * An envelope whose key the registers before it may bring: it is the head, so only their answers may be outstanding. Its text
   * is not looked at before: whatever comes in meanwhile asks again.
   */
  #recheck({ text, keyId, agent }: WaitingEnvelope): Refusal | Candidate | undefined {
    const isDecided = !this.#connection.agents.hasPending || this.#authority.knows(this.#connection, keyId, agent);
    return isDecided ? this.#check(text) : undefined;
  }

  /** Handles the head of the queue; false while it must wait there. */
  #handle(result: Refusal | VerifiedEnvelope): boolean {
    if (this.#preparation.kind !== "idle") return this.#handlePrepared(result as VerifiedEnvelope);
    if (this.#connection.isClosing) return true;
    if (isRefusal(result)) {
      const { code, envelopeId, hint, errors, canonicalSha256, from, signer } = result;
      const details = { envelopeId, detail: detailOf(result), hint, errors, canonicalSha256 };
      this.#refuse(code, details, from, signer && principalOf(signer));
      return true;
    }
    if (isPresence(result)) return this.#handlePresence(result);
    return this.#handlePublication(result);
  }

  #handlePresence(verified: VerifiedEnvelope): boolean {
    const { envelope } = verified;
    if (this.#connection.agents.countWith(envelope.from) > CONNECTION_LIMITS.maxAgentsPerConnection) {
      const detail = `A connection carries at most ${CONNECTION_LIMITS.maxAgentsPerConnection} agents.`;
      this.#refuse("invalid_envelope", { envelopeId: envelope.id, detail }, envelope.from, principalOf(verified));
      return true;
    }
    // Its credential may have ended since it was checked.
    if (verified.credential === undefined && !this.#authority.knows(this.#connection, verified.keyId, envelope.from)) {
      this.#refuse("unknown_key", { envelopeId: envelope.id }, envelope.from, principalOf(verified));
      return true;
    }
    if (!this.#registrar.canTake(this.#connection, envelope.from)) {
      this.#answer(verified, { outcome: "unavailable" });
      return true;
    }
    this.#registrar.requested(this.#connection, verified);
    this.#accept(verified, (acceptance) => {
      this.#registrar.answered(this.#connection, verified, acceptance, (refused) => this.#answer(verified, refused));
      this.#queue.advance();
    });
    return true;
  }

  #handlePublication(verified: VerifiedEnvelope): boolean {
    const { envelope } = verified;
    const { agents } = this.#connection;
    if (!agents.owns(envelope.from)) {
      if (agents.isPending(envelope.from)) return false;
      this.#refuse("not_registered", { envelopeId: envelope.id }, envelope.from, principalOf(verified));
      return true;
    }
    if (this.#acceptor.needsPreparation(verified)) return this.#handlePrepared(verified);
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
    const answer = await this.#acceptor.prepare({ ...verified, principal: principalOf(verified) });
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
      principal: principalOf(verified),
      connection: this.#connection.id,
      isCongested: () => this.#connection.isCongested,
      prepared,
      credential: isPresence(verified) ? this.#authority.keptCredential(this.#connection, verified) : undefined,
      hasNamespace: isPresence(verified) && this.#authority.hasNamespace(verified),
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

  #answer(verified: VerifiedEnvelope, acceptance: Acceptance): void {
    const { envelope } = verified;
    const principal = principalOf(verified);
    if (acceptance.outcome === "accepted" || acceptance.outcome === "duplicate") {
      this.#connection.noteValid(principal, envelope.from);
      if (acceptance.about === "delivery") this.#connection.send(deliveryAck(envelope, acceptance, this.#baseUrl));
    } else if (isNoRoom(acceptance.outcome)) {
      this.#connection.noteValid(principal, envelope.from);
      if (acceptance.outcome === "agents_per_key") this.#keyRefusals.add(labelsOf(principal));
      this.#sendError(acceptance.outcome, { envelopeId: envelope.id, ...NO_ROOM[acceptance.outcome] });
    } else if (acceptance.outcome === "rate_limited") {
      this.#keyRefusals.add(labelsOf(principal));
      const refusal = sessionRefusal(acceptance.limit, acceptance.retryAfterMs, boundsFactorOf(principal));
      this.#sendError("rate_limited", { envelopeId: envelope.id, ...refusal });
    } else if (isWebsocketRefusal(acceptance.outcome)) {
      this.#refuse(acceptance.outcome, { envelopeId: envelope.id }, envelope.from, principal);
    }
  }

  /**
   * @param from the sender that the envelope names, verified or not.
   * @param signer whose signature holds; anybody can write another's key id. Whoever was handed an envelope, by whatever way, can
   * send it again: it counts for its signer only where the connection is the signer's.
   */
  #refuse(code: ErrorCode, details: ErrorDetails, from: string | undefined, signer: Principal | undefined): void {
    const serverTime = code === "clock_skew" ? { serverTime: Date.now() } : {};
    if (signer !== undefined && signer === this.#connection.principal) this.#keyRefusals.add(labelsOf(signer));
    this.#sendError(code, { ...details, ...serverTime });
    if (!this.#authority.isForgiven(this.#connection, code, from)) this.#connection.noteRefusal();
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

/** The key, of which agent, that a register may bring with its credential: the envelope is not to be refused before. */
function awaitedKeyOf(checked: Refusal | Candidate): Omit<WaitingEnvelope, "text"> | undefined {
  if (isRefusal(checked)) {
    const { credentialKey: keyId, from: agent = "" } = checked;
    return keyId === undefined ? undefined : { keyId, agent };
  }
  const { entry, envelope } = checked;
  const isOthers = isCredentialKey(entry.keyId) && !entry.mayAct(envelope.from);
  return isOthers ? { keyId: entry.keyId, agent: envelope.from } : undefined;
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
  return [detail, fields && `${fields}.`].filter((text) => text !== undefined).join(" ") || undefined;
}
