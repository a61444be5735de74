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
