/** Reads the public reports every few seconds and draws them. A chart whose report fails keeps its last state, dimmed. */

import { countOf, drawAgents, drawFreshness, drawFunnel, drawMinutes, element, formatNumber } from "./figures.js";

const EVERY_MS = 5000;
const TIMEOUT_MS = 4000;

const state = document.getElementById("state");
const panels = ["agents", "minutes", "funnel", "freshness"].map((id) => {
  const figure = document.getElementById(id);
  return {
    id,
    figure,
    picture: figure.querySelector(".picture"),
    caption: figure.querySelector("figcaption"),
    source: figure.querySelector("a.source").getAttribute("href"),
    report: null,
    readAt: 0,
    isLate: false,
  };
});

const draw = {
  agents({ picture, caption, report }) {
    picture.replaceChildren(...drawAgents(widthOf(picture), report));
    caption.textContent = report.next_action;
  },
  minutes({ picture, caption, report }) {
    const { drawn, words } = drawMinutes(widthOf(picture), report);
    picture.replaceChildren(...drawn);
    caption.textContent = `${words}. Every accepted message and session envelope counts, whatever its target’s state.`;
    drawTotals(report);
  },
  funnel({ picture, caption, report }) {
    picture.replaceChildren(...drawFunnel(widthOf(picture), report));
    caption.textContent = `${report.product_insight.summary} Bars are on a logarithmic scale.`;
  },
  freshness({ picture, caption, report, readAt }) {
    const msLeft = countOf(report.ms_until_refresh_due) - (performance.now() - readAt);
    picture.replaceChildren(...drawFreshness(report, msLeft));
    caption.textContent = report.next_operator_action;
  },
};

/** At least that of a phone: a window can have no width for a moment. */
function widthOf(place) {
  return Math.max(240, place.clientWidth);
}

function drawTotals({ totals = {}, monitors = {} }) {
  const cells = [
    ["envelopes published", totals.published_envelopes],
    ["accepted from websockets", totals.websocket_accepted],
    ["sessions requested", monitors.session_requests_accepted],
    ["of them to online targets", monitors.session_requests_accepted_to_online_target],
    ["visitors, about", totals.unique_sessions],
    ["feedback given", totals.feedback_total],
  ];
  const place = document.getElementById("totals");
  place.replaceChildren(
    ...cells.map(([name, count]) =>
      element("div", "", element("dt", "", name), element("dd", "", formatNumber(countOf(count)))),
    ),
  );
  place.hidden = false;
}

/** A report that cannot be drawn counts as failed. */
async function refresh(panel) {
  try {
    const response = await fetch(panel.source, { credentials: "omit", signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) throw new Error(String(response.status));
    panel.report = await response.json();
    panel.readAt = performance.now();
    draw[panel.id](panel);
    panel.isLate = false;
  } catch {
    panel.isLate = true;
  }
  panel.figure.classList.toggle("late", panel.isLate);
}

/** Set only when it changes, since screen readers read it out. */
function tellState() {
  const late = panels.filter(({ isLate }) => isLate).length;
  const startedAt = panels.find(({ report }) => report?.window_started_at)?.report.window_started_at;
  const since = startedAt === undefined ? "" : `: everything since ${minuteOf(startedAt)}`;
  const now = late > 0 ? `${late} of ${panels.length} charts could not be loaded; retrying` : `Live${since}`;
  const text = now + lackIn();
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle("late", late > 0);
}

/** What the reports say of themselves when they lack something. */
function lackIn() {
  const report = panels.map((panel) => panel.report).find((each) => each?.complete === false);
  if (report === undefined) return "";
  const { total, missing } = report.partitions;
  if (missing.length > 0)
    return `. ${missing.length} of ${total} parts of the relay cannot be read now: figures are too low`;
  return `. The relay lost a part of its memory: figures may lack something since ${minuteOf(report.may_lack_since)}`;
}

/** `2026-01-31 14:05 UTC`. */
function minuteOf(epochMs) {
  return `${new Date(epochMs).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

let timer;
let isReading = false;
async function read() {
  if (isReading) return;
  isReading = true;
  clearTimeout(timer);
  if (!document.hidden) await Promise.all(panels.map(refresh));
  tellState();
  isReading = false;
  timer = setTimeout(read, EVERY_MS);
}

/** The dial counts down between two reads. */
function tick() {
  if (document.hidden) return;
  const freshness = panels.find(({ id }) => id === "freshness");
  if (freshness.report !== null) draw.freshness(freshness);
}

let drawnWidth = 0;
function redraw([{ contentRect }]) {
  if (contentRect.width === drawnWidth) return;
  drawnWidth = contentRect.width;
  for (const panel of panels) if (panel.report !== null) draw[panel.id](panel);
}

new ResizeObserver(redraw).observe(document.querySelector(".sheet"));
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) read();
});
setInterval(tick, 1000);
read();
