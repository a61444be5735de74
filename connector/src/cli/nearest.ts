/** Of that many letters added, left out or replaced, a word is still taken for a slip. */
const MAX_SLIPS = 2;

/** The one of the words that was probably meant: always one of them, never what was typed. Undefined when none is near. */
export function nearest(typed: string, words: readonly string[]): string | undefined {
  const near = words.map((word) => ({ word, slips: slipsBetween(typed, word) }));
  const [best] = near.sort((one, other) => one.slips - other.slips);
  const isNear = best !== undefined && best.slips <= MAX_SLIPS && best.slips < best.word.length / 2;
  return isNear ? best.word : undefined;
}

/** Levenshtein's distance, of words of a length that a command line may have. */
function slipsBetween(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > MAX_SLIPS) return Number.POSITIVE_INFINITY;
  let above = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (const [row, letter] of [...one].entries()) {
    const line = [row + 1];
    for (const [column, match] of [...other].entries()) {
      const replaced = (above[column] as number) + (letter === match ? 0 : 1);
      line.push(Math.min(replaced, (above[column + 1] as number) + 1, (line[column] as number) + 1));
    }
    above = line;
  }
  return above[other.length] as number;
}
