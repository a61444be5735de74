/** Of that many letters added, left out or replaced, a word is still taken for a slip. */
const MAX_SLIPS = 2;

/** The one of the words that was probably meant: always one of them, never what was typed. Undefined when none is near. */
export function nearest(typed: string, words: readonly string[]): string | undefined {
  const near = words.map((word) => ({ word, slips: slipsBetween(typed, word) }));
  const [best] = near.sort((one, other) => one.slips - other.slips);
  const isNear = best !== undefined && best.slips <= MAX_SLIPS && best.slips < best.word.length / 2;
  return isNear ? best.word : undefined;
}

/** Damerau's distance, where neighbours that changed places are one slip, of words of a length that a command line may have. */
function slipsBetween(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > MAX_SLIPS) return Number.POSITIVE_INFINITY;
  const lines = [Array.from({ length: other.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= one.length; row += 1) {
    const [before = [], above = []] = [lines[row - 2], lines[row - 1]];
    const line = [row];
    for (let column = 1; column <= other.length; column += 1) {
      const replaced = at(above, column - 1) + (one[row - 1] === other[column - 1] ? 0 : 1);
      const hasSwapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      const swapped = hasSwapped ? at(before, column - 2) + 1 : Number.POSITIVE_INFINITY;
      line.push(Math.min(replaced, swapped, at(above, column) + 1, at(line, column - 1) + 1));
    }
    lines.push(line);
  }
  return at(lines[one.length] as number[], other.length);
}

function at(line: readonly number[], column: number): number {
  return line[column] ?? Number.POSITIVE_INFINITY;
}
