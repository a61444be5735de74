import { envelopeIdOf, isRefusal, type Refusal } from "relay-protocol/intake/refusal.ts";
import { type Candidate, checkBeforeSignature, decode, type VerifiedEnvelope } from "relay-protocol/intake/steps.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Distribution } from "relay-runtime/metrics/service-metrics.ts";
import type { TraceSpan } from "relay-runtime/tracing/span.ts";
import type { Tracing } from "relay-runtime/tracing/tracing.ts";
import type { EnvelopeVerifier } from "relay-runtime/verification/envelope-verifier.ts";
import { type Acceptance, type AcceptanceItem, type Prepared, UNDONE } from "relay-window/acceptance/acceptance.ts";
import { type Acceptor, outcomeAttributes } from "relay-window/acceptance/acceptor.ts";
import { principalOf } from "relay-window/limits/principals.ts";
import type { HeartbeatAnswer } from "relay-window/presence/heartbeat-writer.ts";
import type { Authority } from "../agents/authority.ts";
import { CongestionFlag } from "../agents/congestion.ts";
import { type Heartbeats, type IntakeBatch, mayBeHeartbeat } from "../agents/heartbeats.ts";
import type { OwnedAgent } from "../agents/ownership.ts";
import type { Registrar } from "../agents/registrar.ts";
import type { Connection } from "../connection/connection.ts";
import type { DecisionRepeats } from "./decision-repeats.ts";
import type { Responder } from "./responder.ts";
import {
  type About,
  type Arrival,
  awaitedKeyOf,
  VerificationQueue,
  type WaitingEnvelope,
} from "./verification-queue.ts";

/** Most envelopes of one connection in flight. Above this the pod does not read its socket. */
const MAX_IN_FLIGHT = 256;

/** The parts that all intakes of a pod share. */
export interface IntakeParts {
  readonly verifier: EnvelopeVerifier;
  readonly authority: Authority;
  readonly acceptor: Acceptor;
  readonly decisionRepeats: DecisionRepeats;
  readonly registrar: Registrar;
  readonly heartbeats: Heartbeats;
  readonly batch: IntakeBatch;
  readonly tracing: Tracing;
  readonly responder: Responder;
  readonly acks: Pick<Distribution, "observe">;
}

/**
 * Intake of one connection: decode … authority (the steps shared with the self-test) → ownership → acceptance → ack.
 * When the connection closes, the pod discards envelopes in flight, except a session decision that may be in effect.
 * Source: docs/protocol.md#frames.
 */
class Intake {
  readonly #connection: Connection;
  readonly #parts: IntakeParts;
  readonly #queue: VerificationQueue;
  #accepting = 0;
  /** The answer to the preparation of the head of the queue, or null until it comes. Undefined without preparation. */
  #preparation: Prepared | Acceptance | null | undefined;
  /** When the envelope at the head of the queue came in, monotonic ms. */
  #headCameAt = 0;

