/** An address in a document, with the method that the document states beside it. */
export interface Found {
  readonly url: string;
  readonly method: string;
  /** Whether the document says that this address has braces to be filled in. */
  readonly isTemplate: boolean;
}

/** The parts of a document that say how to read its addresses. */
// biome-ignore lint/suspicious/noExplicitAny: the documents are what is tested.
type Part = any;

/** A path at the start of a text, or after what belongs neither to a word nor to another address. */
const PATH = /(?<![\w}>:/.<*+#)\]^-])\/[A-Za-z.][\w.\-/{}?=&:,+]*/g;
const ENDS = "\\s\"'<>`|)\\]";
const TRAILING = /[.,:;?]+$/;
const RFC_6570 = /RFC 6570/;

/** Every address of the relay's own in a text: absolute ones, and paths. @param base without a slash at its end. */
export function addressesIn(text: string, base: string): { readonly url: string; readonly before: string }[] {
  const absolute = text.matchAll(new RegExp(`${base}(?![\\w.])[^${ENDS}]*`, "g"));
  const others = text.replace(new RegExp(`\\w+://[^${ENDS}]*`, "g"), (url) => " ".repeat(url.length));
  return [...absolute, ...others.matchAll(PATH)].map(({ 0: url, index }) => ({
    url: url.replace(TRAILING, ""),
    before: text.slice(0, index),
  }));
}

/** Those of a text or a page. A method is stated before the address, in the same line or where the text names it first. */
export function inText(text: string, base: string): Found[] {
  const found = text.split("\n").flatMap((line) => inLine(line, base, RFC_6570.test(text)));
  const posted = new Set(found.filter(({ method }) => method === "POST").map(({ url }) => url));
  return found.map((one) => (posted.has(one.url) ? { ...one, method: "POST" } : one));
}

function inLine(line: string, base: string, saysTemplates: boolean): Found[] {
  return addressesIn(line, base).map(({ url, before }) => ({
    url,
    method: before.match(/\b(?:GET|POST)\b/g)?.at(-1) ?? "GET",
    isTemplate: /[{}]/.test(url) && saysTemplates,
  }));
}

/** Those of a JSON document, whose ids made up for examples make an address that is none. */
export function inJson(document: Part, base: string): Found[] {
  const saysTemplates = RFC_6570.test(JSON.stringify(document)) || document.openapi !== undefined;
  const madeUp: string[] = document.made_up_ids ?? document["x-examples"]?.made_up_ids ?? [];
  const found = (value: Part, method?: string, isTemplate = saysTemplates): Found[] => {
    if (typeof value === "string") {
      const lines = inLine(value, base, isTemplate);
      return method === undefined ? lines : lines.map((one) => ({ ...one, method }));
    }
    if (typeof value !== "object" || value === null || "x-needs" in value) return [];
    return Object.entries<Part>(value).flatMap(([name, member]) => [
      ...(name.startsWith("/") ? ofOperations(name, member) : []),
      ...found(
        member,
        Array.isArray(value) ? method : methodBeside(value, name),
        isTemplate || name === "link_templates" || isNamed(document, name),
      ),
    ]);
  };
  return found(document).filter(({ url }) => !madeUp.some((id) => url.includes(id)));
}

/** A guide names those of its links that are templates. */
const isNamed = ({ templates }: Part, name: string) => Array.isArray(templates) && templates.includes(name);

/** The method that stands beside an address, as `method`, as `<word>_method`, or as the operation that it belongs to. */
function methodBeside(parent: Part, name: string): string | undefined {
  if (/^(?:url|path|endpoint|aliases)$/.test(name)) return parent.method;
  if (name === "x-aliases") return parent.requestBody ? "POST" : "GET";
  const [, word] = /^([a-z]+)_endpoint/.exec(name) ?? [];
  return parent[`${word}_method`];
}

/** A path of OpenAPI; one whose 404 is told of the operation may be missing. */
function ofOperations(path: string, item: Part): Found[] {
  const methods = Object.keys(item).filter((method) => item[method].responses?.[404] === undefined);
  return methods.map((method) => ({ url: path, method: method.toUpperCase(), isTemplate: path.includes("{") }));
}
