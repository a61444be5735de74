import { CONTROL_SLOT, SLOTS, slotOfPartition } from "relay-window/redis/partitions.ts";

/** Where partitions lie on the primaries of a Redis Cluster. Pure. Source: docs/operations.md#scale. */

/** One primary with the slots that `redis-cli --cluster create` gives it. */
export interface Primary {
  readonly first: number;
  readonly last: number;
  readonly partitions: readonly number[];
}

/** A slot that another primary than that of its range is to have. Primaries count from 0. */
export interface Move {
  readonly slot: number;
  readonly partition: number;
  readonly from: number;
  readonly to: number;
}

/** As redis-cli divides the slots: equal ranges in order, each boundary rounded. */
export function primariesOf(partitions: number, primaries: number): Primary[] {
  const boundary = (n: number) => Math.round((n * SLOTS) / primaries);
  const all = Array.from({ length: partitions }, (_, p) => p);
  return Array.from({ length: primaries }, (_, n) => {
    const [first, last] = [boundary(n), boundary(n + 1) - 1];
    return { first, last, partitions: all.filter((p) => isWithin(slotOfPartition(p), first, last)) };
  });
}

/** The moves after which no primary has two partitions more than another. */
export function movesOf(primaries: readonly Primary[]): Move[] {
  const held = primaries.map(({ partitions }) => [...partitions]);
  const moves: Move[] = [];
  for (;;) {
    const counts = held.map(({ length }) => length);
    const [from, to] = [counts.indexOf(Math.max(...counts)), counts.indexOf(Math.min(...counts))];
    if ((counts[from] as number) - (counts[to] as number) < 2) return moves;
    const partition = held[from]?.pop() as number;
    held[to]?.push(partition);
    moves.push({ slot: slotOfPartition(partition), partition, from, to });
  }
}

/** The plan as text: where each partition lies, how even that is, and what to move. */
export function formatPlan(partitions: number, count: number): string {
  const primaries = primariesOf(partitions, count);
  const moves = movesOf(primaries);
  return [
    `RELAY_PARTITIONS=${partitions}, primaries: ${count}, with the slots that redis-cli --cluster create gives them`,
    ...primaries.map(formatPrimary),
    "",
    formatBalance(primaries),
    ...moves.map(({ slot, partition, from, to }) => {
      return `Move slot ${slot} (partition ${partition}) from primary ${from + 1} to primary ${to + 1}.`;
    }),
    "",
  ].join("\n");
}

function formatPrimary({ first, last, partitions }: Primary, index: number): string {
  const slots = partitions.map((p) => `${p} in ${slotOfPartition(p)}`);
  if (isWithin(CONTROL_SLOT, first, last)) slots.push(`control in ${CONTROL_SLOT}`);
  return `primary ${index + 1}, slots ${first}-${last}: ${slots.length === 0 ? "none" : slots.join(", ")}`;
}

function formatBalance(primaries: readonly Primary[]): string {
  const counts = primaries.map(({ partitions }) => partitions.length);
  const most = Math.max(...counts);
  const mean = counts.reduce((sum, n) => sum + n, 0) / counts.length;
  if (most === mean) return `Even: each primary has ${most}.`;
  return `The fullest primary has ${most}, ${(most / mean).toFixed(2)} times its share.`;
}

function isWithin(slot: number, first: number, last: number): boolean {
  return slot >= first && slot <= last;
}
