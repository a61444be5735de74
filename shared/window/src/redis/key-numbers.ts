/** Adds keys to those of a script, each once. @returns a function that tells the place of a key in KEYS. */
export function keyNumbers(keys: string[]): (key: string) => number {
  const numbers = new Map<string, number>();
  return (key) => {
    const known = numbers.get(key);
    if (known !== undefined) return known;
    keys.push(key);
    numbers.set(key, keys.length);
    return keys.length;
  };
}
