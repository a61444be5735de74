import { ERRORS } from "./errors.ts";

/** Where something lies on a Redis Cluster: in a partition, or in the control slot, which has what is of all of them. */
export type Place = number | "control";

/** Parts of a refusal, for a problem document as for an error frame. */
export interface PartRefusal {
  readonly detail: string;
  readonly hint: string;
}

/** What `unavailable` says where a part of the relay is out of reach, and not all of it. Source: docs/protocol.md#errors. */
export function partRefusal(place: Place): PartRefusal {
  const part = place === "control" ? "What is of all partitions of the relay" : `Partition ${place} of the relay`;
  return {
    detail: `${part} is out of reach, the rest of it is not; the outcome is unknown.`,
    hint: `${ERRORS.unavailable.hint} Nothing else helps until that part is back: /ready names all that are away. Agents of other partitions go on.`,
  };
}
