import type { OwnCredential } from "./credentials/own-credential.ts";
import { checkEnvelope } from "./envelope-rules.ts";
import { RelayError } from "./errors.ts";
import type { AckFrame } from "./frames.ts";
import { parseJson } from "./parse-json.ts";
import type { Peers } from "./peers.ts";
import type { Acknowledged, SendDraft, SendTerms } from "./pending-sends.ts";
import { readEnvelope } from "./read-envelope.ts";
import type { SessionRecords } from "./receipts/session-records.ts";
import { isSealed, plaintextOf, sealPayload } from "./sealing/sealed-payload.ts";
import type { SendQueue } from "./send-queue.ts";
import type { Signer } from "./signer.ts";
import type { CallOptions } from "./types.ts";
import { type AddressedContent, draftOf, type EnvelopeContent } from "./wire-mapping.ts";

export interface OwnEnvelopesOptions {
  readonly agent: string;
  readonly signer: Signer;
  readonly credential: OwnCredential | undefined;
  readonly sendQueue: SendQueue;
  readonly sessions: SessionRecords;
  readonly peers: Peers;
}

/** Makes this agent's envelopes: drafts them, seals them, and keeps those of sessions for receipts. */
export class OwnEnvelopes {
  readonly #options: OwnEnvelopesOptions;

  constructor(options: OwnEnvelopesOptions) {
    this.#options = options;
  }

  /** Throws `invalid_envelope` for fields that the relay would refuse; the size and levels of a payload are checked as it is signed. */
  check(content: EnvelopeContent): void {
    checkEnvelope(content, this.#options.agent);
  }

  /** Rejects with a RelayError. */
  async message(content: AddressedContent, seals: boolean, options: CallOptions): Promise<AckFrame> {
    this.check(content);
    const id = crypto.randomUUID();
    if (isSealed(content.payload)) {
      throw new RelayError("invalid_envelope", {
        message: "A payload of one member named sealed means another thing.",
      });
    }
    if (seals && !this.#options.signer.isEd25519) {
      throw new RelayError("invalid_key", { message: "A key of HMAC cannot seal." });
    }
    const draft = seals ? this.#sealed(content, id) : this.#draft(content, id);
    return await this.#options.sendQueue.add({ id, type: content.type, to: content.to, draft }, options);
  }

  /** An envelope of a session, which is kept once it is accepted. Rejects with a RelayError. */
  async session(content: AddressedContent, options: SendTerms): Promise<AckFrame> {
    this.check(content);
    const id = crypto.randomUUID();
    const { type, to } = content;
    const ack = await this.#options.sendQueue.add({ id, type, to, draft: this.#draft(content, id) }, options);
    await this.#keep(ack);
    return ack;
  }

  /** A decision, on the request that this agent got where it is clear which. Rejects with a RelayError. */
  async decision(
    type: "approve" | "reject",
    { sessionId, to, reason }: { sessionId: string; to: string; reason?: string | undefined },
    options: CallOptions,
  ): Promise<AckFrame> {
    const request = this.#options.sessions.requestOf(sessionId, to);
    const payload = { session_id: sessionId, request_sha256: request?.digest, reason };
    return await this.session({ type: `session.${type}`, to, payload }, { ...options, notBefore: request?.ts });
  }

  #draft(content: EnvelopeContent, id: string): string {
    const { signer, agent } = this.#options;
    return signer.draft(draftOf(content, id, agent));
  }

  /** Sealed when it goes out: there may be no connection yet, and the recipient may get another key meanwhile. */
  #sealed(content: AddressedContent, id: string): SendDraft {
    const { agent, peers } = this.#options;
    const plaintext = plaintextOf(content.payload);
    const neededAt = performance.now();
    return async () => {
      const surroundings = draftOf({ ...content, payload: {} }, id, agent);
      const payload = await sealPayload(plaintext, surroundings, await peers.sealingKeyOf(content.to, neededAt));
      return this.#draft({ ...content, payload }, id);
    };
  }

  async #keep({ sessionId, text }: Acknowledged): Promise<void> {
    const envelope = text === undefined ? undefined : readEnvelope(parseJson(text));
    if (envelope === undefined || sessionId === "") return;
    const credential = this.#options.credential?.heldAt(envelope.ts, envelope.key_id);
    await this.#options.sessions.keep(sessionId, envelope, credential);
  }
}
