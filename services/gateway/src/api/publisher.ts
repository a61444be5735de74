import { createHmac, randomFillSync } from "node:crypto";
import { ServiceError, sessionRefusal } from "relay-protocol/contract/refusals.ts";
import { canonicalJson, canonicalText } from "relay-protocol/signing/canonical.ts";
import type { JsonObject, UnsignedEnvelope } from "relay-protocol/wire/envelope.ts";
import { crockford } from "relay-protocol/wire/ids.ts";
import { ENVELOPE_LIMITS, WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import type { TraceSpan } from "relay-runtime/tracing/span.ts";
import type { Acceptance, AcceptanceItem, Claim, FirstAnswer } from "relay-window/acceptance/acceptance.ts";
import type { Acceptor } from "relay-window/acceptance/acceptor.ts";
import { principalOfApiKey } from "relay-window/limits/principals.ts";
import { OutOfReachError, unavailable } from "relay-window/redis/redis-calls.ts";
import { type AuthenticatedRequest, unauthorized } from "./authentication.ts";
import type { GatewayKey } from "./gateway-key.ts";

/** The envelope that an endpoint wants sent for its request. */
interface EnvelopeContent {
  readonly kind: Extract<AcceptanceItem["kind"], "message" | "session_request">;
  readonly type: string;
  readonly payload: JsonObject;
}

/** What was accepted, now or by the first request with the same Idempotency-Key. */
interface PublishedEnvelope {
  readonly first: FirstAnswer;
  readonly replayed: boolean;
}

/**
 * Makes and signs the envelope of a request, and publishes it once for each Idempotency-Key.
 * Source: docs/protocol.md#gateway-signing, docs/protocol.md#http.
 */
export class EnvelopePublisher {
  readonly #gatewayKey: GatewayKey;
  readonly #acceptor: Acceptor;
  readonly #contact: string | undefined;
  /** Digests of the claims whose first request this gateway has not answered yet. */
  readonly #inProgress = new Set<string>();

  constructor(options: {
    readonly gatewayKey: GatewayKey;
    readonly acceptor: Acceptor;
    /** RELAY_CONTACT. */
    readonly contact: string | undefined;
  }) {
    this.#gatewayKey = options.gatewayKey;
    this.#acceptor = options.acceptor;
    this.#contact = options.contact;
  }

  /**
   * @param span of the request, where its trace is sampled.
   * @throws ServiceError `frame_too_large`, `api_key_not_allowed_for_sender`, `idempotency_in_progress`,
   * `idempotency_key_reused`, `not_accepted_by_target`, `rate_limited` for a session, `over_capacity` or `unavailable`.
   */
  async publish(
    request: AuthenticatedRequest<{ readonly from: string; readonly to: string }>,
    content: EnvelopeContent,
    span?: TraceSpan,
  ): Promise<PublishedEnvelope> {
    const { from, to } = request.body;
    const envelope = makeEnvelope(this.#gatewayKey.keyId, from, to, content);
    const canonical = canonicalText(envelope);
    if (Buffer.byteLength(canonical) > ENVELOPE_LIMITS.maxFrameBytes) throw new ServiceError("frame_too_large");
    if (!request.apiKey.mayAct(from)) throw unauthorized("api_key_not_allowed_for_sender", this.#contact);

    const principal = principalOfApiKey(request.apiKey.id);
    const isWithinPrincipal = request.apiKey.mayAct(to);
    const unsigned = { envelope, canonical, kind: content.kind, principal, isWithinPrincipal, span };
    const claim = claimOf(request);
    if (claim === undefined) return await this.#accept(unsigned);
    if (this.#inProgress.has(claim.digest)) throw new ServiceError("idempotency_in_progress");
    this.#inProgress.add(claim.digest);
    try {
      return await this.#accept({ ...unsigned, claim });
    } finally {
      this.#inProgress.delete(claim.digest);
    }
  }

  async #accept({ canonical, ...unsigned }: Unsigned): Promise<PublishedEnvelope> {
    const item = { ...unsigned, text: this.#gatewayKey.sign(canonical), origin: "gateway", connection: "" } as const;
    const prepared = this.#acceptor.needsPreparation(item) ? await this.#acceptor.prepare(item) : undefined;
    if (prepared !== undefined && "outcome" in prepared) return publishedEnvelope(item.envelope.id, prepared);
    const acceptance = await new Promise<Acceptance>((done) => {
      this.#acceptor.accept({ ...item, prepared, done });
    });
    return publishedEnvelope(item.envelope.id, acceptance);
  }
}

interface Unsigned
  extends Pick<AcceptanceItem, "principal" | "claim" | "isWithinPrincipal" | "span">,
    Pick<EnvelopeContent, "kind"> {
  readonly envelope: UnsignedEnvelope;
  readonly canonical: string;
}

function makeEnvelope(keyId: string, from: string, to: string, { type, payload }: EnvelopeContent): UnsignedEnvelope {
  return { id: newEnvelopeId(), type, from, to, payload, ts: Date.now(), key_id: keyId };
}

/** Both digests are keyed by the API key, which Redis never sees: a reader of Redis cannot guess bodies. */
function claimOf({ apiKeyText, surface, idempotencyKey, body }: AuthenticatedRequest<unknown>): Claim | undefined {
  if (idempotencyKey === undefined) return undefined;
  const digest = (text: string) => createHmac("sha256", apiKeyText).update(text).digest("base64url");
  return {
    digest: digest(`idempotency-key\n${surface}\n${idempotencyKey}`),
    bodyDigest: digest(`body\n${canonicalJson(body)}`),
  };
}

function publishedEnvelope(envelopeId: string, acceptance: Acceptance): PublishedEnvelope {
  if (acceptance.outcome === "replayed") return { first: acceptance.first, replayed: true };
  if (acceptance.outcome === "rate_limited") {
    throw new ServiceError("rate_limited", sessionRefusal(acceptance.limit, acceptance.retryAfterMs));
  }
  if (acceptance.outcome === "reused") throw new ServiceError("idempotency_key_reused");
  if (acceptance.outcome === "not_accepted_by_target") throw new ServiceError("not_accepted_by_target");
  if (acceptance.outcome === "over_capacity") {
    throw new ServiceError("over_capacity", { retryAfterMs: WINDOW_LIMITS.memoryRetryAfterMs });
  }
  // Anything else is the relay's own fault: Redis, or a part of it, is not reachable, or the gateway's clock is wrong.
  if (acceptance.outcome === "unavailable" && acceptance.place !== undefined)
    throw new OutOfReachError(acceptance.place);
  if (!("about" in acceptance) || acceptance.about !== "delivery") throw unavailable();
  const { delivery, sessionId, acceptedAt } = acceptance;
  return { first: { envelopeId, delivery, sessionId, acceptedAt }, replayed: false };
}

/** 20 bytes are 32 characters; 26 of them are 130 bits. */
const ID_BYTES = 20;
const ID_CHARACTERS = 26;

/** Asking for random bytes costs the same for one id as for two hundred. No byte is used twice. */
const pool = Buffer.alloc(ID_BYTES * 200);
let used = pool.length;

/** A random id: `env_` and 26 characters of Crockford base32. Source: docs/protocol.md#http. */
export function newEnvelopeId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const bytes = pool.subarray(used, used + ID_BYTES);
  used += ID_BYTES;
  return `env_${crockford(bytes).slice(0, ID_CHARACTERS)}`;
}
