import type { CredentialProblem } from "protocol/contract/credential.ts";
import type { Issuers } from "protocol/credentials/issuers.ts";
import type { Credential } from "protocol/credentials/read-credential.ts";
import { entryOfCredential } from "protocol/intake/credential-step.ts";
import { ED25519_BYTES } from "protocol/signing/ed25519.ts";
import type { KeyRing, SigningEntry } from "protocol/signing/key-ring.ts";
import { isValidAt, type Validity } from "protocol/signing/validity.ts";
import type { HeldCredentials } from "window/route-asserter.ts";

/** So that a key can be replaced without a gap: the one before it goes on to hold. */
const MOST_PER_AGENT = 2;

/** What is held of a credential: what it is judged by, and its text, which Redis may have to be given again. */
interface Held extends Omit<Credential, "signed" | "signature" | "sealingKey" | "audience" | "publicKey"> {
  readonly entry: SigningEntry;
  /** When it holds, by `#issuers`; undefined until that is asked. */
  term: Validity | undefined;
}

/** Keys that lie in one piece of memory. */
const KEYS_TOGETHER = 128;
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
  /** The keys of those that were accepted, by id, which agents may share: each message asks for one. */
  readonly #keys = new Map<string, readonly Held[]>();
  /** Of the keys file that any of them was judged by last. */
  #issuers: Issuers | undefined;
  #nextEnd = Number.POSITIVE_INFINITY;

  /** A register with it goes to acceptance. */
  presented(credential: Credential): void {
    const held = heldOf(credential);
    this.refused(credential);
    const others = this.#unanswered.get(held.agent) ?? NONE;
    this.#unanswered.set(held.agent, added(others, held).slice(-MOST_PER_AGENT));
    this.#nextEnd = Math.min(this.#nextEnd, held.expiresAt);
  }

  /** The register with it was accepted. It takes the place of one for the same key. */
  accepted(credential: Credential): void {
    const held =
      this.#unanswered.get(credential.agent)?.find(({ token }) => token === credential.token) ?? heldOf(credential);
    this.refused(credential);
    const before = this.#accepted.get(held.agent) ?? NONE;
    const others = before.filter(({ keyId }) => keyId !== held.keyId);
    this.#accept(held.agent, added(others, held).slice(-MOST_PER_AGENT));
    this.#nextEnd = Math.min(this.#nextEnd, held.expiresAt);
  }

  /** The register with it was refused. */
  refused(credential: Credential): void {
    const { agent } = credential;
    const unanswered = this.#unanswered.get(agent);
    if (unanswered === undefined) return;
    keep(
      this.#unanswered,
      agent,
      unanswered.filter(({ token }) => token !== credential.token),
    );
  }

  forget(agent: string): void {
    this.#accept(agent, []);
    this.#unanswered.delete(agent);
  }

  /**
   * The key of an accepted credential that holds now: of the agent's own, or, so that its holder learns for whom it may not
   * sign, of another agent's.
   */
  keyOf(keyId: string, agent: unknown, { issuers }: KeyRing, now: number): SigningEntry | undefined {
    let anothers: SigningEntry | undefined;
    for (const held of this.#keys.get(keyId) ?? NONE) {
      if (!isValidAt(this.#termOf(held, issuers), now)) continue;
      if (held.agent === agent) return held.entry;
      anothers ??= held.entry;
    }
    return anothers;
  }

  /** True when a credential of the agent holds now. */
  mayAct(agent: string, { issuers }: KeyRing, now: number): boolean {
    return this.#of(agent).some((held) => isValidAt(this.#termOf(held, issuers), now));
  }

  /** Why the newest credential of the agent does not hold. */
  problemOf(agent: string, ring: KeyRing, now: number): CredentialProblem | undefined {
    const newest = this.#of(agent).at(-1);
    return newest && ring.issuers.problemOf(newest, now);
  }

  /** Who issued the newest credential of the agent. */
  issuerOf(agent: string): string | undefined {
    return this.#of(agent).at(-1)?.issuer;
  }

  /** Unix ms at which the last credential of the agent ends; undefined when its issuer does not vouch for any that is held. */
  lastEnd(agent: string, { issuers }: KeyRing): number | undefined {
    let last = Number.NEGATIVE_INFINITY;
    for (const held of this.#of(agent)) last = Math.max(last, this.#termOf(held, issuers).until);
    return Number.isFinite(last) ? last : undefined;
  }

  /** Those of accepted registers that hold now; undefined when none does. */
  holding(agent: string, { issuers }: KeyRing, now: number): HeldCredentials | undefined {
    const holding = (this.#accepted.get(agent) ?? NONE).filter((held) => issuers.problemOf(held, now) === undefined);
    if (holding.length === 0) return undefined;
    return { records: holding.toReversed(), expiresAt: Math.max(...holding.map((held) => issuers.endOf(held))) };
  }

  /** Unix ms before which none of them ends. Terms of issuers' keys are for the ring to tell. */
  get nextEnd(): number {
    return this.#nextEnd;
  }

  forgetEnded(now: number): void {
    const isKept = ({ expiresAt }: Held) => expiresAt > now;
    for (const [agent, held] of this.#accepted) this.#accept(agent, held.filter(isKept));
    for (const [agent, held] of this.#unanswered) keep(this.#unanswered, agent, held.filter(isKept));
    this.#nextEnd = Number.POSITIVE_INFINITY;
    for (const byAgent of [this.#accepted, this.#unanswered]) {
      for (const { expiresAt } of [...byAgent.values()].flat()) this.#nextEnd = Math.min(this.#nextEnd, expiresAt);
    }
  }

  #of(agent: string): readonly Held[] {
    const accepted = this.#accepted.get(agent) ?? NONE;
    const unanswered = this.#unanswered.get(agent);
    return unanswered === undefined ? accepted : [...unanswered, ...accepted];
  }

  /** By the issuers of the keys file that is: of what was judged by another one nothing is left. */
  #termOf(held: Held, issuers: Issuers): Validity {
    if (issuers !== this.#issuers) this.#judgeAnewBy(issuers);
    held.term ??= issuers.holdsDuring(held);
    return held.term;
  }

  #judgeAnewBy(issuers: Issuers): void {
    this.#issuers = issuers;
    for (const byAgent of [this.#accepted, this.#unanswered]) {
      for (const held of [...byAgent.values()].flat()) held.term = undefined;
    }
  }

  /** The credentials of the agent are these, and its keys theirs. */
  #accept(agent: string, held: readonly Held[]): void {
    for (const { keyId } of this.#accepted.get(agent) ?? NONE) keep(this.#keys, keyId, this.#othersWith(keyId, agent));
    for (const each of held) this.#keys.set(each.keyId, added(this.#othersWith(each.keyId, agent), each));
    keep(this.#accepted, agent, held);
  }

  #othersWith(keyId: string, agent: string): readonly Held[] {
    return (this.#keys.get(keyId) ?? NONE).filter((held) => held.agent !== agent);
  }
}

function heldOf(credential: Credential): Held {
  const { token, issuer, issuerKey, agent, keyId, publicKey, issuedAt, expiresAt, notBefore } = credential;
  const entry = entryOfCredential({ keyId, issuer, agent, publicKey: keptKey(publicKey) });
  return { token, issuer, issuerKey, agent, keyId, issuedAt, expiresAt, notBefore, entry, term: undefined };
}

/** Room for those to come. */
let room = Buffer.alloc(0);

/** A copy beside other keys: where a token was read, each would keep what was read with it. */
function keptKey(publicKey: Buffer): Buffer {
  if (room.length === 0) room = Buffer.allocUnsafeSlow(KEYS_TOGETHER * ED25519_BYTES.key);
  const kept = room.subarray(0, publicKey.copy(room));
  room = room.subarray(kept.length);
  return kept;
}

/** Nearly every list has one member, and no room for more: a spread would leave some. */
function added(others: readonly Held[], held: Held): readonly Held[] {
  return others.length === 0 ? [held] : [...others, held];
}

function keep<T>(map: Map<string, readonly T[]>, name: string, values: readonly T[]): void {
  if (values.length === 0) map.delete(name);
  else map.set(name, values);
}
