/**
 * The pictures of the home page: each is made of numbers and texts alone, with createElementNS and textContent. Nothing
 * that a report says is ever read as markup.
 */

const SVG = "http://www.w3.org/2000/svg";
const HOUR = 60;
const MAX_DOTS = 120;
const DOT = 14;

const numbers = new Intl.NumberFormat("en");
export const formatNumber = (count) => numbers.format(count);
/** Anything but a finite number counts as 0. */
export const countOf = (value) => (Number.isFinite(value) ? value : 0);

/** An HTML element with a class and children; texts become text nodes. */
export function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function shape(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

function picture(width, height, description, shapes) {
  const svg = shape("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": description,
  });
  svg.append(...shapes);
  return svg;
}

/** One dot for each agent, or for several when there are many: filled = online, ring = stale, faint = offline. */
export function drawAgents(width, { by_severity: by = {} }) {
  const kinds = [
    { name: "online", count: countOf(by.ok), dot: "fill-live" },
    { name: "stale", count: countOf(by.stale), dot: "ring-warn" },
    { name: "long stale", count: countOf(by.critical_stale), dot: "ring-critical" },
    { name: "offline", count: countOf(by.offline), dot: "fill-faint" },
  ];
  const total = kinds.reduce((sum, { count }) => sum + count, 0);
  const each = Math.max(1, Math.ceil(total / MAX_DOTS));
  // A kind with at least one agent gets at least one dot.
  const dots = kinds.flatMap(({ count, dot }) => Array(Math.ceil(count / each)).fill(dot));
  const columns = Math.max(1, Math.floor(width / DOT));
  const shown = Math.max(dots.length, Math.min(columns * 5, MAX_DOTS));
  const shapes = Array.from({ length: shown }, (_, index) => {
    const kind = dots[index] ?? "ring-empty";
    const [column, row] = [index % columns, Math.floor(index / columns)];
    const r = kind.startsWith("ring") ? 3.5 : 4.5;
    return shape("circle", { class: kind, cx: column * DOT + DOT / 2, cy: row * DOT + DOT / 2, r });
  });
  const words = kinds.map(({ name, count }) => `${formatNumber(count)} ${name}`).join(", ");
  const height = Math.ceil(shown / columns) * DOT;

  const headline = element(
    "p",
    "figure-number",
    element("b", "", formatNumber(kinds[0].count)),
    element("span", "", "online"),
  );
  if (each > 1) headline.append(element("span", "", `· one dot is ${formatNumber(each)} agents`));
  const legend = element("ul", "legend");
  for (const { name, count, dot } of kinds) {
    const sample = picture(10, 10, "", [
      shape("circle", { class: dot, cx: 5, cy: 5, r: dot.startsWith("ring") ? 3.5 : 4.5 }),
    ]);
    sample.setAttribute("aria-hidden", "true");
    legend.append(element("li", "", sample, name, element("b", "", formatNumber(count))));
  }
  return [headline, picture(columns * DOT, height, `Agents: ${words}.`, shapes), legend];
}

/** Sixty bars, one for each minute; the last minute has not ended. */
export function drawMinutes(width, { current_window: { published_envelopes_by_minute: counted = [] } = {} }) {
  const bars = Array.from({ length: HOUR }, (_, index) => countOf(counted[index]?.count));
  const top = ceiling(Math.max(...bars));
  const [left, plotTop, height, foot] = [formatNumber(top).length * 8 + 10, 8, 150, 22];
  const step = (width - left) / HOUR;
  const y = (count) => plotTop + height - (count / top) * height;

  const rules = [top, top / 2, 0]
    .filter(Number.isInteger)
    .flatMap((count) => [
      shape("line", { class: "rule", x1: left, x2: width, y1: y(count), y2: y(count) }),
      shape("text", { class: "end", x: left - 8, y: y(count) + 4 }, formatNumber(count)),
    ]);
  const columns = bars.flatMap((count, index) => {
    if (count === 0) return [];
    const barHeight = Math.max(1.5, (count / top) * height);
    const kind = index === HOUR - 1 ? "fill-live running" : "fill-live";
    const gap = step > 5 ? 2 : 1;
    const box = {
      x: left + index * step,
      y: plotTop + height - barHeight,
      width: step - gap,
      height: barHeight,
      rx: 1,
    };
    return [shape("rect", { class: kind, ...box })];
  });
  const foots = [
    shape("text", { x: left, y: plotTop + height + foot - 4 }, "1 h ago"),
    shape("text", { class: "middle", x: left + (width - left) / 2, y: plotTop + height + foot - 4 }, "30 min"),
    shape("text", { class: "end", x: width, y: plotTop + height + foot - 4 }, "now"),
  ];
  const sum = bars.reduce((all, count) => all + count, 0);
  const words = `${formatNumber(sum)} in the last hour, ${formatNumber(bars[HOUR - 1])} in this minute`;
  const description = `Accepted envelopes by minute: ${words}, ${formatNumber(Math.max(...bars))} at most.`;
  return { drawn: [picture(width, plotTop + height + foot, description, [...rules, ...columns, ...foots])], words };
}

