/**
 * HTTP as any client speaks it, with a record of every answer. Each request has a connection of its own: the clock by which
 * fetch forgets idle ones stands while the process is busy, so that it would send into one that the relay has closed.
 */
export const OWN_CONNECTION = { connection: "close" } as const;

// biome-ignore lint/suspicious/noExplicitAny: what comes over the wire has no type yet.
type Body = any;

export interface Answer {
  readonly status: number;
  readonly body: Body;
  readonly headers: Headers;
}

export class HttpClient {
  /** Heads and bodies of all answers, as texts. */
  readonly answers: string[] = [];
  readonly #headers: Record<string, string>;

  /** @param headers go out with every request. */
  constructor(headers: Record<string, string> = {}) {
    this.#headers = { ...OWN_CONNECTION, ...headers };
  }

  async get(url: string): Promise<Answer> {
    return await this.#request(url, { method: "GET", headers: this.#headers });
  }

  /** @param body sent as JSON, unless it is a text, which is sent as it is. */
  async post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return await this.#request(url, {
      method: "POST",
      headers: { ...this.#headers, "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  }

  async #request(url: string, init: RequestInit): Promise<Answer> {
    const response = await fetch(url, init);
    const text = await response.text();
    this.answers.push(JSON.stringify([...response.headers]), text);
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text), headers: response.headers };
  }
}

/** What of an HTTPRoute of Gateway API the routes here use. */
export interface HttpRoute {
  readonly spec?: { readonly rules?: readonly RouteRule[] };
}

export interface RouteRule {
  readonly matches?: readonly RouteMatch[];
  readonly filters?: readonly unknown[];
  readonly timeouts?: { readonly request?: string };
  readonly backendRefs?: readonly { readonly name: string; readonly port?: number }[];
}

interface RouteMatch {
  readonly path?: { readonly type?: string; readonly value?: string };
  readonly method?: string;
}

/** Above every prefix. */
const EXACT_RANK = 10_000;

/**
 * The rule that an edge applies to a request: that of an exact path before that of a prefix, the longer prefix before the
 * shorter, and of the same path that which names the method.
 * Source: Gateway API, HTTPRouteRule.
 *
 * @throws {Error} when two rules have the same claim, which only their age decides
 */
export function ruleFor(routes: readonly HttpRoute[], method: string, path: string): RouteRule | undefined {
  const claims = routes
    .flatMap(({ spec }) => spec?.rules ?? [])
    .flatMap((rule) =>
      (rule.matches ?? []).filter((match) => fits(match, method, path)).map((match) => ({ rule, rank: rankOf(match) })),
    );
  const best = Math.max(...claims.map(({ rank }) => rank));
  const [rule, ...rivals] = new Set(claims.filter(({ rank }) => rank === best).map((claim) => claim.rule));
  if (rivals.length > 0) throw new Error(`Two rules claim ${method} ${path}.`);
  return rule;
}

/** The Service that a request goes to. */
export function backendOf(routes: readonly HttpRoute[], method: string, path: string): string | undefined {
  const [backend, ...others] = ruleFor(routes, method, path)?.backendRefs ?? [];
  if (others.length > 0) throw new Error("A rule has one backend here.");
  return backend?.name;
}

function fits({ path: { type, value = "/" } = {}, method }: RouteMatch, asked: string, path: string): boolean {
  if (method !== undefined && method !== asked) return false;
  if (type === "Exact") return path === value;
  if (type !== "PathPrefix") throw new Error(`Paths are Exact or PathPrefix here, not ${type}.`);
  return isBelow(path, value);
}

/** A prefix is of whole segments, in Gateway API and in an Ingress. */
export function isBelow(path: string, prefix: string): boolean {
  return prefix === "/" || path === prefix || path.startsWith(`${prefix}/`);
}

function rankOf({ path: { type, value = "/" } = {}, method }: RouteMatch): number {
  return (type === "Exact" ? EXACT_RANK : 2 * value.length) + (method === undefined ? 0 : 1);
}

/** What a Prometheus server reads at GET /metrics. */
export interface Scrape {
  readonly text: string;
  /** Value of a series, by its name and some of its labels; the sum when several fit, undefined when none does. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
  /** Every label name that occurs. */
  readonly labelNames: ReadonlySet<string>;
}

interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export async function scrape(url: string): Promise<Scrape> {
  const response = await fetch(url);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}`);
  return seriesIn(text);
}

/** The text format, read. */
export function seriesIn(text: string): Scrape {
  const all = text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map(seriesOf);
  return {
    text,
    labelNames: new Set(all.flatMap(({ labels }) => Object.keys(labels))),
    value(name, labels = {}) {
      const fits = (series: Series) =>
        series.name === name && Object.entries(labels).every(([label, value]) => series.labels[label] === value);
      const found = all.filter(fits);
      return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
    },
  };
}

function seriesOf(line: string): Series {
  const [, name = "", labels = "", value = ""] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  if (name === "") throw new Error(`Not a line of the text format: ${line}`);
  const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label, text]);
  return { name, labels: Object.fromEntries(pairs), value: Number(value) };
}
