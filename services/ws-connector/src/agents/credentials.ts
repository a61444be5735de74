import { entryOfCredential } from "relay-protocol/intake/credential-step.ts";
import { ED25519_BYTES } from "relay-protocol/signing/algorithms.ts";
import { type Credential, type Issuers, isValidAt, type Validity } from "relay-protocol/signing/credentials.ts";
import type { KeyRing, SigningEntry } from "relay-protocol/signing/key-ring.ts";
import type { CredentialProblem } from "relay-protocol/wire/credential.ts";
import type { HeldCredentials } from "relay-window/presence/route-restoring.ts";

/** So that a key can be replaced without a gap: the one before it goes on to hold. */
const MOST_PER_AGENT = 2;

/** What is held of a credential: a connection asks nothing else of it. */
type Known = Omit<Credential, "signed" | "signature" | "sealingKey" | "audience">;

interface Held {
  readonly credential: Known;
  /** When it holds, by `#issuers`; undefined until that is asked. */
  term: Validity | undefined;
  /** Its key, as one that signs envelopes, in memory of its own; undefined until one is signed with it. */
  entry: SigningEntry | undefined;
}

const NONE: readonly Held[] = [];

/**
 * The credentials that a connection's agents registered with, of each agent the last two. They are judged each time, by the
 * keys file that is and the time that it is. Source: docs/protocol.md#credentials.
 */
export class ConnectionCredentials {
  /** Of registers that were accepted, by agent, the newest last. */
  readonly #accepted = new Map<string, readonly Held[]>();
  /** Of registers without an answer, which may have been accepted. */
  readonly #unanswered = new Map<string, readonly Held[]>();
  /** Of the keys file that any of them was judged by last. */
  #issuers: Issuers | undefined;
  #nextEnd = Number.POSITIVE_INFINITY;

  /** A register with it goes to acceptance. */
  presented(credential: Credential): void {
    const held = this.#takeUnanswered(credential) ?? heldOf(credential);
    this.#add(this.#unanswered, held, this.#unanswered.get(credential.agent) ?? NONE);
  }

  /** The register with it was accepted. It takes the place of one for the same key. */
  accepted(credential: Credential): void {
    const held = this.#takeUnanswered(credential) ?? heldOf(credential);
    const before = this.#accepted.get(credential.agent) ?? NONE;
    this.#add(
      this.#accepted,
      held,
      without(before, (other) => other.keyId === credential.keyId),
    );
  }

  /** The register with it was refused. */
  refused(credential: Credential): void {
    this.#takeUnanswered(credential);
  }

  forget(agent: string): void {
    this.#accepted.delete(agent);
    this.#unanswered.delete(agent);
  }

  /**
   * The key of an accepted credential that holds now: of the agent's own, or, so that its holder learns for whom it may not
   * sign, of another agent's.
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

  /** True when a credential of the agent holds now. */
  mayAct(agent: string, { issuers }: KeyRing, now: number): boolean {
    const holds = (held: Held) => isValidAt(this.#termOf(held, issuers), now);
    return (this.#accepted.get(agent)?.some(holds) ?? false) || (this.#unanswered.get(agent)?.some(holds) ?? false);
  }

  /** Why the newest credential of the agent does not hold. */
  problemOf(agent: string, ring: KeyRing, now: number): CredentialProblem | undefined {
    const newest = this.#newestOf(agent);
    return newest && ring.issuers.problemOf(newest, now);
  }

  /** Who issued the newest credential of the agent. */
  issuerOf(agent: string): string | undefined {
    return this.#newestOf(agent)?.issuer;
  }

  /** Unix ms at which the last credential of the agent ends; undefined when its issuer does not vouch for any that is held. */
  lastEnd(agent: string, { issuers }: KeyRing): number | undefined {
    let last = Number.NEGATIVE_INFINITY;
    for (const byAgent of [this.#accepted, this.#unanswered]) {
      for (const held of byAgent.get(agent) ?? NONE) last = Math.max(last, this.#termOf(held, issuers).until);
    }
    return Number.isFinite(last) ? last : undefined;
  }

  /** Those of accepted registers that hold now; undefined when none does. */
  holding(agent: string, { issuers }: KeyRing, now: number): HeldCredentials | undefined {
    const holding = (this.#accepted.get(agent) ?? NONE).filter((held) => isValidAt(this.#termOf(held, issuers), now));
    if (holding.length === 0) return undefined;
    const ends = holding.map((held) => this.#termOf(held, issuers).until);
    return { records: holding.map(({ credential }) => credential).toReversed(), expiresAt: Math.max(...ends) };
  }

  /** Unix ms before which none of them ends. Terms of issuers' keys are for the ring to tell. */
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

  /** The newest that was accepted, else the newest without an answer. */
  #newestOf(agent: string): Known | undefined {
    return (this.#accepted.get(agent) ?? this.#unanswered.get(agent))?.at(-1)?.credential;
  }

  #takeUnanswered({ agent, token }: Credential): Held | undefined {
    const unanswered = this.#unanswered.get(agent) ?? NONE;
    const others = without(unanswered, (other) => other.token === token);
    keep(this.#unanswered, agent, others);
    return unanswered.find(({ credential }) => credential.token === token);
  }

  /** Adds it, as the newest, to the others of its agent. */
  #add(byAgent: Map<string, readonly Held[]>, held: Held, others: readonly Held[]): void {
    const { agent, expiresAt } = held.credential;
    // Nearly every list has one member, and no room for more: a spread would leave some.
    byAgent.set(agent, others.length === 0 ? [held] : [...others, held].slice(-MOST_PER_AGENT));
    this.#nextEnd = Math.min(this.#nextEnd, expiresAt);
  }

  /** The key with this id, where a credential of the list that holds now brought it. */
  #keyIn(list: readonly Held[], keyId: string, issuers: Issuers, now: number): SigningEntry | undefined {
    for (const held of list) {
      if (held.credential.keyId !== keyId || !isValidAt(this.#termOf(held, issuers), now)) continue;
      held.entry ??= heldEntryOf(held.credential);
      return held.entry;
    }
    return undefined;
  }

  /** By the issuers of the keys file that is: of what was judged by another one nothing is left. */
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

/** The key in memory of its own: of a piece of Node's pool, it would keep all 64 KiB for as long as it is held. */
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
