"use strict";
/* Parts of charts: elements of SVG, axes, and labels that wrap instead of being cut. */

const FONT_PX = 12;
const LINE_PX = 14;
const LABEL_LINES = 4;

report.svg = (tag, props = {}, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
};

const pen = document.createElement("canvas").getContext("2d");
const widths = new Map();

/** Width of a text in pixels as charts write it. */
report.widthOf = (text) => {
  if (!widths.has(text)) {
    pen.font = `${FONT_PX}px ${getComputedStyle(document.body).fontFamily}`;
    // Because of hinting, measured and drawn widths differ a little.
    widths.set(text, 1.03 * pen.measureText(text).width);
  }
  return widths.get(text);
};

function brokenWord(word, most) {
  const parts = [""];
  for (const char of word) {
    if (parts.at(-1) && report.widthOf(parts.at(-1) + char) > most) parts.push("");
    parts[parts.length - 1] += char;
  }
  return parts;
}

/** The lines of a label, each at most `most` pixels wide; only an extremely long text is cut. */
report.lines = (text, most) => {
  const words = report.visible(text).slice(0, 400).match(/[(\[]*[^\s_\-/(\[]*[_\-/]?\s*|./gu) || [];
  const lines = [""];
  for (const word of words.filter(Boolean).flatMap((one) => (report.widthOf(one.trimEnd()) > most ? brokenWord(one, most) : [one]))) {
    if (lines.at(-1) && report.widthOf((lines.at(-1) + word).trimEnd()) > most) lines.push("");
    lines[lines.length - 1] += word;
  }
  const kept = lines.map((line) => line.trim()).filter(Boolean);
  return kept.length <= LABEL_LINES ? kept : [...kept.slice(0, LABEL_LINES - 1), `${kept[LABEL_LINES - 1].slice(0, -1)}…`];
};

/** A text of several lines, centred at the height y. */
report.label = (lines, x, y, props = {}) =>
  report.svg("text", { x, fill: "var(--ink)", "font-size": FONT_PX, ...props }, lines.map((line, place) =>
    report.svg("tspan", { x, y: y + 4 + LINE_PX * (place - (lines.length - 1) / 2) }, line)));

/** Round numbers from low to high, about `n` of them. */
report.ticks = (low, high, n) => {
  const raw = (high - low) / Math.max(1, n) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= raw * 0.999);
  const found = [];
  for (let tick = Math.ceil(low / step - 1e-9); tick * step <= high + step * 1e-9; tick += 1) found.push(tick * step || 0);
  return found;
};

report.tickText = (value) => (Math.abs(value) >= 10000 ? value.toLocaleString("en", { notation: "compact" }) : String(Number(value.toPrecision(6)))).replace("-", "−");

/** A horizontal axis at the height y: lines over `height` pixels, numbers, and below them the measured quantity. */
report.axis = ({ toX, low, high, y, height, width, label = "", text = report.tickText }) => [
  report.ticks(low, high, Math.max(2, Math.floor(width / 70))).map((tick) => [
    report.svg("line", { x1: toX(tick), x2: toX(tick), y1: y - height, y2: y, stroke: "var(--line)" }),
    report.svg("text", { x: toX(tick), y: y + 15, "text-anchor": "middle", fill: "var(--ink-2)", "font-size": FONT_PX - 1 }, text(tick)),
  ]),
  label ? report.label(report.lines(label, toX(high)).slice(0, 1), toX(high), y + 27, { "text-anchor": "end", fill: "var(--ink-2)", "font-size": FONT_PX - 1 }) : null,
];

/** The symbol of a solver around a point. */
report.symbol = (name, x, y, radius, props) => {
  if (name === "circle") return report.svg("circle", { cx: x, cy: y, r: radius, ...props });
  const corners = { square: [[-1, -1], [1, -1], [1, 1], [-1, 1]], triangle: [[0, -1.25], [1.15, 0.85], [-1.15, 0.85]], diamond: [[0, -1.35], [1.35, 0], [0, 1.35], [-1.35, 0]] }[name];
  return report.svg("polygon", { points: corners.map(([dx, dy]) => `${x + radius * dx},${y + radius * dy}`).join(" "), ...props });
};

/** A container in which a chart is redrawn whenever its width changes. `draw(width)` returns height and parts. */
report.drawn = (label, draw) => {
  const place = report.el("div", { class: "plot" });
  let width = 0;
  const paint = () => {
    const now = Math.floor(place.clientWidth);
    if (now < 40 || now === width) return;
    width = now;
    const { height, parts } = draw(width);
    const links = parts.flat(Infinity).some((one) => one && one.querySelector && (one.matches("a") || one.querySelector("a")));
    place.replaceChildren(report.svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: links ? "group" : "img", "aria-label": report.visible(label), "font-family": getComputedStyle(document.body).fontFamily }, parts));
  };
  new ResizeObserver(() => requestAnimationFrame(paint)).observe(place);
  return place;
};
