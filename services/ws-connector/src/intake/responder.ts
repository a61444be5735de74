import { partRefusal, sessionRefusal } from "relay-protocol/contract/refusals.ts";
import type { Refusal } from "relay-protocol/intake/refusal.ts";
import type { VerifiedEnvelope } from "relay-protocol/intake/steps.ts";
import type { ErrorCode } from "relay-protocol/wire/errors.ts";
import { HTTP_LIMITS, WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import type { AuditLog } from "relay-runtime/audit-log.ts";
import { type Logger, withoutMessage } from "relay-runtime/logging.ts";
import type { Acceptance } from "relay-window/acceptance/acceptance.ts";
import {
  boundsFactorOf,
  labelsOf,
  type Principal,
  principalNameOf,
  principalOf,
} from "relay-window/limits/principals.ts";
import type { Authority } from "../agents/authority.ts";
import type { Connection } from "../connection/connection.ts";
import { deliveryAck, type ErrorDetails, errorFrame } from "../connection/frames.ts";
import type { PodCounters } from "../metrics.ts";

/** Outcomes that do not count as refusals in a row, because the client may go on with its other agents. */
const NO_ROOM = {
  unavailable: { retryAfterMs: HTTP_LIMITS.unavailableRetryAfterMs },
  over_capacity: { retryAfterMs: WINDOW_LIMITS.memoryRetryAfterMs },
  agents_per_key: {},
} as const;

/**
 * Refusals that a sender could not foresee. They do not count as refusals in a row, because other agents can cause any
 * number of them. For example, a requester replaces its sessions before their decisions come, or a target changes whom
 * it accepts.
 */
const UNFORESEEN: ReadonlySet<ErrorCode> = new Set(["session_closed", "unknown_session", "not_accepted_by_target"]);

/**
 * Answers envelopes with acks and error frames. Counts refusals for the metrics, for the key that signed, and for the
 * connection. Many refusals in a row close the connection. Source: docs/protocol.md#frames, docs/protocol.md#errors.
 */
export class Responder {
  readonly #authority: Authority;
  readonly #counters: Pick<PodCounters, "refusals" | "keyRefusals">;
  readonly #audit: AuditLog;
  readonly #baseUrl: string;
  readonly #logger: Logger;

  /** @param options.baseUrl address of the HTTP surfaces, for links in acks. */
  constructor(options: {
    authority: Authority;
    counters: Pick<PodCounters, "refusals" | "keyRefusals">;
    audit: AuditLog;
    baseUrl: string;
    logger: Logger;
  }) {
    this.#authority = options.authority;
    this.#counters = options.counters;
    this.#audit = options.audit;
    this.#baseUrl = options.baseUrl;
    this.#logger = options.logger;
  }

  /**
   * Answers an envelope after acceptance. The registrar acknowledges presence, because that ack goes with the notices
   * of sessions.
   */
  answer(connection: Connection, verified: VerifiedEnvelope, acceptance: Acceptance): void {
    const { envelope } = verified;
    const principal = principalOf(verified);
    if (acceptance.outcome === "accepted" || acceptance.outcome === "duplicate") {
      connection.noteValid(principal, envelope.from);
      if (acceptance.about === "delivery") connection.send(deliveryAck(envelope, acceptance, this.#baseUrl));
    } else if (isNoRoom(acceptance.outcome)) {
      connection.noteValid(principal, envelope.from);
      if (acceptance.outcome === "agents_per_key") this.#countForKey(principal, acceptance.outcome);
      const texts = "place" in acceptance && acceptance.place !== undefined ? partRefusal(acceptance.place) : {};
      this.#sendError(connection, acceptance.outcome, {
        envelopeId: envelope.id,
        ...NO_ROOM[acceptance.outcome],
        ...texts,
      });
    } else if (acceptance.outcome === "rate_limited") {
      this.#countForKey(principal, acceptance.outcome);
      const refusal = sessionRefusal(acceptance.limit, acceptance.retryAfterMs, boundsFactorOf(principal));
      this.#sendError(connection, "rate_limited", { envelopeId: envelope.id, ...refusal });
    } else if (isWebsocketRefusal(acceptance.outcome)) {
      this.refuse(connection, verified, acceptance.outcome);
    }
  }

  /** Refuses an envelope whose signature is valid. */
  refuse(connection: Connection, verified: VerifiedEnvelope, code: ErrorCode, detail?: string): void {
    const { id: envelopeId, from } = verified.envelope;
    this.#refuse(connection, code, { envelopeId, detail }, from, principalOf(verified));
  }

  /**
   * Refuses a heartbeat whose connection lost the agent after it came in. The refusal does not count, because the
   * client could not know.
   */
  lostSince(connection: Connection, { envelope }: VerifiedEnvelope): void {
    this.#sendError(connection, "not_registered", { envelopeId: envelope.id });
  }

  /** Answers an envelope whose intake failed through a fault of the relay. Logs nothing of the envelope. */
  failed(connection: Connection, envelopeId: string | undefined, err: unknown): void {
    this.#logger.error({ err: withoutMessage(err) }, "the intake of an envelope failed");
    this.#sendError(connection, "internal_error", { envelopeId, retryAfterMs: HTTP_LIMITS.unavailableRetryAfterMs });
  }

  /** Answers an envelope that a step of intake refused. */
  refused(connection: Connection, refusal: Refusal): void {
    const { code, envelopeId, hint, errors, canonicalSha256, from, signer } = refusal;
    const details = { envelopeId, detail: detailOf(refusal), hint, errors, canonicalSha256 };
    this.#refuse(connection, code, details, from, signer && principalOf(signer));
  }

  /**
   * @param from the sender that the envelope names, verified or not.
   * @param signer undefined unless the signature is valid. The refusal counts for the signer only if the connection or
   * its agent belongs to the signer. Any recipient of an envelope can send it again on its own connection.
   */
  #refuse(
    connection: Connection,
    code: ErrorCode,
    details: ErrorDetails,
    from: string | undefined,
    signer: Principal | undefined,
  ): void {
    const serverTime = code === "clock_skew" ? { serverTime: Date.now() } : {};
    if (signer !== undefined && this.#isUsedBy(connection, signer, from)) this.#countForKey(signer, code);
    this.#sendError(connection, code, { ...details, ...serverTime });
    if (UNFORESEEN.has(code) || this.#authority.isForgiven(connection, code, from)) return;
    connection.noteRefusal();
  }

  #isUsedBy(connection: Connection, signer: Principal, agent = ""): boolean {
    if (signer === connection.principal) return true;
    const owned = connection.agents.ownedAgent(agent);
    return owned !== null && this.#authority.principalOfAgent(connection, owned.key, agent).principal === signer;
  }

  #countForKey(principal: Principal, code: ErrorCode): void {
    this.#counters.keyRefusals.add(labelsOf(principal));
    this.#audit.refused(principalNameOf(principal), code);
  }

  #sendError(connection: Connection, code: ErrorCode, details: ErrorDetails): void {
    this.#counters.refusals.add(code);
    connection.send(errorFrame(code, details));
  }
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
