import type { CredentialProblem } from "protocol/contract/credential.ts";
import type { Credential } from "protocol/credentials/read-credential.ts";
import { entryOfCredential } from "protocol/intake/credential-step.ts";
import type { KeyRing, SigningEntry } from "protocol/signing/key-ring.ts";

/** So that a key can be replaced without a gap: the one before it goes on to hold. */
const MOST_PER_AGENT = 2;

/** What is held of a credential: without its text, of which a pod with many agents would hold very much. */
type Held = Omit<Credential, "token" | "signed" | "signature" | "sealingKey" | "audience">;

/** A key that a credential made known for its agent. */
interface Known {
  readonly held: Held;
  readonly entry: SigningEntry;
}

/**
 * The credentials that a connection's agents registered with, of each agent the last two. They are judged anew each time:
 * the keys file may have changed, and time passes. Source: docs/protocol.md#credentials.
 */
export class ConnectionCredentials {
  /** Of registers that were accepted, by agent, the newest last. */
  readonly #accepted = new Map<string, readonly Held[]>();
  /** Of registers without an answer, which may have been accepted. */
  readonly #unanswered = new Map<string, readonly Held[]>();
  /** The keys of those that were accepted, by id, which agents may share: each message asks for one. */
  readonly #keys = new Map<string, readonly Known[]>();
  #nextEnd = Number.POSITIVE_INFINITY;

  /** A register with it goes to acceptance. */
  presented(credential: Credential): void {
    const held = heldOf(credential);
    const others = (this.#unanswered.get(held.agent) ?? []).filter((other) => !isSame(other, held));
    this.#unanswered.set(held.agent, [...others, held].slice(-MOST_PER_AGENT));
    this.#nextEnd = Math.min(this.#nextEnd, held.expiresAt);
  }

  /** The register with it was accepted. It takes the place of one for the same key. */
  accepted(credential: Credential): void {
    this.refused(credential);
    const held = heldOf(credential);
    const before = this.#accepted.get(held.agent) ?? [];
    const kept = [...before.filter(({ keyId }) => keyId !== held.keyId), held].slice(-MOST_PER_AGENT);
    this.#accept(held.agent, kept);
    this.#nextEnd = Math.min(this.#nextEnd, held.expiresAt);
  }

  /** The register with it was refused. */
  refused({ agent, ...credential }: Credential): void {
    const others = (this.#unanswered.get(agent) ?? []).filter((other) => !isSame(other, credential));
    keep(this.#unanswered, agent, others);
  }

  forget(agent: string): void {
    this.#accept(agent, []);
    this.#unanswered.delete(agent);
  }

  /**
   * The key of an accepted credential that holds now: of the agent's own, or, so that its holder learns for whom it may not
   * sign, of another agent's.
   */
  keyOf(keyId: string, agent: unknown, ring: KeyRing, now: number): SigningEntry | undefined {
    const known = this.#keys.get(keyId) ?? [];
    const own = known.find(({ held }) => held.agent === agent);
    const holding = [own, ...known].find((each) => each !== undefined && isHolding(each.held, ring, now));
    return holding?.entry;
  }

  /** True when a credential of the agent holds now. */
  mayAct(agent: string, ring: KeyRing, now: number): boolean {
    return this.#of(agent).some((held) => isHolding(held, ring, now));
  }

  /** Why the newest credential of the agent does not hold. */
  problemOf(agent: string, ring: KeyRing, now: number): CredentialProblem | undefined {
    const newest = this.#of(agent).at(-1);
    return newest && ring.issuers.problemOf(newest, now);
  }

  /** Unix ms at which the last credential of the agent ends; undefined when none is held whose issuer is known. */
  lastEnd(agent: string, ring: KeyRing): number | undefined {
    const ends = this.#of(agent)
      .map((held) => ring.issuers.endOf(held))
      .filter(Number.isFinite);
    return ends.length === 0 ? undefined : Math.max(...ends);
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
    return [...(this.#unanswered.get(agent) ?? []), ...(this.#accepted.get(agent) ?? [])];
  }

  /** The credentials of the agent are these, and its keys theirs. */
  #accept(agent: string, held: readonly Held[]): void {
    for (const { keyId } of this.#accepted.get(agent) ?? []) keep(this.#keys, keyId, this.#othersWith(keyId, agent));
    for (const each of held) {
      const known = { held: each, entry: entryOfCredential(each) };
      this.#keys.set(each.keyId, [...this.#othersWith(each.keyId, agent), known]);
    }
    keep(this.#accepted, agent, held);
  }

  #othersWith(keyId: string, agent: string): readonly Known[] {
    return (this.#keys.get(keyId) ?? []).filter(({ held }) => held.agent !== agent);
  }
}

function heldOf({ issuer, issuerKey, agent, keyId, publicKey, issuedAt, expiresAt, notBefore }: Credential): Held {
  return { issuer, issuerKey, agent, keyId, publicKey, issuedAt, expiresAt, notBefore };
}

/** For one agent: of two credentials for a key, issued at one time with one term, either stands for both. */
function isSame(held: Held, other: Pick<Held, "keyId" | "issuedAt" | "expiresAt">): boolean {
  return held.keyId === other.keyId && held.issuedAt === other.issuedAt && held.expiresAt === other.expiresAt;
}

function isHolding(held: Held, ring: KeyRing, now: number): boolean {
  return ring.issuers.problemOf(held, now) === undefined;
}

function keep<T>(map: Map<string, readonly T[]>, name: string, values: readonly T[]): void {
  if (values.length === 0) map.delete(name);
  else map.set(name, values);
}
