"use strict";
/* The charts: points with intervals, parts that add up, and one number plotted against another. Each chart is drawn from
   rows of the result table, names its numbers in its label, and can be saved. Solvers keep colour and symbol in all
   charts; names stand next to every mark, so that no colour is needed. */

const signed = (value, digits = 3) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
const distinct = (values) => [...new Set(values)];
const sum = (values) => values.reduce((all, one) => all + one, 0);
const hasEnds = (row) => row.low !== undefined && row.high !== undefined;
const pairName = (row) => [row.b, row.a].filter(Boolean).join(" − ");
const isFraction = (rows) => rows.every((row) => row.unit === "fraction");
const number = (row) => (row.unit === "fraction" ? row.value.toFixed(3) : Number(row.value.toPrecision(4)).toLocaleString("en"));

/** A chart with its heading, its menu if `where` has one, and the buttons that save it. */
function figure(kind, title, rows, where, ...body) {
  return report.el("figure", { class: `chart ${kind}`, role: "group", "aria-label": report.visible(title) },
    report.el("figcaption", {}, report.said(title, "span"), where.menu, report.saveButtons(where.name, rows)), body);
}

/** A link around a mark, with a name for screen readers. */
const linked = (href, name, ...marks) =>
  href ? report.svg("a", { href, "aria-label": report.visible(name) }, marks) : report.svg("g", {}, marks);

// --- points with intervals -------------------------------------------------------------------------------------------

/* A line: { label, row, look, text, href, told }; one with `from` is drawn as a bar. `marks` are reference lines
   across the chart: { label, kind, value, note }. */
function points(lines, { low, high, last = high, zero = false, marks = [], label = "" }) {
  return (width) => {
    const right = 8 + Math.max(...lines.map((line) => report.widthOf(line.text)));
    const left = Math.min(10 + Math.max(...lines.map((line) => report.widthOf(report.visible(line.label)))), Math.max(80, width * 0.45));
    const inner = width - left - right - 8;
    const toX = (value) => left + ((value - low) / (high - low || 1)) * inner;
    const labels = lines.map((line) => report.lines(line.label, left - 10));
    // Many lines are closer together, so that nine solvers fit on a phone's first screen.
    const [least, between] = lines.length > 6 ? [16, 2] : [20, 4];
    const heights = labels.map((one) => Math.max(least, one.length * LINE_PX + between));
    const named = inLanes(marks, toX, width);
    const top = 4 + named.lanes * LINE_PX;
    const bottom = top + sum(heights);
    let y = top;
    const drawnLines = lines.map(({ row, from, look, text, href, told }, place) => {
      const middle = y + heights[place] / 2;
      y += heights[place];
      const filled = look.filled === false ? "var(--paper)" : look.colour;
      return linked(href, told,
        report.svg("rect", { x: 0, y: middle - heights[place] / 2, width, height: heights[place], fill: "transparent", class: "hit" }),
        report.label(labels[place], left - 10, middle, { "text-anchor": "end" }),
        from === undefined ? null : barTo(toX(from), toX(row.value), middle, look, place + 1 < lines.length && (heights[place] + heights[place + 1]) / 2),
        hasEnds(row) ? report.svg("line", { x1: toX(row.low), x2: toX(row.high), y1: middle, y2: middle, stroke: from === undefined ? look.colour : "var(--ink)", "stroke-width": 2 }) : null,
        from !== undefined ? null : report.symbol(look.symbol, toX(row.value), middle, 4.5, { fill: filled, stroke: look.colour, "stroke-width": 2 }),
        report.label([text], width - 2, middle, { "text-anchor": "end", "font-variant-numeric": "tabular-nums" }),
        report.svg("title", {}, report.visible(told)));
    });
    return {
      height: bottom + (label ? 36 : 22),
      parts: [
        report.axis({ toX, low, high: last, y: bottom, height: bottom - top, width: inner, label }),
        zero ? report.svg("line", { x1: toX(0), x2: toX(0), y1: top, y2: bottom, stroke: "var(--ink)", "stroke-width": 1.25 }) : null,
        named.marks.map((mark) => [
          report.svg("line", { x1: toX(mark.value), x2: toX(mark.value), y1: top - 2, y2: bottom, stroke: "var(--ink)", "stroke-width": 1.5, "stroke-dasharray": DASHES[mark.kind] }),
          report.svg("text", { x: mark.x, y: top - 6 - LINE_PX * mark.lane, "text-anchor": "middle", fill: "var(--ink-2)", "font-size": FONT_PX - 1 }, mark.text, report.svg("title", {}, report.visible(`${mark.label}: ${mark.value.toFixed(3)}${mark.note ? ` (${mark.note})` : ""}`))),
        ]),
        drawnLines,
      ],
    };
  };
}