  constructor(connection: Connection, parts: IntakeParts) {
    this.#connection = connection;
    this.#parts = parts;
    this.#queue = new VerificationQueue({
      verifier: parts.verifier,
      handle: (result, arrival) => this.#handle(result, arrival),
      recheck: (waiting) => this.#recheck(waiting),
      failed: (about, err) => this.#failed(about, err),
      advanced: () => this.#adjustReading(),
    });
  }

  /**
   * Never throws. It answers a fault with `internal_error`, and no other connection notices. @param cameAt monotonic
   * ms.
   */
  receive(text: string, cameAt: number): void {
    this.#guard(text, () => this.#receive(text, cameAt));
    this.#adjustReading();
  }

  #receive(text: string, cameAt: number): void {
    const candidate = this.#check(text);
    const { from = "" } = isRefusal(candidate) ? candidate : candidate.envelope;
    const arrival = { cameAt, wasOwned: this.#connection.agents.owns(from) };
    const awaited = awaitedKeyOf(candidate);
    const isBehind = awaited !== undefined && (this.#queue.length > 0 || this.#connection.agents.hasPending);
    if (isBehind) this.#queue.pushWaiting({ text, ...awaited }, arrival);
    else this.#queue.push(candidate, arrival);
  }

  #check(text: string): Refusal | Candidate {
    return checkBeforeSignature(text, this.#parts.authority.known, Date.now(), this.#connection);
  }

  /**
   * Checks an envelope whose key an earlier register may bring. The envelope is the head of the queue, so only answers
   * to registers can be missing. Until they come, the check stays cheap, because every text that comes in calls this
   * again.
   */
  #recheck({ text, keyId, agent }: WaitingEnvelope): Refusal | Candidate | undefined {
    const isDecided =
      !this.#connection.agents.hasPending || this.#parts.authority.knows(this.#connection, keyId, agent);
    return isDecided ? this.#check(text) : undefined;
  }

  /** Handles the head of the queue. @returns false while it must wait there. */
  #handle(result: Refusal | VerifiedEnvelope, arrival: Arrival): boolean {
    // Before `isClosing`: once asked, the session's partition may have decided, and the requester must hear of it.
    if (this.#preparation !== undefined) return this.#handlePrepared(result as VerifiedEnvelope, this.#preparation);
    this.#headCameAt = arrival.cameAt;
    if (this.#connection.isClosing) return true;
    if (isRefusal(result)) {
      this.#parts.responder.refused(this.#connection, result);
      return true;
    }
    if (!isPresence(result)) return this.#handlePublication(result);
    this.#handlePresence(result, arrival);
    return true;
  }

  #handlePresence(verified: VerifiedEnvelope, { cameAt, wasOwned }: Arrival): void {
    const { envelope } = verified;
    const { agents } = this.#connection;
    const isHeartbeat = verified.kind === "heartbeat";
    // The client lost the agent after it sent this, and has not registered it again since.
    if (isHeartbeat && wasOwned && !agents.owns(envelope.from) && !agents.isPending(envelope.from)) {
      this.#parts.responder.lostSince(this.#connection, verified);
      return;
    }
    if (agents.countWith(envelope.from) > CONNECTION_LIMITS.maxAgentsPerConnection) {
      const detail = `A connection carries at most ${CONNECTION_LIMITS.maxAgentsPerConnection} agents.`;
      this.#parts.responder.refuse(this.#connection, verified, "invalid_envelope", detail);
      return;
    }
    // Its credential may have ended since it was checked.
    if (
      verified.credential === undefined &&
      !this.#parts.authority.knows(this.#connection, verified.keyId, envelope.from)
    ) {
      this.#parts.responder.refuse(this.#connection, verified, "unknown_key");
      return;
    }
    const canTake = this.#parts.registrar.canTake(this.#connection, envelope.from);
    if (!canTake || this.#parts.registrar.awaitsRelease(this.#connection, verified)) {
      this.#answer(verified, UNDONE);
      return;
    }
    const owned = isHeartbeat ? agents.confirmed(envelope.from) : null;
    if (owned?.key === verified.key) this.#gather(verified, owned, cameAt);
    else this.#acceptPresence(verified, { wasOwned, isPaid: false });
  }

  /** A heartbeat that changes only the time at which its agent was last heard needs no answer at once. */
  #gather(verified: VerifiedEnvelope, { epoch }: OwnedAgent, heardAt: number): void {
    // The heartbeat ends a row of refusals in the order of arrival, not when it is written.
    this.#connection.noteValid(principalOf(verified), verified.envelope.from);
    this.#noteSigner(verified);
    const flag = new CongestionFlag(this.#connection);
    const heartbeat = {
      item: this.#itemOf(verified, flag),
      connection: this.#connection,
      epoch,
      heardAt,
      answered: (answer: HeartbeatAnswer) => {
        this.#accepting -= 1;
        flag.settled();
        this.#guard(verified, () => this.#heard(verified, answer));
        this.#adjustReading();
      },
    };
    this.#accepting += 1;
    try {
      this.#parts.heartbeats.gather(heartbeat);
    } catch (err) {
      this.#accepting -= 1;
      throw err;
    }
  }

  #heard(verified: VerifiedEnvelope, answer: HeartbeatAnswer): void {
    if (answer === null) this.#acceptAfterAll(verified);
    else
      this.#parts.registrar.heard(this.#connection, verified, answer, (refused) =>
        this.#answerOwned(verified, refused),
      );
  }

  /** If the connection lost the agent after the heartbeat came in, the heartbeat does not take the agent back. */
  #acceptAfterAll(verified: VerifiedEnvelope): void {
    const { from } = verified.envelope;
    if (this.#connection.isClosing) return;
    if (!this.#connection.agents.owns(from)) this.#parts.responder.lostSince(this.#connection, verified);
    else if (!this.#parts.registrar.canTake(this.#connection, from)) this.#answer(verified, UNDONE);
    else this.#acceptPresence(verified, { wasOwned: true, isPaid: true });
  }

  /** @param options.isPaid true if the signer has paid for the envelope. */
  #acceptPresence(verified: VerifiedEnvelope, { wasOwned, isPaid }: { wasOwned: boolean; isPaid: boolean }): void {
    const { key, envelope } = verified;
    const { agents } = this.#connection;
    const refuse = (refused: Acceptance) =>
      wasOwned ? this.#answerOwned(verified, refused) : this.#answer(verified, refused);
    const answer = (acceptance: Acceptance) => {
      const isApplied = this.#guard(verified, () => {
        // The signer does not pay if another client repeats its register.
        if (!isPaid && "epoch" in acceptance && acceptance.epoch !== null) this.#noteSigner(verified);
        this.#parts.registrar.answered(this.#connection, verified, acceptance, refuse);
      });
      // The agent's route may lead here.
      if (!isApplied) agents.apply(envelope.from, { kind: "unanswered", key });
      this.#queue.advance();
    };
    try {
      this.#parts.registrar.requested(this.#connection, verified);
      this.#accept(verified, answer);
    } catch (err) {
      agents.apply(envelope.from, { kind: "not_granted" });
      throw err;
    }
  }

  /** Answers a heartbeat of an agent that the connection owned when it came in. */
  #answerOwned(verified: VerifiedEnvelope, acceptance: Acceptance): void {
    if (acceptance.outcome === "not_registered") this.#parts.responder.lostSince(this.#connection, verified);
    else this.#answer(verified, acceptance);
  }

  #handlePublication(verified: VerifiedEnvelope): boolean {
    const { envelope } = verified;
    const { agents } = this.#connection;
    if (!agents.owns(envelope.from)) {
      if (agents.isPending(envelope.from)) return false;
      this.#parts.responder.refuse(this.#connection, verified, "not_registered");
      return true;
    }
    this.#noteSigner(verified);
    if (this.#parts.acceptor.needsPreparation(verified)) {
      void this.#prepare(verified);
      return false;
    }
    this.#publish(verified);
    return true;
  }

  /** If its trace is sampled, a span covers the time from arrival to answer. */
  #publish(verified: VerifiedEnvelope, prepared?: Prepared): void {
    const span = this.#parts.tracing.isOn ? this.#beginSend(verified) : undefined;
    const answer = (acceptance: Acceptance) => {
      this.#answer(verified, acceptance);
      span?.end(outcomeAttributes(acceptance));
    };
    this.#accept(verified, answer, { prepared, span });
  }

  #beginSend({ kind }: VerifiedEnvelope): TraceSpan | undefined {
    const attributes = { "agent_relay.kind": kind };
    return this.#parts.tracing.begin("send", { kind: "server", startedAt: this.#headCameAt, attributes });
  }

  /**
   * A session decision takes effect in the session's partition before its acceptance. Over several partitions the other
   * partitions count a session.request before. The queue waits, so that nothing overtakes the envelope. Source:
   * docs/protocol.md#sessions.
   */
  async #prepare(verified: VerifiedEnvelope): Promise<void> {
    this.#preparation = null;
    this.#preparation = await this.#parts.acceptor.prepare({ ...verified, principal: principalOf(verified) });
    this.#queue.advance();
  }

  #handlePrepared(verified: VerifiedEnvelope, preparation: Prepared | Acceptance | null): boolean {
    if (preparation === null) return false;
    this.#preparation = undefined;
    if ("outcome" in preparation) this.#answer(verified, preparation);
    else this.#publish(verified, preparation);
    return true;
  }

  #accept(
    verified: VerifiedEnvelope,
    done: (acceptance: Acceptance) => void,
    { prepared, span }: Pick<AcceptanceItem, "prepared" | "span"> = {},
  ): void {
    const flag = isPresence(verified) ? new CongestionFlag(this.#connection) : undefined;
    const cameAt = this.#headCameAt;
    const item = { ...this.#itemOf(verified, flag), prepared, span };
    // `accept` throws, or it calls `done` in a later turn of the event loop.
    this.#parts.acceptor.accept({
      ...item,
      // A decision at this point is in effect, and must reach its requester.
      abandoned: () => this.#connection.isClosing && verified.kind !== "session_decision",
      done: (acceptance) => {
        this.#accepting -= 1;
        flag?.settled();
        const isUnanswered = acceptance.outcome === "unavailable";
        if (isUnanswered && prepared?.kind === "decision") this.#parts.decisionRepeats.keep(item, performance.now());
        const isAnswered = this.#guard(verified, () => done(acceptance));
        const isAcked = isAnswered && "about" in acceptance && verified.kind !== "heartbeat";
        if (isAcked) this.#parts.acks.observe((performance.now() - cameAt) / 1000);
        this.#adjustReading();
      },
    });
    this.#accepting += 1;
  }

  /** @param flag only for a register or heartbeat. */
  #itemOf(verified: VerifiedEnvelope, flag?: CongestionFlag): Omit<AcceptanceItem, "done"> {
    return {
      envelope: verified.envelope,
      kind: verified.kind,
      text: verified.text,
      origin: "websocket",
      principal: principalOf(verified),
      connection: this.#connection.id,
      isCongested: flag && (() => flag.carry()),
      credential: flag && this.#parts.authority.keptCredential(this.#connection, verified),
      acceptFrom: flag && this.#connection.agents.ownedAgent(verified.envelope.from)?.acceptFrom,
      hasNamespace: flag !== undefined && this.#parts.authority.hasNamespace(verified),
      isWithinPrincipal: verified.kind === "session_request" && this.#parts.authority.speaksForTarget(verified),
    };
  }

  #answer(verified: VerifiedEnvelope, acceptance: Acceptance): void {
    this.#parts.responder.answer(this.#connection, verified, acceptance);
  }

  /**
   * Called only for an agent of this connection. Otherwise a recipient could send the envelope again and make its
   * signer pay.
   */
  #noteSigner(verified: VerifiedEnvelope): void {
    this.#connection.noteSigner(principalOf(verified), verified.envelope.from, verified.text);
  }

  #guard(about: About, work: () => void): boolean {
    try {
      work();
      return true;
    } catch (err) {
      this.#failed(about, err);
      return false;
    }
  }

  #failed(about: About, err: unknown): void {
    this.#parts.responder.failed(this.#connection, idOf(about), err);
  }

  /** Pauses or resumes the connection, and ends this intake when nothing is in flight. */
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

/** The id of an envelope, or undefined if it cannot be read. */
function idOf(about: About): string | undefined {
  if (typeof about !== "string") return isRefusal(about) ? about.envelopeId : about.envelope.id;
  try {
    const decoded = decode(about);
    return isRefusal(decoded) ? undefined : envelopeIdOf(decoded.value);
  } catch {
    return undefined;
  }
}

/**
 * Takes in one text frame of a connection. Heartbeats wait for each other. A silent connection has no intake, and most
 * connections are silent.
 */
export function createIntake(parts: IntakeParts): (connection: Connection, text: string) => void {
  const { batch } = parts;
  return (connection, text) => {
    const cameAt = performance.now();
    const takeIn = () => {
      connection.intake ??= new Intake(connection, parts);
      connection.intake.receive(text, cameAt);
    };
    // An unregistered connection has its turn now, and the scheduler measures the time of the turn.
    if (connection.principal === undefined) takeIn();
    else if (mayBeHeartbeat(text)) batch.add(takeIn);
    else {
      // Texts of a connection keep their order, and heartbeats of this one may wait.
      batch.flush();
      takeIn();
    }
  };
}
