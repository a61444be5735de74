import type { ErrorCode } from "@agent-relay/shared/contract/errors.ts";
import { CONNECTION_LIMITS, HTTP_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { decode } from "@agent-relay/shared/intake/decode.ts";
import { isRefusal, type Refusal, refuse } from "@agent-relay/shared/intake/refusal.ts";
import { inspect, type VerifiedEnvelope } from "@agent-relay/shared/intake/steps.ts";
import type { Tally } from "@agent-relay/shared/metrics/service-metrics.ts";
import type { KeyStore } from "@agent-relay/shared/signing/key-store.ts";
import type { Verifier } from "@agent-relay/shared/signing/verifier.ts";
import type { Acceptance, AcceptanceItem } from "@agent-relay/shared/window/acceptance.ts";
import type { Acceptor } from "@agent-relay/shared/window/acceptor.ts";
import type { Connection } from "./connection.ts";
import { deliveryAck, type ErrorDetails, errorFrame } from "./frames.ts";
import { Lane } from "./lane.ts";
import type { Registrar } from "./registrar.ts";

/** Envelopes of one connection under way at once; beyond that its socket is not read. */
const MAX_UNDER_WAY = 256;

interface Decision {
  readonly of: VerifiedEnvelope;
  outcome: Acceptance | null | undefined;
}

/** What intake works with, the same for all connections of the pod. */
export interface IntakeDependencies {
  readonly keys: KeyStore;
  readonly verifier: Verifier;
  readonly acceptor: Acceptor;
  readonly registrar: Registrar;
  /** Error frames sent, by code. */
  readonly refusals: Tally;
}

/** Takes in one text frame. Most connections are silent most of the time, and have no intake then. */
export function takeIn(connection: Connection, text: string, dependencies: IntakeDependencies): void {
  connection.intake ??= new Intake(connection, dependencies);
  connection.intake.receive(text);
}

/**
 * Intake of one connection: rate → decode … authority (the shared steps) → ownership → acceptance → ack.
 * What finishes after its connection closed is discarded. Source: protocol, section 6.
 */
export class Intake {
  readonly #connection: Connection;
  readonly #keys: KeyStore;
  readonly #acceptor: Acceptor;
  readonly #registrar: Registrar;
  readonly #refusals: Tally;
  readonly #lane: Lane;
  #accepting = 0;
  #paused = false;
  /** The decision at the head of the lane; its outcome is undefined until the session's partition has answered. */
  #decision: Decision | undefined;

  constructor(connection: Connection, { keys, verifier, acceptor, registrar, refusals }: IntakeDependencies) {
    this.#connection = connection;
    this.#keys = keys;
    this.#acceptor = acceptor;
    this.#registrar = registrar;
    this.#refusals = refusals;
    this.#lane = new Lane(
      verifier,
      (result) => this.#take(result),
      () => this.#regulate(),
    );
  }

  /** Takes in one text frame. */
  receive(text: string): void {
    const retryAfterMs = this.#connection.takeToken();
    if (retryAfterMs > 0) this.#limit(text, retryAfterMs);
    else this.#lane.push(inspect(text, this.#keys.ring, Date.now()));
    this.#regulate();
  }

  /** Handles the head of the lane; false while it must wait. */
  #take(result: Refusal | VerifiedEnvelope): boolean {
    if (this.#connection.isClosing && !this.#isDeciding(result)) return true;
    if (isRefusal(result)) {
      this.#refuse(result.code, { envelopeId: result.envelopeId, detail: detailOf(result) });
      return true;
    }
    if (result.kind === "register" || result.kind === "heartbeat") return this.#takePresence(result);
    return this.#takePublication(result);
  }

  #takePresence(verified: VerifiedEnvelope): boolean {
    const { envelope } = verified;
    const { agents } = this.#connection;
    if (agents.countWith(envelope.from) > CONNECTION_LIMITS.maxAgentsPerConnection) {
      const detail = `A connection carries at most ${CONNECTION_LIMITS.maxAgentsPerConnection} agents.`;
      this.#refuse("invalid_envelope", { envelopeId: envelope.id, detail });
      return true;
    }
    if (!this.#registrar.canTakeAgents) {
      this.#answer(verified, { outcome: "unavailable" });
      return true;
    }
    agents.begin(envelope.from);
    this.#accept(verified, (acceptance) => {
      this.#registrar.settle(this.#connection, verified, acceptance, (refused) => this.#answer(verified, refused));
      this.#lane.drain();
    });
    return true;
  }

  #takePublication(verified: VerifiedEnvelope): boolean {
    const { envelope, kind } = verified;
    const { agents } = this.#connection;
    if (!agents.owns(envelope.from) && !this.#isDeciding(verified)) {
      if (agents.isUnderWay(envelope.from)) return false;
      this.#refuse("not_registered", { envelopeId: envelope.id });
      return true;
    }
    if (kind === "session_decision" && !this.#isDecided(verified)) return false;
    const refused = this.#decision?.outcome ?? null;
    this.#decision = undefined;
    if (refused !== null) this.#answer(verified, refused);
    else this.#accept(verified, (acceptance) => this.#answer(verified, acceptance));
    return true;
  }

  /** True for a decision that the session's partition has: it may be in effect, and its requester must hear of it. */
  #isDeciding(result: Refusal | VerifiedEnvelope): boolean {
    return this.#decision?.of === result;
  }

  /** The session's partition decides first; the lane waits, so that nothing overtakes the decision. */
  #isDecided(verified: VerifiedEnvelope): boolean {
    if (this.#decision?.of === verified) return this.#decision.outcome !== undefined;
    const decision: Decision = { of: verified, outcome: undefined };
    this.#decision = decision;
    void this.#acceptor.decide(verified.envelope).then((outcome) => {
      decision.outcome = outcome;
      this.#lane.drain();
    });
    return false;
  }

  #accept(verified: VerifiedEnvelope, done: (acceptance: Acceptance) => void): void {
    this.#accepting += 1;
    const item: AcceptanceItem = {
      envelope: verified.envelope,
      kind: verified.kind,
      text: verified.text,
      origin: "websocket",
      connection: this.#connection.id,
      abandoned: () => this.#connection.isClosing && verified.kind !== "session_decision",
      done: (acceptance) => {
        this.#accepting -= 1;
        done(acceptance);
        this.#regulate();
      },
    };
    this.#acceptor.accept(item);
  }

  #answer({ envelope }: VerifiedEnvelope, acceptance: Acceptance): void {
    if (acceptance.outcome === "accepted" || acceptance.outcome === "duplicate") {
      this.#connection.noteValid();
      if (acceptance.about === "delivery") this.#connection.send(deliveryAck(envelope, acceptance));
    } else if (acceptance.outcome === "unavailable") {
      this.#connection.noteValid();
      const retryAfterMs = HTTP_LIMITS.unavailableRetryAfterMs;
      this.#sendError("unavailable", { envelopeId: envelope.id, retryAfterMs });
    } else if (isWebsocketRefusal(acceptance.outcome)) {
      this.#refuse(acceptance.outcome, { envelopeId: envelope.id });
    }
  }

  #refuse(code: ErrorCode, details: ErrorDetails): void {
    const serverTime = code === "clock_skew" ? { serverTime: Date.now() } : {};
    this.#sendError(code, { ...details, ...serverTime });
    this.#connection.noteRefusal();
  }

  /** Over the rate the frame is read for its id only. A limit is no refusal: the envelope may come again. */
  #limit(text: string, retryAfterMs: number): void {
    const decoded = decode(text);
    const { envelopeId } = isRefusal(decoded) ? {} : refuse("rate_limited", decoded.value);
    this.#sendError("rate_limited", { envelopeId, retryAfterMs });
  }

  #sendError(code: ErrorCode, details: ErrorDetails): void {
    this.#refusals.add(code);
    this.#connection.send(errorFrame(code, details));
  }

  #regulate(): void {
    const underWay = this.#lane.length + this.#accepting;
    if (underWay === 0) this.#connection.intake = undefined;
    const isFull = underWay > MAX_UNDER_WAY;
    if (isFull === this.#paused) return;
    this.#paused = isFull;
    if (isFull) this.#connection.pause();
    else this.#connection.resume();
  }
}

function isWebsocketRefusal(outcome: Acceptance["outcome"]): outcome is Extract<Acceptance["outcome"], ErrorCode> {
  return outcome !== "abandoned" && outcome !== "replayed" && outcome !== "reused";
}

function detailOf({ detail, errors }: Refusal): string | undefined {
  const fields = errors?.map(({ field, message }) => `${field}: ${message}`).join("; ");
  return [detail, fields].filter((text) => text !== undefined).join(" ") || undefined;
}
