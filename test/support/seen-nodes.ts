/** A Redis Cluster as one of its nodes sees it. */

/** A node as another one sees it. */
export interface SeenNode {
  readonly id: string;
  readonly port: number;
  readonly isPrimary: boolean;
  /** Id of a replica's primary. */
  readonly primaryId: string;
  readonly hasFailed: boolean;
  /** First and last of each range. */
  readonly slots: readonly (readonly [number, number])[];
}

/** Reads the answer to CLUSTER NODES. */
export function parseSeen(said: string): SeenNode[] {
  return said.split("\n").flatMap((line) => parseLine(line) ?? []);
}

/** Of a primary that takes calls. */
export function isServing({ isPrimary, hasFailed, slots }: SeenNode): boolean {
  return isPrimary && !hasFailed && slots.length > 0;
}

/** Replicas that could take the primary's place. */
export function replicasOf(primary: SeenNode, seen: readonly SeenNode[]): SeenNode[] {
  return seen.filter(({ primaryId, hasFailed }) => primaryId === primary.id && !hasFailed);
}

/** Primaries that have failed with slots that nobody has taken over. */
export function lostIn(seen: readonly SeenNode[]): SeenNode[] {
  return seen.filter(({ isPrimary, hasFailed, slots }) => isPrimary && hasFailed && slots.length > 0);
}

/** Who has which slots. */
export function slotsIn(seen: readonly SeenNode[]): string {
  return JSON.stringify(
    seen
      .filter(({ slots }) => slots.length > 0)
      .map(({ port, slots }) => [port, slots])
      .sort(),
  );
}

function parseLine(line: string): SeenNode | null {
  const [, id, port, flags = "", primaryId, slots = ""] =
    /^([0-9a-f]{40}) [^:]*:(\d+)@\S+ (\S+) (\S+) \d+ \d+ \d+ \S+ ?(.*)/.exec(line.trim()) ?? [];
  if (id === undefined || primaryId === undefined) return null;
  const ranges = [...slots.matchAll(/(?<!\S)(\d+)(?:-(\d+))?(?!\S)/g)];
  return {
    id,
    port: Number(port),
    isPrimary: /\bmaster\b/.test(flags),
    primaryId,
    hasFailed: /\bfail\b(?!\?)/.test(flags),
    slots: ranges.map(([, first, last = first]) => [Number(first), Number(last)] as const),
  };
}
