/** Whether a text has so many characters: Unicode code points, as the relay counts them. Source: docs/protocol.md#envelopes. */
export function isOfLength(text: string, min: number, max: number): boolean {
  // A code point has two units at most: nothing longer than that is counted.
  if (text.length > 2 * max) return false;
  const { length } = Array.from(text);
  return length >= min && length <= max;
}
