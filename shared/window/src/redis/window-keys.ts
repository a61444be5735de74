import { nameOf } from "relay-protocol/wire/ids.ts";
import { CONTROL_PREFIX, prefixOf } from "./keys.ts";
import { LinkDownError } from "./link-state.ts";
import { OutOfReachError } from "./redis-calls.ts";

/** Of the state of a partition, Unix ms; null while the partition has been out of reach since the window is known. */
export type Generation = number | null;

const OUT_OF_REACH = new LinkDownError("slots", "the partition has been out of reach since the window is known");

/**
 * Names of the keys that end with a window, made once for each window that a process adopts. State carries the generation of its
 * partition, what is counted the number of the window: so nothing that is late writes into another one, and no name is used
 * again after a loss. Source: docs/redis.md#keys.
 */
export class WindowKeys {
  /** Of the window, and of the state of each partition: Unix ms. */
  readonly number: number;
  readonly generations: readonly Generation[];
  /** What is counted for all partitions. */
  readonly whole: WholeKeys;
  readonly #partitions: readonly (PartitionKeys | null)[];

  /** @param number Unix ms. @param generations of the partitions, in their order. */
  constructor(number: number, generations: readonly Generation[]) {
    this.number = number;
    this.generations = generations;
    this.whole = wholeKeys(number);
    this.#partitions = generations.map((generation, p) =>
      generation === null ? null : keysOfPartition(p, generation, number),
    );
  }

  /** State and counts of each partition, in their order. @throws as `partition`. */
  get partitions(): PartitionKeys[] {
    return this.#partitions.map((_, p) => this.partition(p));
  }

  /** @throws ServiceError `unavailable` while the partition's generation is not known. */
  partition(p: number): PartitionKeys {
    const keys = this.#partitions[p];
    if (keys == null) throw new OutOfReachError(p, OUT_OF_REACH);
    return keys;
  }
}

/** A time in eight characters: each session and each agent has some of these names. */
const ending = (time: number) => time.toString(36);

export type WholeKeys = ReturnType<typeof wholeKeys>;

function wholeKeys(number: number) {
  const counted = (kind: string) => `${CONTROL_PREFIX}${kind}:${ending(number)}`;
  return {
    traffic: counted("traffic"),
    surfaces: counted("surfaces"),
    visitors: counted("visitors"),
    journeys: counted("journeys"),
    journeysSeen: counted("journeys-seen"),
    journeyVersions: counted("journey-versions"),
    lastJourneyVersion: counted("last-journey-version"),
    flushes: counted("flushes"),
    feedback: counted("feedback"),
  } as const;
}

export type PartitionKeys = ReturnType<typeof keysOfPartition>;

function keysOfPartition(p: number, generation: number, number: number) {
  const state = (kind: string) => `${prefixOf(p)}${kind}:${ending(generation)}`;
  const counted = (kind: string) => `${prefixOf(p)}${kind}:${ending(number)}`;
  const [agents, credential, session] = [state("agents"), state("credential"), state("session")];
  const [pending, decided, opened, principal] = [state("asked"), state("decided"), state("opened"), state("principal")];
  return {
    presence: state("presence"),
    online: state("online"),
    route: state("route"),
    clock: state("clock"),
    /** Whom agents accept envelopes from, where they said so. */
    acceptFrom: state("accept-from"),
    /** Agents that one principal brought, where they are limited. */
    agents: (digest: string) => `${agents}:${digest}`,
    /** The credentials that an agent registered with, by the ids of their keys. */
    credential: (agent: string) => `${credential}:${nameOf(agent)}`,
    session: (sessionId: string) => `${session}:${sessionId}`,
    /** What is pending at one agent: its last proof and its undecided sessions. */
    pending: (agent: string) => `${pending}:${nameOf(agent)}`,
    /** What was decided of an agent's requests while it was not online. */
    decided: (agent: string) => `${decided}:${nameOf(agent)}`,
    /** How many sessions a requester, an agent's id, or a principal, a digest, opened at targets of this partition, within a minute. */
    opened: (opener: string) => `${opened}:${opener}`,
    /**
     * Sessions that a principal, a digest, or an agent of an issuer, its id, has pending at targets of this partition: the name
     * less what records carry.
     */
    principalPrefix: `${principal}:`,
    principal: (holder: string) => `${principal}:${holder}`,
    counters: counted("counters"),
    /** Published envelopes by minute and counter. */
    published: counted("published"),
    proofs: counted("proofs"),
    /** Of requests between agents of one principal. */
    proofsWithin: `${counted("proofs")}:within`,
    lastOnlineProof: counted("last-online-proof"),
  } as const;
}