/** A bar at the height y, and from its end a line to the next one, `next` pixels below. */
const barTo = (x1, x2, y, look, next) => [
  report.svg("rect", { x: Math.min(x1, x2), y: y - 6, width: Math.max(1, Math.abs(x2 - x1)), height: 12, fill: look.paper || look.colour, stroke: look.colour }),
  next ? report.svg("line", { x1: x2, x2, y1: y + 6, y2: y + next - 6, stroke: "var(--line-2)" }) : null,
];

const DASHES = { chance: "2,3", human: null, published: "6,3" };

/** Names of marks in lanes, so that no two overlap; lanes are filled from the lowest. */
function inLanes(marks, toX, width) {
  const ends = [];
  const placed = [...marks].sort((a, b) => a.value - b.value).map((mark) => {
    const words = `${mark.kind === "published" ? "paper: " : ""}${mark.label} ${mark.value.toFixed(2)}`;
    const [text] = report.lines(words, width * 0.9);
    const half = report.widthOf(text) / 2 + 4;
    const x = Math.min(Math.max(toX(mark.value), half), width - half);
    let lane = ends.findIndex((end) => end < x - half);
    if (lane < 0) lane = ends.push(0) - 1;
    ends[lane] = x + half;
    return { ...mark, text, lane, x };
  });
  return { marks: placed, lanes: ends.length };
}

const told = (name, row) => `${name}: ${row.unit === "fraction" && row.b ? signed(row.value) : number(row)}${hasEnds(row) ? ` [${row.low.toFixed(3)}, ${row.high.toFixed(3)}]` : ""}${row.p_holm === undefined ? "" : `, p ${row.p_holm < 0.001 ? "< 0.001" : row.p_holm.toFixed(3)}`}${row.n === undefined ? "" : `, n ${row.n}`}`;

/** The ends of an axis that holds all values and intervals. */
function reach(rows, fraction) {
  const ends = rows.flatMap((row) => [row.value, row.low ?? row.value, row.high ?? row.value]);
  if (fraction) return { low: 0, high: 1 };
  const low = Math.min(0, ...ends);
  const high = Math.max(0, ...ends);
  const spare = 0.04 * (high - low || 1);
  return { low: low < 0 ? low - spare : 0, high: high + spare };
}

const panelled = (names, panel) => report.el("div", { class: names.length > 1 ? "panels" : "" }, names.map(panel));

/** Values of solvers: a panel for each task or metric, a line for each solver. */
function bars(chart, where) {
  const tasks = distinct(chart.rows.map((row) => row.group || row.metric));
  const body = panelled(tasks, (task) => {
    const rows = chart.rows.filter((row) => (row.group || row.metric) === task);
    const marks = (chart.marks || []).filter((mark) => mark.task === task);
    const lines = rows.map((row) => ({ label: row.a, row, look: report.look(row.a), text: number(row), told: told(row.a, row), href: where.ofSolver && where.ofSolver(row) }));
    const words = [...lines.map((line) => line.told), ...marks.map((mark) => `${mark.label} (${mark.kind}) ${mark.value.toFixed(3)}`)];
    return report.el("div", { class: "panel" }, tasks.length > 1 ? report.said(task, "h4") : null,
      report.drawn(`${report.visible(task)}: ${words.join("; ")}`, points(lines, { ...reach(rows, isFraction(rows)), marks })));
  });
  return figure("bars", chart.title, chart.rows, where, body);
}

/** Paired differences: of pairs and tasks, the smaller group becomes panels, the larger one lines. */
function intervals(chart, where) {
  const quantities = distinct(chart.rows.map((row) => row.quantity)).length;
  const groupOf = (row) => (quantities > 1 ? [row.group, row.quantity].filter(Boolean).join(": ") : row.group || row.metric || row.quantity);
  const pairs = distinct(chart.rows.map(pairName));
  const byPair = pairs.length === 1 || pairs.length <= distinct(chart.rows.map(groupOf)).length;
  const [panelOf, lineOf] = byPair ? [pairName, groupOf] : [groupOf, pairName];
  const ends = reach(chart.rows, false);
  const body = panelled(distinct(chart.rows.map(panelOf)), (name) => {
    const rows = chart.rows.filter((row) => panelOf(row) === name);
    const lines = rows.map((row) => ({
      label: lineOf(row), row, text: signed(row.value), told: told(lineOf(row), row), href: where.ofTask && where.ofTask(row),
      // Dots are filled if the corrected test finds a difference, else open.
      look: { ...report.look(row.b || row.a), symbol: "circle", filled: row.p_holm !== undefined && row.p_holm < 0.05 },
    }));
    return report.el("div", { class: "panel" }, where.menu ? null : report.said(name, "h4"),
      report.drawn(`${report.visible(name)}: ${lines.map((line) => line.told).join("; ")}`, points(lines, { ...ends, zero: true, label: rows.some((row) => row.family) ? "difference; filled: p < 0.05 (Holm)" : "difference, not tested" })));
  });
  return figure("intervals", chart.title, chart.rows, where, body);
}

