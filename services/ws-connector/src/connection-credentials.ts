import type { CredentialProblem } from "protocol/contract/credential.ts";
import type { Credential } from "protocol/credentials/read-credential.ts";
import { entryOfCredential } from "protocol/intake/credential-step.ts";
import type { KeyRing, SigningEntry } from "protocol/signing/key-ring.ts";

/** So that a key can be replaced without a gap: the one before it goes on to hold. */
const MOST_PER_AGENT = 2;

/**
 * The credentials that a connection's agents registered with, of each agent the last two. They are judged anew each time:
 * the keys file may have changed, and time passes. Source: docs/protocol.md#credentials.
 */
export class ConnectionCredentials {
  /** Of registers that were accepted, by agent, the newest last. */
  readonly #accepted = new Map<string, readonly Credential[]>();
  /** Of registers without an answer, which may have been accepted. */
  readonly #unanswered = new Map<string, readonly Credential[]>();
  /** The keys of those that were accepted: each message asks for one. */
  readonly #entries = new Map<string, { readonly credential: Credential; readonly entry: SigningEntry }>();
  #nextEnd = Number.POSITIVE_INFINITY;

  /** A register with it goes to acceptance. */
  presented(credential: Credential): void {
    add(this.#unanswered, credential, ({ token }) => token === credential.token);
    this.#index();
  }

  /** The register with it was accepted. It takes the place of one for the same key. */
  accepted(credential: Credential): void {
    remove(this.#unanswered, credential);
    add(this.#accepted, credential, ({ keyId }) => keyId === credential.keyId);
    this.#index();
  }

  /** The register with it was refused. */
  refused(credential: Credential): void {
    remove(this.#unanswered, credential);
  }

  forget(agent: string): void {
    this.#accepted.delete(agent);
    this.#unanswered.delete(agent);
    this.#index();
  }

  /** The key of an accepted credential that holds now. */
  keyOf(keyId: string, ring: KeyRing, now: number): SigningEntry | undefined {
    const known = this.#entries.get(keyId);
    return known !== undefined && isHolding(known.credential, ring, now) ? known.entry : undefined;
  }

  /** True when a credential of the agent holds now. */
  mayAct(agent: string, ring: KeyRing, now: number): boolean {
    return this.#of(agent).some((credential) => isHolding(credential, ring, now));
  }

  /** Why the newest credential of the agent does not hold. */
  problemOf(agent: string, ring: KeyRing, now: number): CredentialProblem | undefined {
    const newest = this.#of(agent).at(-1);
    return newest && ring.issuers.problemOf(newest, now);
  }

  /** Unix ms at which the last credential of the agent ends. */
  lastEnd(agent: string, ring: KeyRing): number {
    return Math.max(...this.#of(agent).map((credential) => ring.issuers.endOf(credential)));
  }

  /** Unix ms at which the first of them ends; Infinity when there is none. Terms of issuers' keys are for the ring to tell. */
  get nextEnd(): number {
    return this.#nextEnd;
  }

  forgetEnded(now: number): void {
    for (const byAgent of [this.#accepted, this.#unanswered]) {
      for (const agent of byAgent.keys()) keep(byAgent, agent, ({ expiresAt }) => expiresAt > now);
    }
    this.#index();
  }

  #index(): void {
    this.#entries.clear();
    for (const credential of [...this.#accepted.values()].flat()) {
      this.#entries.set(credential.keyId, { credential, entry: entryOfCredential(credential) });
    }
    const all = [...this.#accepted.values(), ...this.#unanswered.values()].flat();
    this.#nextEnd = Math.min(...all.map(({ expiresAt }) => expiresAt));
  }

  #of(agent: string): readonly Credential[] {
    return [...(this.#unanswered.get(agent) ?? []), ...(this.#accepted.get(agent) ?? [])];
  }
}

function isHolding(credential: Credential, ring: KeyRing, now: number): boolean {
  return ring.issuers.problemOf(credential, now) === undefined;
}

type ByAgent = Map<string, readonly Credential[]>;

/** Adds the newest; of those of its agent that `isReplaced` does not name, the one before it stays. */
function add(byAgent: ByAgent, credential: Credential, isReplaced: (other: Credential) => boolean): void {
  const others = (byAgent.get(credential.agent) ?? []).filter((other) => !isReplaced(other));
  byAgent.set(credential.agent, [...others, credential].slice(-MOST_PER_AGENT));
}

function remove(byAgent: ByAgent, { agent, token }: Credential): void {
  keep(byAgent, agent, (other) => other.token !== token);
}

function keep(byAgent: ByAgent, agent: string, isKept: (credential: Credential) => boolean): void {
  const kept = (byAgent.get(agent) ?? []).filter(isKept);
  if (kept.length === 0) byAgent.delete(agent);
  else byAgent.set(agent, kept);
}
