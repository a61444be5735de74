import { ENVELOPE_LIMITS } from "./limits.ts";

/**
 * Parses JSON text (RFC 8259) to the value that JSON.parse should make.
 * V8 may mistake a member name with an escape for another known name. After `{"\\":1}`, JSON.parse turns the name in
 * `{"\n":1}` into a backslash, and anybody may have sent the first text. This does not affect names without an escape,
 * values, or texts that are not JSON. JSON.parse reads those. Source: docs/security.md#member-names.
 * @throws the error of JSON.parse, or a SyntaxError without details.
 */
export function parseJson(text: string): unknown {
  return hasEscapedName(text) ? read(new Tokens(text)) : JSON.parse(text);
}

/**
 * Parses JSON text as `parseJson` does, but refuses an object with a repeated member. Its time grows with the text, not
 * with the square of the text.
 * @throws SyntaxError.
 */
export function parseUniqueJson(text: string): unknown {
  return valueOfPlain(text) ?? read(new Tokens(text), true);
}

/**
 * More objects and lists than claims have. The time of JSON.stringify grows with the square of the depth. For a text of
 * 512 characters it takes at most about as long as JSON.parse.
 */
const MOST_NESTED = 16;
const SHORT_TEXT = 512;

/**
 * The value of a text that JSON.stringify would write. A repeated member would be missing from the written text, so
 * such a text does not match.
 */
