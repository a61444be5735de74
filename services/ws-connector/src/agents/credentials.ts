import { entryOfCredential } from "relay-protocol/intake/credential-step.ts";
import { ED25519_BYTES } from "relay-protocol/signing/algorithms.ts";
import { type Credential, type Issuers, isValidAt, type Validity } from "relay-protocol/signing/credentials.ts";
import type { KeyRing, SigningEntry } from "relay-protocol/signing/key-ring.ts";
import type { CredentialProblem } from "relay-protocol/wire/credential.ts";
import type { HeldCredentials } from "relay-window/presence/held-routes.ts";

/** Two, so that a client can replace a key without a gap: the old key stays valid. */
const MOST_PER_AGENT = 2;

/** The members of a credential that a connection needs. */
type Known = Omit<Credential, "signed" | "signature" | "sealingKey" | "audience">;

interface Held {
  readonly credential: Known;
  /** When the credential is valid, by `#issuers`. Undefined until a caller asks. */
  term: Validity | undefined;
  /** The key for signature checks, in memory of its own. Undefined until an envelope is signed with it. */
  entry: SigningEntry | undefined;
}

const NONE: readonly Held[] = [];

/**
 * The last two credentials that each agent of a connection registered with. Each call judges them by the current keys
 * file and time. Source: docs/protocol.md#credentials.
 */
export class ConnectionCredentials {
  /** Credentials of accepted registers, by agent. The newest is last. */
  readonly #accepted = new Map<string, readonly Held[]>();
  /** Credentials of registers without an answer, by agent. Redis may have accepted these registers. */
  readonly #unanswered = new Map<string, readonly Held[]>();
  /** The issuers of the keys file that last judged a credential here. */
  #issuers: Issuers | undefined;
  #nextEnd = Number.POSITIVE_INFINITY;

  /** A register with this credential goes to acceptance. */
  presented(credential: Credential): void {
    const held = this.#takeUnanswered(credential) ?? heldOf(credential);
    this.#add(this.#unanswered, held, this.#unanswered.get(credential.agent) ?? NONE);
  }