const cut = (value) => Math.min(1, Math.max(0, value));
const STEP_LOOKS = { 1: { colour: "var(--right)", paper: "var(--right-paper)" }, "-1": { colour: "var(--wrong)", paper: "var(--wrong-paper)" } };

/** Steps from the accuracy of one solver to that of another; each starts where the previous one ends; a panel for each
 * task. */
function waterfall(chart, where) {
  const panels = distinct(chart.rows.map((row) => row.group)).map((task) => {
    const rows = chart.rows.filter((row) => row.group === task);
    let at = 0;
    const whole = (name) => {
      const row = { ...rows[0], a: name, b: "", value: at, low: undefined };
      return { label: name, row, from: 0, look: report.look(name), text: number(row), told: told(name, row), href: where.ofSolver && where.ofSolver(row) };
    };
    const lines = rows.map((row) => {
      const [from, place] = [at, chart.rows.indexOf(row)];
      const sign = chart.signs[place];
      at += (sign || 1) * row.value;
      if (!sign) return whole(row.a);
      const label = `${sign < 0 ? "−" : "+"} ${row.quantity}`;
      // An interval around a start may extend beyond the range of an accuracy, where the axis ends.
      const ends = hasEnds(row) ? { low: cut(from + sign * row.low), high: cut(from + sign * row.high) } : {};
      return { label, row: { value: at, ...ends }, from, look: STEP_LOOKS[sign], text: number(row), told: told(label, { ...row, b: "" }), href: row.questions && where.ofRow(place) };
    });
    return { task, n: rows[0].n, lines: [...lines, whole(rows[0].b)] };
  });
  const ends = reach(panels.flatMap((one) => one.lines.map((line) => line.row)), false);
  return figure("waterfall", chart.title, chart.rows, where, panelled(panels, ({ task, n, lines }) =>
    report.el("div", { class: "panel" }, task ? report.said(task, "h4") : null,
      report.drawn(`${report.visible(task || chart.title)}: ${lines.map((line) => line.told).join("; ")}`, points(lines, { ...ends, last: Math.min(ends.high, 1), label: `accuracy, n = ${n}; 95 % intervals, cut at 0 and 1` })))));
}

// --- parts that add up -----------------------------------------------------------------------------------------------

const PART_COLOURS = 8;
const BAR_PX = 20;
const lineName = (row) => [row.a, row.b].filter(Boolean).join(" → ");

function stack(chart, where) {
  const partOf = (row) => row.metric || row.quantity;
  const parts = distinct(chart.rows.map(partOf));
  const names = distinct(chart.rows.map(lineName));
  const bySolver = names.map((name) => ({ name, rows: chart.rows.filter((row) => lineName(row) === name && row.value > 0).sort((a, b) => parts.indexOf(partOf(a)) - parts.indexOf(partOf(b))) }));
  const most = Math.max(1, ...bySolver.map((one) => sum(one.rows.map((row) => row.value))));
  const colour = (row) => `var(--part-${parts.indexOf(partOf(row)) % PART_COLOURS})`;
  const words = bySolver.map((one) => `${one.name}: ${one.rows.map((row) => `${partOf(row)} ${row.value}`).join(", ")}`).join("; ");
  const body = report.drawn(words, (width) => {
    const left = Math.min(10 + Math.max(...names.map((name) => report.widthOf(report.visible(name)))), width * 0.4);
    const labels = names.map((name) => report.lines(name, left - 10));
    const heights = labels.map((one) => Math.max(BAR_PX + 8, one.length * LINE_PX + 6));
    const inner = width - left - 12;
    const toX = (value) => left + (value / most) * inner;
    const bottom = 4 + sum(heights);
    let y = 4;
    const lines = bySolver.map((one, place) => {
      const middle = y + heights[place] / 2;
      y += heights[place];
      let at = 0;
      return [report.label(labels[place], left - 10, middle, { "text-anchor": "end" }), one.rows.map((row) => {
        const [from, to] = [toX(at), toX(at + row.value)];
        at += row.value;
        const key = String(parts.indexOf(partOf(row)) + 1);
        return [
          report.svg("rect", { x: from, y: middle - BAR_PX / 2, width: Math.max(0.5, to - from), height: BAR_PX, fill: colour(row), stroke: "var(--paper)" }, report.svg("title", {}, report.visible(`${one.name}, ${partOf(row)}: ${row.value}`))),
          to - from > 16 ? report.label([key], (from + to) / 2, middle, { "text-anchor": "middle", fill: "var(--part-ink)", "font-weight": 600 }) : null,
        ];
      })];
    });
    return { height: bottom + 36, parts: [report.axis({ toX, low: 0, high: most, y: bottom, height: bottom - 4, width: inner, label: chart.rows[0].unit }), lines] };
  });
  const key = report.el("ol", { class: "parts" }, parts.map((part, place) => {
    const swatch = report.el("span", { class: "part-number", "aria-hidden": "true", text: String(place + 1) });
    swatch.style.background = `var(--part-${place % PART_COLOURS})`;
    return report.el("li", {}, swatch, report.said(part, "bdi"));
  }));
  // Small parts are hard to hit with a finger, so every count with questions is also a link.
  const links = bySolver.filter((one) => one.rows.some((row) => row.questions)).map((one) => report.el("li", {}, report.said(one.name, "strong"), one.rows.filter((row) => row.questions).map((row) =>
    report.el("a", { class: "badge", href: where.ofRow(chart.rows.indexOf(row)) }, report.said(partOf(row), "bdi"), ` ${row.value}`))));
  return figure("stack", chart.title, chart.rows, where, key, body, links.length ? report.el("ul", { class: "counts" }, links) : null);
}