function valueOfPlain(text: string): unknown {
  if (text.length > SHORT_TEXT && (text.match(/[[{]/g)?.length ?? 0) > MOST_NESTED) return undefined;
  const value: unknown = JSON.parse(text);
  return JSON.stringify(value) === text ? value : undefined;
}

/** Whether a member name contains an escape. A text without a backslash costs one scan. */
function hasEscapedName(text: string): boolean {
  let backslash = text.indexOf("\\");
  let open = backslash === -1 ? -1 : text.indexOf('"');
  while (open !== -1 && backslash !== -1) {
    const close = closeOf(text, open);
    if (close === -1) return false;
    if (backslash < close) {
      if (isColonAfter(text, close)) return true;
      backslash = text.indexOf("\\", close);
    }
    open = text.indexOf('"', close + 1);
  }
  return false;
}

/** End of the string that begins at `open`, or -1 if it does not end. */
function closeOf(text: string, open: number): number {
  let close = text.indexOf('"', open + 1);
  while (close !== -1 && isEscaped(text, close)) close = text.indexOf('"', close + 1);
  return close;
}

function isEscaped(text: string, index: number): boolean {
  let first = index;
  while (text[first - 1] === "\\") first -= 1;
  return (index - first) % 2 === 1;
}

const COLON = /[\t\n\r ]*:/y;

function isColonAfter(text: string, close: number): boolean {
  COLON.lastIndex = close + 1;
  return COLON.test(text);
}

/**
 * Reads one value up to the end of the text. A list holds the open objects and lists, so no depth overflows the stack.
 */
function read(tokens: Tokens, isUnique = false): unknown {
  const around: (Members | Items)[] = [];
  for (;;) {
    const opened = tokens.take("{") ? new Members(isUnique) : tokens.take("[") ? new Items() : undefined;
    if (opened !== undefined && !tokens.take(opened.end)) {
      opened.next(tokens);
      around.push(opened);
      continue;
    }
    let value = opened === undefined ? tokens.scalar() : opened.value;
    let parent = around.at(-1);
    while (parent !== undefined && !hasMore(parent, value, tokens)) {
      value = around.pop()?.value;
      parent = around.at(-1);
    }
    if (parent === undefined) return tokens.end(value);
  }
}

/** Adds a value to its parent, and reads on to the parent's next value. @returns false if the parent ends. */
function hasMore(parent: Members | Items, value: unknown, tokens: Tokens): boolean {
  parent.add(value);
  if (!tokens.take(",")) {
    tokens.expect(parent.end);
    return false;
  }
  parent.next(tokens);
  return true;
}

class Members {
  readonly end = "}";
  readonly value: Record<string, unknown> = {};
  readonly #isUnique: boolean;
  #name = "";

  constructor(isUnique: boolean) {
    this.#isUnique = isUnique;
  }

  next(tokens: Tokens): void {
    this.#name = tokens.string();
    tokens.expect(":");
  }

  /** Makes `__proto__` an ordinary member, as JSON.parse does. */
  add(value: unknown): void {
    if (this.#isUnique && Object.hasOwn(this.value, this.#name)) throw new SyntaxError("a member stands twice");
    if (this.#name !== "__proto__") this.value[this.#name] = value;
    else
      Object.defineProperty(this.value, "__proto__", { value, writable: true, enumerable: true, configurable: true });
  }
}

class Items {
  readonly end = "]";
  readonly value: unknown[] = [];

  next(): void {}

  add(value: unknown): void {
    this.value.push(value);
  }
}

const LITERALS = new Map<string, unknown>([
  ["true", true],
  ["false", false],
  ["null", null],
]);
/** Number or literal. */
const WORD = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const NEEDS_PARSING = /[\\\p{Cc}]/u;
/** V8 copies slices up to this length. A longer slice would keep the whole text in memory. */
const COPIED_LENGTH = 12;

/** Tokens of a JSON text. JSON.parse reads strings, which hold no member name. */
class Tokens {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Skips the character if it comes next. @returns whether it did. */
  take(character: string): boolean {
    this.#skipSpace();
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  expect(character: string): void {
    if (!this.take(character)) throw new SyntaxError("not JSON");
  }

  end<T>(value: T): T {
    this.#skipSpace();
    if (this.#at !== this.#text.length) throw new SyntaxError("not JSON");
    return value;
  }

  string(): string {
    this.expect('"');
    const start = this.#at;
    const close = closeOf(this.#text, start - 1);
    this.#at = close + 1;
    const raw = this.#text.slice(start, close);
    const isCopy = close !== -1 && raw.length <= COPIED_LENGTH && !NEEDS_PARSING.test(raw);
    return isCopy ? raw : JSON.parse(this.#text.slice(start - 1, close + 1));
  }

  scalar(): unknown {
    WORD.lastIndex = this.#at;
    if (!WORD.test(this.#text)) return this.string();
    const word = this.#text.slice(this.#at, WORD.lastIndex);
    this.#at = WORD.lastIndex;
    const literal = LITERALS.get(word);
    return literal === undefined ? Number(word) : literal;
  }

  #skipSpace(): void {
    while (isSpace(this.#text.charCodeAt(this.#at))) this.#at += 1;
  }
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

const TOO_MANY_MEMBERS = `The payload has more than ${ENVELOPE_LIMITS.maxPayloadMembers} members and array elements.`;

/**
 * A problem of a value that JSON allows and the relay does not. A payload has more than 32 levels or 2,000 members, a
 * member is named `__proto__`, or there is a lone surrogate. Or a number is not a finite double. Undefined if there is
 * no problem.
 * @param level 0 for an envelope, 1 for a payload. Source: docs/protocol.md#envelopes.
 */
export function valueProblem(value: unknown, level: 0 | 1): string | undefined {
  return problemIn(value, level, { members: 0 });
}

/** Members and array elements of the payload so far, at any depth. */
interface Size {
  members: number;
}

/** The level bounds the recursion. */
function problemIn(value: unknown, level: number, size: Size): string | undefined {
  if (typeof value === "string") return value.isWellFormed() ? undefined : "A string contains a lone surrogate.";
  if (typeof value === "number") return Number.isFinite(value) ? undefined : "A number is not a finite double.";
  if (typeof value !== "object" || value === null) return undefined;
  if (level > ENVELOPE_LIMITS.maxPayloadDepth) return "The payload has more than 32 levels of nesting.";
  return Array.isArray(value) ? problemInItems(value, level, size) : problemInMembers(value, level, size);
}

function problemInItems(items: readonly unknown[], level: number, size: Size): string | undefined {
  if (isTooMany(items.length, size)) return TOO_MANY_MEMBERS;
  for (const item of items) {
    const problem = problemIn(item, level + 1, size);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function problemInMembers(object: object, level: number, size: Size): string | undefined {
  const names = Object.keys(object);
  if (level > 0 && isTooMany(names.length, size)) return TOO_MANY_MEMBERS;
  for (const name of names) {
    if (name === "__proto__") return "A member must not be named __proto__.";
    if (!name.isWellFormed()) return "A member name contains a lone surrogate.";
    const problem = problemIn((object as Readonly<Record<string, unknown>>)[name], level + 1, size);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function isTooMany(more: number, size: Size): boolean {
  size.members += more;
  return size.members > ENVELOPE_LIMITS.maxPayloadMembers;
}
