/** A field of an envelope, by the protocol's name, and what is wrong with it: `to`, `must be …`. */
export interface FieldError {
  readonly field: string;
  readonly message: string;
}

/** One sentence that also says which fields are wrong, and how, where it does not already. */
export function withFields(sentence: string, errors: readonly FieldError[]): string {
  const unsaid = errors.filter(({ message }) => !sentence.includes(message));
  if (unsaid.length === 0) return sentence;
  const fields = unsaid.map(({ field, message }) => `${field} ${message}`).join("; ");
  return `${sentence.replace(/\.$/, "")}: ${fields}.`;
}