  /** The register with this credential was accepted. The credential replaces an older credential for the same key. */
  accepted(credential: Credential): void {
    const held = this.#takeUnanswered(credential) ?? heldOf(credential);
    const before = this.#accepted.get(credential.agent) ?? NONE;
    this.#add(
      this.#accepted,
      held,
      without(before, (other) => other.keyId === credential.keyId),
    );
  }

  /** The register with this credential was refused. */
  refused(credential: Credential): void {
    this.#takeUnanswered(credential);
  }

  forget(agent: string): void {
    this.#accepted.delete(agent);
    this.#unanswered.delete(agent);
  }

  /**
   * The key of an accepted credential that is valid now: the agent's own, else another agent's. With another agent's
   * key, the refusal can tell the client that this key may not sign for the agent.
   */
  keyOf(keyId: string, agent: unknown, { issuers }: KeyRing, now: number): SigningEntry | undefined {
    const own = this.#accepted.get(agent as string);
    const key = own && this.#keyIn(own, keyId, issuers, now);
    if (key !== undefined) return key;
    for (const others of this.#accepted.values()) {
      const anothers = this.#keyIn(others, keyId, issuers, now);
      if (anothers !== undefined) return anothers;
    }
    return undefined;
  }

  /** True if a credential of the agent is valid now. */
  mayAct(agent: string, { issuers }: KeyRing, now: number): boolean {
    const holds = (held: Held) => isValidAt(this.#termOf(held, issuers), now);
    return (this.#accepted.get(agent)?.some(holds) ?? false) || (this.#unanswered.get(agent)?.some(holds) ?? false);
  }

  /** The reason why the newest credential of the agent is not valid. */
  problemOf(agent: string, ring: KeyRing, now: number): CredentialProblem | undefined {
    const newest = this.#newestOf(agent);
    return newest && ring.issuers.problemOf(newest, now);
  }

  /** The issuer of the newest credential of the agent. */
  issuerOf(agent: string): string | undefined {
    return this.#newestOf(agent)?.issuer;
  }

  /** Unix ms: when the last credential of the agent ends. Undefined if no issuer vouches for a held credential. */
  lastEnd(agent: string, { issuers }: KeyRing): number | undefined {
    let last = Number.NEGATIVE_INFINITY;
    for (const byAgent of [this.#accepted, this.#unanswered]) {
      for (const held of byAgent.get(agent) ?? NONE) last = Math.max(last, this.#termOf(held, issuers).until);
    }
    return Number.isFinite(last) ? last : undefined;
  }

  /** The credentials of accepted registers that are valid now. Undefined if there are none. */
  holding(agent: string, { issuers }: KeyRing, now: number): HeldCredentials | undefined {
    const holding = (this.#accepted.get(agent) ?? NONE).filter((held) => isValidAt(this.#termOf(held, issuers), now));
    if (holding.length === 0) return undefined;
    const ends = holding.map((held) => this.#termOf(held, issuers).until);
    return { records: holding.map(({ credential }) => credential).toReversed(), expiresAt: Math.max(...ends) };
  }

  /** Unix ms: no held credential ends earlier. The key ring knows when issuers' keys end. */
  get nextEnd(): number {
    return this.#nextEnd;
  }

  forgetEnded(now: number): void {
    this.#nextEnd = Number.POSITIVE_INFINITY;
    for (const byAgent of [this.#accepted, this.#unanswered]) {
      for (const [agent, all] of byAgent) {
        const held = without(all, ({ expiresAt }) => expiresAt <= now);
        keep(byAgent, agent, held);
        for (const { credential } of held) this.#nextEnd = Math.min(this.#nextEnd, credential.expiresAt);
      }
    }
  }

  /** The newest accepted credential, else the newest without an answer. */
  #newestOf(agent: string): Known | undefined {
    return (this.#accepted.get(agent) ?? this.#unanswered.get(agent))?.at(-1)?.credential;
  }

  #takeUnanswered({ agent, token }: Credential): Held | undefined {
    const unanswered = this.#unanswered.get(agent) ?? NONE;
    const others = without(unanswered, (other) => other.token === token);
    keep(this.#unanswered, agent, others);
    return unanswered.find(({ credential }) => credential.token === token);
  }

  /** Adds the credential as the newest of its agent. */
  #add(byAgent: Map<string, readonly Held[]>, held: Held, others: readonly Held[]): void {
    const { agent, expiresAt } = held.credential;
    // Nearly every list has one member. A spread would allocate room for more.
    byAgent.set(agent, others.length === 0 ? [held] : [...others, held].slice(-MOST_PER_AGENT));
    this.#nextEnd = Math.min(this.#nextEnd, expiresAt);
  }

  /** The key with this id, if a valid credential of the list brought it. */
  #keyIn(list: readonly Held[], keyId: string, issuers: Issuers, now: number): SigningEntry | undefined {
    for (const held of list) {
      if (held.credential.keyId !== keyId || !isValidAt(this.#termOf(held, issuers), now)) continue;
      held.entry ??= heldEntryOf(held.credential);
      return held.entry;
    }
    return undefined;
  }

  /** Judges by the issuers of the current keys file. A new keys file clears the terms by the old file. */
  #termOf(held: Held, issuers: Issuers): Validity {
    if (issuers !== this.#issuers) this.#judgeAnewBy(issuers);
    held.term ??= issuers.holdsDuring(held.credential);
    return held.term;
  }

  #judgeAnewBy(issuers: Issuers): void {
    this.#issuers = issuers;
    for (const byAgent of [this.#accepted, this.#unanswered]) {
      for (const held of [...byAgent.values()].flat()) held.term = undefined;
    }
  }
}

function heldOf(credential: Credential): Held {
  const { token, issuer, issuerKey, agent, keyId, publicKey, issuedAt, expiresAt, notBefore } = credential;
  const known = { token, issuer, issuerKey, agent, keyId, publicKey, issuedAt, expiresAt, notBefore };
  return { credential: known, term: undefined, entry: undefined };
}

/** Copies the key to memory of its own. A slice of Node's pool would keep the whole pool of 64 KiB in memory. */
function heldEntryOf(credential: Known): SigningEntry {
  const publicKey = Buffer.allocUnsafeSlow(ED25519_BYTES.key);
  publicKey.set(Buffer.from(credential.publicKey, "base64url"));
  return entryOfCredential(credential, publicKey);
}

function without(list: readonly Held[], isGone: (credential: Known) => boolean): readonly Held[] {
  return list.length === 0 ? list : list.filter(({ credential }) => !isGone(credential));
}

function keep(byAgent: Map<string, readonly Held[]>, agent: string, held: readonly Held[]): void {
  if (held.length === 0) byAgent.delete(agent);
  else byAgent.set(agent, held);
}
