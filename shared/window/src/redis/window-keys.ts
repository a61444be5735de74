import { nameOf } from "relay-protocol/wire/ids.ts";
import { CONTROL_PREFIX, prefixOf } from "./keys.ts";
import { LinkDownError } from "./link-state.ts";
import { OutOfReachError } from "./redis-calls.ts";

/**
 * Generation of a partition's state, Unix ms. Null while the partition has been out of reach since the window became
 * known.
 */
export type Generation = number | null;

const OUT_OF_REACH = new LinkDownError("slots", "the partition has been out of reach since the window is known");

/**
 * Names of the keys that end with a window. Each process makes them once per adopted window. Names of state carry the
 * generation of their partition, names of counts the number of the window. So a late call never writes into another
 * window, and no name is used again after a loss. Source: docs/redis.md#keys.
 */
export class WindowKeys {
  /** Unix ms: number of the window. */
  readonly number: number;
  readonly generations: readonly Generation[];
  /** Counts for all partitions. */
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

  /** @throws ServiceError `unavailable` while the partition's generation is unknown. */
  partition(p: number): PartitionKeys {
    const keys = this.#partitions[p];
    if (keys == null) throw new OutOfReachError(p, OUT_OF_REACH);
    return keys;
  }
}

/** A time in eight characters. Every session and every agent has several of these names, so they are short. */
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
    /** Whom agents accept envelopes from, if they said so. */
    acceptFrom: state("accept-from"),
    /** Agents that one principal brought, if they are limited. */
    agents: (digest: string) => `${agents}:${digest}`,
    /** The credentials of an agent's registers, with the ids of their keys. */
    credential: (agent: string) => `${credential}:${nameOf(agent)}`,
    session: (sessionId: string) => `${session}:${sessionId}`,
    /** One target's last proof and undecided sessions. */
    pending: (agent: string) => `${pending}:${nameOf(agent)}`,
    /** Decisions on an agent's requests from while it was not online. */
    decided: (agent: string) => `${decided}:${nameOf(agent)}`,
    /**
     * Sessions that an opener opened within a minute, at targets of this partition.
     * @param opener id of the requester, or digest of the principal.
     */
    opened: (opener: string) => `${opened}:${opener}`,
    /**
     * Sessions that a holder has pending at targets of this partition. Scripts append the holder that a session's
     * record names. The holder is a principal's digest, or the id of an issuer's agent.
     */
    principalPrefix: `${principal}:`,
    principal: (holder: string) => `${principal}:${holder}`,
    counters: counted("counters"),
    /** Published envelopes by minute and counter. */
    published: counted("published"),
    proofs: counted("proofs"),
    /** Proofs of requests between agents of one principal. */
    proofsWithin: `${counted("proofs")}:within`,
    lastOnlineProof: counted("last-online-proof"),
  } as const;
}
