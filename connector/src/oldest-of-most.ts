/** Of items in the order in which they came: the index of the oldest one of the sender with the most. One who floods drops its own. */
export function oldestOfMost<T>(items: readonly T[], senderOf: (item: T) => string): number {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(senderOf(item), (counts.get(senderOf(item)) ?? 0) + 1);
  const most = Math.max(...counts.values());
  return items.findIndex((item) => counts.get(senderOf(item)) === most);
}
