/** Sets an entry of a map that has at most so many, in the order in which their keys came: the oldest makes room. */
export function keepNewest<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > most) map.delete(oldest as K);
}
