import { createHmac } from "node:crypto";
import type { JsonObject, UnsignedEnvelope } from "@agent-relay/shared/contract/envelope.ts";
import { RelayError } from "@agent-relay/shared/contract/errors.ts";
import { ENVELOPE_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { canonicalJson, canonicalText } from "@agent-relay/shared/signing/canonical.ts";
import type { Acceptance, AcceptanceItem, Claim, FirstAnswer } from "@agent-relay/shared/window/acceptance.ts";
import type { Acceptor } from "@agent-relay/shared/window/acceptor.ts";
import { unavailable } from "@agent-relay/shared/window/redis-link.ts";
import type { Admitted } from "./admission.ts";
import { newEnvelopeId } from "./envelope-id.ts";
import type { GatewayKey } from "./gateway-key.ts";

/** What an endpoint makes of its request. */
export interface Content {
  readonly kind: Extract<AcceptanceItem["kind"], "message" | "session_request">;
  readonly type: string;
  readonly payload: JsonObject;
}

/** What was accepted, now or by the first request with the same Idempotency-Key. */
export interface Published {
  readonly first: FirstAnswer;
  readonly replayed: boolean;
}

/** Makes, signs and publishes the envelopes of simple requests. Source: protocol, sections 4 and 9. */
export class Publisher {
  readonly #gatewayKey: GatewayKey;
  readonly #acceptor: Acceptor;
  /** Digests of the claims whose first request this gateway has not answered yet. */
  readonly #inProgress = new Set<string>();

  constructor(options: { readonly gatewayKey: GatewayKey; readonly acceptor: Acceptor }) {
    this.#gatewayKey = options.gatewayKey;
    this.#acceptor = options.acceptor;
  }

  /**
   * @throws RelayError `frame_too_large`, `api_key_not_allowed_for_sender`, `idempotency_in_progress`,
   * `idempotency_key_reused` or `unavailable`.
   */
  async publish(
    request: Admitted<{ readonly from: string; readonly to: string }>,
    content: Content,
  ): Promise<Published> {
    const { from, to } = request.body;
    const envelope = makeEnvelope(this.#gatewayKey.keyId, from, to, content);
    const canonical = canonicalText(envelope);
    if (Buffer.byteLength(canonical) > ENVELOPE_LIMITS.maxFrameBytes) throw new RelayError("frame_too_large");
    if (!request.apiKey.mayAct(from)) throw new RelayError("api_key_not_allowed_for_sender");

    const unsigned = { envelope, canonical, kind: content.kind };
    const claim = claimOf(request);
    if (claim === undefined) return await this.#accept(unsigned, {});
    if (this.#inProgress.has(claim.digest)) throw new RelayError("idempotency_in_progress");
    this.#inProgress.add(claim.digest);
    try {
      return await this.#accept(unsigned, { claim });
    } finally {
      this.#inProgress.delete(claim.digest);
    }
  }

  async #accept({ envelope, canonical, kind }: Unsigned, claimed: { claim?: Claim }): Promise<Published> {
    const text = this.#gatewayKey.sign(canonical);
    const acceptance = await new Promise<Acceptance>((done) => {
      this.#acceptor.accept({ envelope, kind, text, origin: "gateway", connection: "", ...claimed, done });
    });
    return publishedAs(envelope.id, acceptance);
  }
}

interface Unsigned extends Pick<Content, "kind"> {
  readonly envelope: UnsignedEnvelope;
  readonly canonical: string;
}

function makeEnvelope(keyId: string, from: string, to: string, { type, payload }: Content): UnsignedEnvelope {
  return { id: newEnvelopeId(), type, from, to, payload, ts: Date.now(), key_id: keyId };
}

/** Both digests are keyed by the API key, so that nobody who reads Redis can guess what was sent. */
function claimOf({ apiKeyText, surface, idempotencyKey, body }: Admitted<unknown>): Claim | undefined {
  if (idempotencyKey === undefined) return undefined;
  const digest = (text: string) => createHmac("sha256", apiKeyText).update(text).digest("base64url");
  return {
    digest: digest(`idempotency-key\n${surface}\n${idempotencyKey}`),
    bodyDigest: digest(`body\n${canonicalJson(body)}`),
  };
}

function publishedAs(envelopeId: string, acceptance: Acceptance): Published {
  if (acceptance.outcome === "replayed") return { first: acceptance.first, replayed: true };
  if (acceptance.outcome === "reused") throw new RelayError("idempotency_key_reused");
  // All else is the relay's own trouble: no Redis, or a clock of the gateway's that is off.
  if (!("about" in acceptance) || acceptance.about !== "delivery") throw unavailable();
  const { delivery, sessionId, acceptedAt } = acceptance;
  return { first: { envelopeId, delivery, sessionId, acceptedAt }, replayed: false };
}