/** The next round number, at least 4, so that a single envelope does not fill the chart. */
function ceiling(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 1)));
  return Math.max(
    4,
    [1, 2, 3, 4, 6, 8, 10].map((n) => n * power).find((n) => n >= most),
  );
}

/** Five bars on a logarithmic scale; between two of them what continues (pale) and how many drop off. */
export function drawFunnel(width, { stages = [], dropoffs = [] }) {
  const isNarrow = width < 480;
  const [left, above, bar, between] = isNarrow ? [0, 18, 18, 24] : [168, 0, 28, 26];
  const [room, stride] = [width - left - 64, above + bar + between];
  const most = Math.max(1, ...stages.map(({ count }) => countOf(count)));
  const endOf = (count) => left + Math.max(2, (room * Math.log1p(countOf(count))) / Math.log1p(most));

  const shapes = stages.flatMap(({ stage, count }, index) => {
    const y = index * stride + above;
    const end = endOf(count);
    const row = [
      shape("text", { x: 0, y: isNarrow ? y - 6 : y + bar / 2 + 4 }, nameOf(stage)),
      shape("rect", {
        class: count === 0 ? "fill-faint" : "fill-live",
        x: left,
        y,
        width: end - left,
        height: bar,
        rx: 2,
      }),
      shape("text", { class: "strong", x: end + 8, y: y + bar / 2 + 4 }, formatNumber(countOf(count))),
    ];
    const next = stages[index + 1];
    if (next === undefined) return row;
    const passed = Math.min(end, endOf(next.count));
    const passage = `M${left} ${y + bar} H${end} L${passed} ${y + bar + between} H${left} Z`;
    const lost = lossOf(dropoffs[index]);
    return [
      shape("path", { class: "fill-pale", d: passage }),
      ...row,
      shape("text", { class: "lost", x: left + 8, y: y + bar + between / 2 + 4 }, lost),
    ];
  });
  const words = stages.map(({ stage, count }) => `${nameOf(stage)} ${formatNumber(countOf(count))}`).join(", ");
  const height = Math.max(0, stages.length * stride - between);
  return [picture(width, height, `Funnel: ${words}.`, shapes)];
}

function lossOf({ dropoff_count: lost, conversion_rate: rate } = {}) {
  if (countOf(lost) === 0) return "";
  const share = Number.isFinite(rate) ? ` · ${formatNumber(Math.round(rate * 100))} % go on` : "";
  return `− ${formatNumber(lost)}${share}`;
}

function nameOf(stage) {
  return String(stage).replaceAll("_", " ");
}

/** A dial of sixty ticks that go out one by one; all are amber when the proof is stale. */
export function drawFreshness({ proof_freshness: state, proof_freshness_window_ms: whole }, msLeft) {
  const size = 208;
  const middle = size / 2;
  const isFresh = state === "fresh" && msLeft >= 0;
  const isStale = state !== "none" && !isFresh;
  const lit = isFresh ? Math.ceil((60 * msLeft) / Math.max(1, countOf(whole))) : 0;
  const ticks = Array.from({ length: 60 }, (_, index) => {
    const angle = (index * Math.PI) / 30;
    const at = (radius) => [middle + radius * Math.sin(angle), middle - radius * Math.cos(angle)];
    const [[x1, y1], [x2, y2]] = [at(index % 5 === 0 ? 84 : 88), at(100)];
    const kind = isStale ? "tick due" : index < lit ? "tick lit" : "tick";
    return shape("line", { class: kind, x1, y1, x2, y2 });
  });
  const [large, small] = isFresh
    ? [clock(msLeft), "until it is due"]
    : isStale
      ? [clock(-msLeft), "overdue"]
      : ["—", "no proof yet"];
  const texts = [
    shape("text", { class: "large middle", x: middle, y: middle + 4 }, large),
    shape("text", { class: "middle", x: middle, y: middle + 24 }, small),
  ];
  return [picture(size, size, `Session proof: ${large} ${small}.`, [...ticks, ...texts])];
}

/** `2:41:09`. */
export function clock(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const two = (n) => String(n).padStart(2, "0");
  return `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}
