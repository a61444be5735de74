/** One part of the report. */
export interface Section {
  readonly title: string;
  /** What the table shows, in a sentence or two. */
  readonly about: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly aims: readonly Aim[];
  /** All that was measured, for the JSON. */
  readonly data: unknown;
}

/** A figure that is not to exceed its limit, or not to fall below it. */
export interface Aim {
  readonly name: string;
  readonly value: number;
  readonly most?: number;
  readonly least?: number;
}

export function isMet({ value, most = Number.POSITIVE_INFINITY, least = Number.NEGATIVE_INFINITY }: Aim): boolean {
  return value <= most && value >= least;
}

/** A number as the tables show it: three digits that count, and thousands apart. */
export function shown(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
  return value
    .toPrecision(3)
    .replace(/(\.\d*?)0+$/, "$1")
    .replace(/\.$/, "");
}

/** How many times another figure. */
export function times(value: number): string {
  return Number.isFinite(value) ? `${value.toFixed(2)} ×` : "–";
}

export function markdown({ title, about, head, rows }: Section): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [`### ${title}`, "", about, "", line(head), line(head.map(() => "---")), ...rows.map(line), ""].join("\n");
}

/** Every aim of a report, in one table. */
export function aimsTable(about: string, aims: readonly Aim[]): string {
  const rows = aims.map((aim) => {
    const limit = aim.most === undefined ? `at least ${aim.least}` : `at most ${Number(aim.most.toFixed(3))}`;
    return [aim.name, limit, ofAim(aim.value), isMet(aim) ? "met" : "**not met**"];
  });
  return markdown({ title: "Aims", about, head: ["", "aim", "measured", ""], rows, aims: [], data: null });
}

/** As exact as the limits that it is compared with. */
function ofAim(value: number): string {
  return value < 1 ? String(Number(value.toFixed(3))) : value.toFixed(2);
}