// --- one number against another ------------------------------------------------------------------------------------

function scatter(chart, where) {
  const cost = new Map(chart.rows.filter((row) => row.quantity !== "value").map((row) => [row.a, row]));
  const dots = chart.rows.filter((row) => row.quantity === "value" && cost.has(row.a)).map((row) => ({ row, x: cost.get(row.a).value }));
  const [unit] = [...cost.values()].map((row) => row.quantity);
  const most = Math.max(...dots.map((dot) => dot.x), 0) || 1;
  const ys = reach(dots.map((dot) => dot.row), isFraction(dots.map((dot) => dot.row)));
  const words = dots.map((dot) => `${dot.row.a}: ${dot.x.toPrecision(3)} ${unit}, ${number(dot.row)}`).join("; ");
  const body = report.drawn(words, (width) => {
    const [left, top, height] = [44, 12, Math.min(360, Math.max(240, width * 0.5))];
    const toX = (value) => left + (value / (1.06 * most)) * (width - left - 12);
    const toY = (value) => top + (1 - (value - ys.low) / (ys.high - ys.low)) * height;
    const taken = [];
    const marks = [...dots].sort((a, b) => b.row.value - a.row.value).map(({ row, x }) => {
      const look = report.look(row.a);
      const onRight = toX(x) < width * 0.6;
      const lines = report.lines(row.a, (onRight ? width - toX(x) : toX(x) - left) - 16);
      let y = toY(row.value);
      // The names of dots at the same position are below each other.
      while (taken.some((one) => one.onRight === onRight && Math.abs(one.x - toX(x)) < 170 && Math.abs(one.y - y) < LINE_PX * Math.max(one.lines, lines.length))) y += 3;
      taken.push({ x: toX(x), y, onRight, lines: lines.length });
      return [
        hasEnds(row) ? report.svg("line", { x1: toX(x), x2: toX(x), y1: toY(row.low), y2: toY(row.high), stroke: look.colour, "stroke-width": 1.5 }) : null,
        report.symbol(look.symbol, toX(x), toY(row.value), 5.5, { fill: look.colour, stroke: "var(--paper)" }),
        report.label(lines, toX(x) + (onRight ? 11 : -11), y, { "text-anchor": onRight ? "start" : "end" }),
      ];
    });
    return {
      height: Math.max(top + height, ...taken.map((one) => one.y + 8)) + 36,
      parts: [
        report.axis({ toX, low: 0, high: most * 1.06, y: top + height, height, width: width - left, label: unit }),
        report.ticks(ys.low, ys.high, 5).map((tick) => [
          report.svg("line", { x1: left, x2: width - 12, y1: toY(tick), y2: toY(tick), stroke: "var(--line)" }),
          report.label([report.tickText(tick)], left - 6, toY(tick), { "text-anchor": "end", fill: "var(--ink-2)" }),
        ]),
        marks,
      ],
    };
  });
  return figure("scatter", chart.title, chart.rows, where, body);
}

const DRAWERS = { bars, intervals, stack, counts: stack, scatter, waterfall };

/** The figure of a chart. `where` has the name of saved files without suffix, and makes the links of its marks. */
report.chart = (chart, where) => DRAWERS[chart.kind](chart, where);
