/** Turns of phrase that are hard to read, as far as a pattern finds them without false alarms. */

/** In any sentence. */
const ANYWHERE: readonly RegExp[] = [
  // A clause as a subject.
  /\bwhoever\b/gi,
  /; (?:who|what) (?!to\b)/g,
  // The verb before its subject.
  /[,;] nor (?:is|are|was|were|do|does|did|has|have|had|can|could|need|will|would)\b/g,
  /, should (?:it|they|this|that|the|an?)\b/g,
  // Rare verbs and adverbs.
  /\b(?:stands?|standing|stood|lies?|lay|lying) (?:in\b(?! for\b)|among\b)/gi,
  /\b(?:mend(?:s|ed|ing)?|anew|meanwhile|thus)\b/gi,
  /\btoo(?=[.,;:)]|$)/g,
  /\bonce an? (?:agent|call|connection|issuer|key|partition|pod|recipient|sender|service|shard)(?=[.,;:)]|$)/g,
  /\bone (?:call|channel|command|connection|image|line|process|publish|user|write) an? (?!second\b|minute\b|hour\b|day\b)/gi,
  // A pronoun for a noun that is far away.
  /\bthat of\b/g,
  /\bthose (?:which|that|of)\b/gi,
  /\bthe (?:former|latter)(?=[.,;:)]|$| (?:is|are|was|were|has|have|had|does|do|may|can|will|also)\b)/gi,
  /(?<!\b[Tt]here )(?<!\b[Dd]efault )\b(?:is|are|was|were) none\b(?! of\b)/g,
];

/** At the beginning of a sentence that is no question, title or note. */
const AT_THE_START: readonly RegExp[] = [
  /^(?:Who|What) (?!to\b)/,
  /^Whatever\b/,
  /^(?:Counted|Forgotten|Gathered|Kept|Left|Measured|Named|Refused|Shown|Told|Tried) (?:is|are|was|were)\b/,
  /^Of (?!course\b)/,
  /^Nor\b/,
  /^(?:Should|Were|Had) (?:it|they|this|that|there|the|an?)\b/,
];

/** @param sentence in one line, its code masked. @param isWhole false for a title, and for a note in a cell. */
export function bannedIn(sentence: string, isWhole: boolean): string[] {
  const words = sentence.replace(/^[^\p{L}]+/u, "");
  const atTheStart = isWhole && !/[?:]\W*$/.test(words) ? AT_THE_START : [];
  return [...ANYWHERE, ...atTheStart].flatMap((pattern) => words.match(pattern) ?? []);
}
