/** What CLUSTER NODES says of a Redis Cluster. Pure. */

export interface SeenNode {
  readonly id: string;
  readonly flags: readonly string[];
  /** The name of the one that it follows; undefined for a primary. */
  readonly primary: string | undefined;
  readonly slots: readonly number[];
}

const SLOTS = 16_384;
const NODE = /^([0-9a-f]{40}) \S+ (\S+) (\S+) \S+ \S+ \S+ \S+(.*)/gm;
/** Without slots on the move, which stand in brackets. */
const RANGE = / (\d+)(?:-(\d+))?(?= |\r?$)/g;

export function nodesIn(said: string): SeenNode[] {
  return [...said.matchAll(NODE)].map(([, id, flags, primary, slots]) => ({
    id: id as string,
    flags: (flags as string).split(","),
    primary: primary === "-" ? undefined : primary,
    slots: [...(slots as string).matchAll(RANGE)].flatMap(([, first, last = first]) =>
      Array.from({ length: Number(last) - Number(first) + 1 }, (_, n) => Number(first) + n),
    ),
  }));
}

export function slotsWithoutOwner(nodes: readonly SeenNode[]): number[] {
  const owned = new Set(nodes.flatMap(({ slots }) => slots));
  return Array.from({ length: SLOTS }, (_, slot) => slot).filter((slot) => !owned.has(slot));
}

/** The one that the fewest follow, of those that have slots; undefined where none has. */
export function primaryWithFewestReplicas(nodes: readonly SeenNode[]): string | undefined {
  const replicasOf = ({ id }: SeenNode) => nodes.filter(({ primary }) => primary === id).length;
  const primaries = nodes.filter(({ slots }) => slots.length > 0);
  return primaries.toSorted((one, other) => replicasOf(one) - replicasOf(other))[0]?.id;
}

/** In order, and as even as can be. */
export function partsOf(slots: readonly number[], count: number): number[][] {
  const boundary = (n: number) => Math.round((n * slots.length) / count);
  return Array.from({ length: count }, (_, n) => slots.slice(boundary(n), boundary(n + 1)));
}

/** The first and the last of each range. */
export function rangesOf(slots: readonly number[]): [number, number][] {
  const ranges: [number, number][] = [];
  for (const slot of slots) {
    const range = ranges.at(-1);
    if (range !== undefined && range[1] === slot - 1) range[1] = slot;
    else ranges.push([slot, slot]);
  }
  return ranges;
}

export function formatSlots(slots: readonly number[]): string {
  return rangesOf(slots)
    .map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`))
    .join(", ");
}
