import { type ErrorCode, RelayError } from "./errors.ts";
import { GATEWAY_KEY_PREFIX } from "./gateway-keys.ts";
import { requestDigest } from "./receipts/receipt.ts";
import { isSessionOf } from "./receipts/session-of.ts";
import type { SessionRecords } from "./receipts/session-records.ts";
import type { ReplayGuard } from "./replay-guard.ts";
import { isSealed, type OpeningKeys, openPayload } from "./sealing/sealed-payload.ts";
import type { SenderVerifier, Verdict } from "./sender-verifier.ts";
import { sessionIdOf } from "./session-id.ts";
import type { Delivery, Envelope } from "./types.ts";

export interface DeliveryJudgeOptions {
  readonly agent: string;
  readonly verifier: SenderVerifier;
  readonly replayGuard: ReplayGuard;
  readonly requireVerified: boolean;
  readonly sealingKeys: OpeningKeys;
  readonly sessions: SessionRecords;
}

/** An envelope that a relay says is for this agent. */
export interface IncomingEnvelope {
  readonly envelope: Envelope;
  /** What the relay says. */
  readonly sessionId: string | undefined;
  /** Epoch milliseconds, by this machine's clock. */
  readonly receivedAt: number;
}

/** A delivery, before it can be replied to. */
export type ReceivedDelivery = Omit<Delivery, "reply">;

/** Tells whether an envelope is for this agent, of now, new, and whose; and opens what is sealed. */
export class DeliveryJudge {
  readonly #options: DeliveryJudgeOptions;

  constructor(options: DeliveryJudgeOptions) {
    this.#options = options;
  }

  /** The delivery, or why it is dropped; undefined for a repeat. Never rejects. Those of one sender one after the other. */
  async judge({
    envelope,
    sessionId: told,
    receivedAt,
  }: IncomingEnvelope): Promise<ReceivedDelivery | RelayError | undefined> {
    const { agent, verifier, replayGuard, requireVerified } = this.#options;
    if (envelope.to !== agent) return drop("misdirected_delivery", envelope);
    if (replayGuard.isReused(envelope)) return drop("reused_id", envelope);
    if (replayGuard.isRepeat(envelope)) return undefined;
    const { canJudge } = replayGuard;
    if (replayGuard.isStale(envelope)) return drop(canJudge ? "stale_delivery" : "clock_untrusted", envelope);

    const signer = await verifier.check(envelope);
    if (signer === "forged") return drop("forged_delivery", envelope);
    if (requireVerified && !verifier.isVerified(signer, envelope)) return unverified(envelope);
    if (requireVerified && !canJudge) return drop("clock_untrusted", envelope);
    const verdict = canJudge ? signer : UNVERIFIED;
    const opened = await this.#open(envelope, verdict);
    if (opened === undefined) return drop("unopenable_delivery", envelope);
    const sessionId = sessionOf(envelope, told);
    if (!(await canBeIn(sessionId, envelope))) return drop("misnamed_session", envelope);

    replayGuard.remember(envelope);
    if (sessionId !== undefined) await this.#keep(sessionId, envelope, verdict);
    const { from, type } = envelope;
    const { verified } = verdict;
    const issuer = "issuer" in verdict && { issuer: verdict.issuer };
    const ids = {
      ...(sessionId && { sessionId }),
      ...(envelope.task_id !== undefined && { taskId: envelope.task_id }),
    };
    return { envelope, ...ids, from, type, ...opened, verified, ...issuer, receivedAt };
  }

  /** Undefined for what does not open, or comes from nobody whom this agent believes. */
  async #open(
    envelope: Envelope,
    { verified }: Judged,
  ): Promise<Pick<ReceivedDelivery, "payload" | "sealed"> | undefined> {
    const { payload } = envelope;
    if (!isSealed(payload)) return { payload, sealed: false };
    const opened = verified === "agent" ? await openPayload(envelope, this.#options.sealingKeys) : undefined;
    return opened && { payload: opened, sealed: true };
  }

  async #keep(sessionId: string, envelope: Envelope, verdict: Judged): Promise<void> {
    if (verdict.verified !== "agent" && verdict.verified !== "relay_issuer") return;
    const credential = "credential" in verdict ? verdict.credential : undefined;
    await this.#options.sessions.keep(sessionId, envelope, credential);
  }
}

type Judged = Exclude<Verdict, "forged">;

const UNVERIFIED: Judged = { verified: "unverified" };

/** A decision names its session in the signed payload; the session of a request is named by the relay. */
function sessionOf({ type, payload }: Envelope, told: string | undefined): string | undefined {
  const isDecision = type === "session.approve" || type === "session.reject";
  return isDecision ? sessionIdOf(payload.session_id) : told;
}

/** What a request asks for is decided under the id of its session: a relay could have another request decided by it. */
async function canBeIn(sessionId: string | undefined, envelope: Envelope): Promise<boolean> {
  if (envelope.type !== "session.request" || sessionId === undefined) return true;
  return isSessionOf(sessionId, await requestDigest(envelope));
}

/** Says whose message it was, as its sender or the gateway says, and under which key, so that somebody can decide to pin it. */
function unverified({ id, from, key_id }: Envelope): RelayError {
  const isGateways = key_id.startsWith(GATEWAY_KEY_PREFIX);
  const message = isGateways
    ? `A message of ${from} came over HTTP, signed by a gateway whose key (${key_id}) is not pinned here; it was dropped.`
    : `Nothing that is pinned here vouches for the key (${key_id}) of a delivery of ${from}; it was dropped.`;
  const hint = isGateways
    ? "Name that key id in trust.gateways, if the gateway is to be believed of whose API key it saw."
    : "Pin the sender's key in trust.keys, or its issuer in trust.issuers.";
  return new RelayError("unverified_delivery", { envelopeId: id, message, hint });
}

function drop(code: ErrorCode, { id }: Envelope): RelayError {
  return new RelayError(code, { envelopeId: id });
}
