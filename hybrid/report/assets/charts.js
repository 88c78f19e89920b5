"use strict";
/* The charts, drawn by Observable Plot. Each has a label that says what it shows, and its numbers in a table below.
   Solvers keep their colour and symbol through all charts; names stand next to every mark, so no colour is needed. */

const interval = (row) =>
  row.low === null || row.high === null ? "-" : `[${row.low.toFixed(3)}, ${row.high.toFixed(3)}]`;
const signed = (value) => `${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(3)}`;
const pOf = (value) => (value === null ? "-" : value < 0.001 ? "<0.001" : value.toFixed(3));
const signedTick = d3.format("+.2~f");
const distinct = (values) => [...new Set(values)];
const shortened = (text, chars) => {
  const shown = report.visible(text).replace(/\n/g, " ");
  return shown.length > chars ? `${shown.slice(0, chars - 1)}…` : shown;
};

/** A place that a chart is drawn into, anew whenever its width changes. */
function drawn(label, draw, kind = "") {
  const place = report.el("div", { class: `plot ${kind}`.trim() });
  let width = 0;
  const paint = () => {
    const now = Math.floor(place.clientWidth);
    if (now < 40 || now === width) return;
    width = now;
    const svg = draw(width);
    // One label for the whole: those of Plot's groups say less, and groups without a role may have none.
    for (const group of svg.querySelectorAll("[aria-label]")) group.removeAttribute("aria-label");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
    place.replaceChildren(svg);
  };
  new ResizeObserver(() => requestAnimationFrame(paint)).observe(place);
  return place;
}

/** Plot's options that all charts share. */
const base = (width, options) => ({
  width,
  style: { background: "none", fontFamily: "inherit", fontSize: "12px", overflow: "visible", color: "var(--ink)" },
  ...options,
});

const nameWidth = (names, width) =>
  Math.min(Math.max(...names.map((name) => 6.6 * Math.min(name.length, 28)), 40) + 14, width * 0.42);

// A name that is longer than its margin is cut; the whole of it is in the table.
const fitting = (width, margin) => (name) => shortened(name, Math.max(6, Math.floor((margin - 12) / 6.4)));

function figure(kind, heading, parts, numbers) {
  return report.el(
    "figure",
    { class: `chart ${kind}`, role: "group", "aria-label": heading },
    report.el("figcaption", { text: heading }),
    parts,
    numbers,
  );
}

/** The first panels, and the others folded away: a comparison of many solvers has dozens. */
const firstOf = (panels, shown, kind = "") =>
  panels.length <= shown + 1 ? report.el("div", { class: kind }, panels) : [
    report.el("div", { class: kind }, panels.slice(0, shown)),
    report.fold(`${panels.length - shown} more`, () => report.el("div", { class: kind }, panels.slice(shown))),
  ];

// --- differences ---------------------------------------------------------------------------------------------------

const FORESTS = 4;

function forest(chart) {
  const pairOf = (row) => `${row.b} − ${row.a}`;
  const pairs = distinct(chart.rows.map(pairOf));
  const groups = distinct(chart.rows.map((row) => row.group));
  // The fewer of the two are panels, the more are lines.
  const byGroup = groups.length < pairs.length;
  const panelOf = byGroup ? (row) => row.group : pairOf;
  const lineOf = byGroup ? pairOf : (row) => row.group;
  const bounds = chart.rows.flatMap((row) => [row.value, row.low ?? row.value, row.high ?? row.value, 0]);
  const reach = Math.max(0.05, ...bounds.map(Math.abs)) * 1.05;
  const panels = distinct(chart.rows.map(panelOf)).map((name) => {
    const rows = chart.rows.filter((row) => panelOf(row) === name).map((row, place) => ({ ...row, place }));
    const told = rows.map((row) => `${lineOf(row)} ${signed(row.value)} ${interval(row)}`).slice(0, 20).join("; ");
    return report.el(
      "div",
      { class: "panel" },
      report.said(name, "h4"),
      drawn(`Differences, ${name}: ${report.visible(told)}`, (width) => {
        const wide = width > 560;
        const left = nameWidth(rows.map(lineOf), width);
        const short = fitting(width, left);
        return Plot.plot(base(width, {
          height: rows.length * 24 + 48,
          marginLeft: left,
          marginRight: wide ? 150 : 12,
          marginTop: 4,
          marginBottom: 40,
          x: { domain: [-reach, reach], label: "difference in accuracy or metric →", tickFormat: (value) => (value === 0 ? "0" : signedTick(value)), ticks: Math.max(5, width / 120), grid: true },
          // Of one or two numbers Plot would make a continuous axis.
          y: { type: "point", domain: rows.map((row) => row.place), tickFormat: (place) => short(lineOf(rows[place])), tickSize: 0, label: null },
          marks: [
            Plot.ruleX([0], { stroke: "var(--ink)", strokeWidth: 1.25 }),
            Plot.ruleY(rows.filter((row) => row.low !== null && row.high !== null), { y: "place", x1: "low", x2: "high", stroke: "var(--ink-2)", strokeWidth: 2 }),
            // Filled where the corrected test finds a difference, open where it does not.
            Plot.dot(rows, {
              y: "place", x: "value", r: 4.5, strokeWidth: 2, stroke: (row) => report.look(row.b).colour,
              fill: (row) => (row.p_holm !== null && row.p_holm < 0.05 ? report.look(row.b).colour : "var(--paper)"),
            }),
            wide ? Plot.text(rows, {
              y: "place", frameAnchor: "right", dx: 140, textAnchor: "end", fill: "var(--ink-2)", fontVariant: "tabular-nums",
              text: (row) => `${signed(row.value)}   p ${pOf(row.p_holm)}`,
            }) : null,
          ],
        }));
      }),
    );
  });
  return figure("forest", "Paired differences with 95 % intervals; a filled dot: p < 0.05 after Holm's correction", firstOf(panels, FORESTS), report.numbers(
    "Paired differences",
    [["a", "left"], ["b", "left"], ["group", "left"], ["b − a", "right"], ["95 % interval", "right"], ["p (Holm)", "right"], ["n", "right"]],
    chart.rows.map((row) => [row.a, row.b, row.group, signed(row.value), interval(row), pOf(row.p_holm), String(row.n)]),
  ));
}

// --- accuracy by task ----------------------------------------------------------------------------------------------

const DASHES = { chance: "2,3", human: null, published: "6,3" };

/** A lane for each label so that no two of them overlap; lanes are filled from the lowest. */
function inLanes(marks, toX, width) {
  const ends = [];
  return [...marks].sort((a, b) => a.value - b.value).map((mark) => {
    const text = shortened(mark.label, 22);
    const half = text.length * 3.1 + 4;
    const x = Math.min(Math.max(toX(mark.value), half), width - half);
    let lane = ends.findIndex((end) => end < x - half);
    if (lane < 0) lane = ends.push(0) - 1;
    ends[lane] = x + half;
    return { ...mark, text, lane, x };
  });
}

function bars(chart) {
  const tasks = distinct(chart.rows.map((row) => row.task));
  const panels = tasks.map((task) => {
    const rows = chart.rows.filter((row) => row.task === task);
    const marks = chart.marks.filter((mark) => mark.task === task);
    const n = distinct(rows.map((row) => row.n));
    const told = [
      ...rows.map((row) => `${row.solver} ${row.value.toFixed(3)}`),
      ...marks.map((mark) => `${mark.label} (${mark.kind}) ${mark.value.toFixed(3)}`),
    ].join("; ");
    return report.el(
      "div",
      { class: "panel" },
      report.el("h4", {}, report.said(task, "bdi"), report.el("span", { class: "n", text: n.length === 1 ? ` n = ${n[0]}` : "" })),
      drawn(`Accuracy, ${report.visible(task)}: ${report.visible(told)}`, (width) => {
        const left = nameWidth(rows.map((row) => row.solver), width);
        const right = 40;
        const inner = width - left - right;
        const short = fitting(width, left);
        const labels = inLanes(marks, (value) => value * inner, inner);
        const lanes = Math.max(0, ...labels.map((label) => label.lane + 1));
        return Plot.plot(base(width, {
          height: rows.length * 22 + 30 + lanes * 14,
          marginLeft: left,
          marginRight: right,
          marginTop: 6 + lanes * 14,
          marginBottom: 24,
          x: { domain: [0, 1], ticks: [0, 0.25, 0.5, 0.75, 1], tickFormat: ".2~f", label: null },
          y: { domain: rows.map((row) => row.solver), tickFormat: short, tickSize: 0, label: null, padding: 0.28 },
          marks: [
            Plot.barX(rows, { x: "value", y: "solver", fill: (row) => report.look(row.solver).colour, fillOpacity: 0.85 }),
            Plot.ruleY(rows.filter((row) => row.low !== null && row.high !== null), { y: "solver", x1: "low", x2: "high", stroke: "var(--ink)", strokeWidth: 1.5 }),
            ...labels.map((mark) => Plot.ruleX([mark], { x: "value", stroke: "var(--ink)", strokeWidth: mark.kind === "human" ? 2 : 1.5, strokeDasharray: DASHES[mark.kind] })),
            ...labels.map((mark) => Plot.text([mark], {
              x: (one) => one.x / inner, frameAnchor: "top", dy: -8 - 14 * mark.lane, fontSize: 11, fill: "var(--ink-2)", text: "text",
              title: (one) => report.visible(`${one.label}: ${one.value.toFixed(3)}${one.note ? ` (${one.note})` : ""}`),
            })),
            Plot.text(rows, { x: 1, y: "solver", dx: right - 2, textAnchor: "end", fontVariant: "tabular-nums", fill: "var(--ink)", text: (row) => row.value.toFixed(3) }),
            Plot.ruleX([0], { stroke: "var(--line)" }),
          ],
        }));
      }),
    );
  });
  const key = chart.marks.length ? report.el(
    "p",
    { class: "key" },
    distinct(chart.marks.map((mark) => mark.kind)).map((kind) =>
      report.el("span", { class: "key-item" }, report.el("span", { class: `key-line is-${kind}`, "aria-hidden": "true" }), { chance: "chance", human: "human", published: "published" }[kind])),
  ) : null;
  return figure("bars", "Accuracy by task, with 95 % intervals", [key, report.el("div", { class: "panels" }, panels)], report.numbers(
    "Accuracy by task",
    [["task", "left"], ["what", "left"], ["kind", "left"], ["accuracy", "right"], ["95 % interval", "right"], ["n", "right"], ["note", "left"]],
    tasks.flatMap((task) => [
      ...chart.rows.filter((row) => row.task === task).map((row) => [row.task, row.solver, "solver", row.value.toFixed(3), interval(row), String(row.n), ""]),
      ...chart.marks.filter((mark) => mark.task === task).map((mark) => [mark.task, mark.label, mark.kind, mark.value.toFixed(3), "-", "-", mark.note]),
    ]),
  ));
}

// --- counts in a grid ----------------------------------------------------------------------------------------------

const HEADING_CHARS = 80;
const MATRICES = 6;

function matrix(chart, { bench, section, number }) {
  const most = Math.max(1, ...chart.cells.map((one) => one.n));
  const cells = chart.cells.map((one, place) => ({ ...one, place }));
  const panels = distinct(cells.map((one) => one.panel)).map((name) => {
    const here = cells.filter((one) => one.panel === name);
    const rows = distinct(here.map((one) => one.row));
    const columns = distinct(here.map((one) => one.column));
    const shown = (row, column) => {
      const one = here.find((each) => each.row === row && each.column === column);
      if (!one) return report.el("td", { class: "empty", text: "" });
      const label = [report.el("strong", { text: one.n.toLocaleString("en") }), one.name ? report.said(shortened(one.name, HEADING_CHARS), "small") : null];
      const query = new URLSearchParams({ cell: `${section}.${number}.${one.place}` });
      const td = report.el("td", {}, one.ids ? report.el("a", { href: report.links.list(bench, query) }, label) : report.el("span", {}, label));
      td.style.setProperty("--share", String(one.n / most));
      return td;
    };
    const table = report.el(
      "table",
      { class: "matrix" },
      name ? report.said(name, "caption") : null,
      report.el("thead", {}, report.el("tr", {}, report.el("td"), columns.map((column) => {
        const heading = report.said(shortened(column, HEADING_CHARS), "th");
        heading.scope = "col";
        return heading;
      }))),
      report.el("tbody", {}, rows.map((row) => {
        const heading = report.said(shortened(row, HEADING_CHARS), "th");
        heading.scope = "row";
        return report.el("tr", {}, heading, columns.map((column) => shown(row, column)));
      })),
    );
    return report.scrolling(name || "Counts", table);
  });
  const links = chart.cells.some((one) => one.ids);
  return figure("matrix", links ? "Counts of questions; a number opens the list of its questions" : "Counts of questions", firstOf(panels, MATRICES, "matrices"), null);
}

// --- cost and accuracy ---------------------------------------------------------------------------------------------

function scatter(chart) {
  const told = chart.dots.map((dot) => `${dot.solver}: ${chart.x_label} ${dot.x}, ${chart.y_label} ${dot.y.toFixed(3)}`).join("; ");
  const top = Math.max(...chart.dots.map((dot) => dot.x), 0) || 1;
  const ys = chart.dots.flatMap((dot) => [dot.y, dot.low ?? dot.y, dot.high ?? dot.y]);
  const low = Math.max(0, Math.min(...ys) - 0.05);
  const high = Math.min(1, Math.max(...ys) + 0.05);
  const body = drawn(report.visible(`${chart.y_label} against ${chart.x_label}. ${told}`), (width) => {
    const height = Math.min(420, Math.max(280, width * 0.55));
    // Names of dots at one place stand below each other.
    const taken = [];
    const dots = [...chart.dots].sort((a, b) => b.y - a.y).map((dot) => {
      const onRight = dot.x < top * 0.62;
      const at = { x: (dot.x / top) * width, y: (1 - (dot.y - low) / (high - low || 1)) * height };
      let dy = 0;
      while (taken.some((one) => Math.abs(one.y - at.y - dy) < 14 && one.onRight === onRight && Math.abs(one.x - at.x) < 170)) dy += 14;
      taken.push({ x: at.x, y: at.y + dy, onRight });
      return { ...dot, onRight, dy };
    });
    return Plot.plot(base(width, {
      height,
      marginLeft: 48,
      marginBottom: 46,
      marginRight: 20,
      x: { domain: [0, top * 1.06], label: `${shortened(chart.x_label, 40)} →`, ticks: Math.max(3, width / 110), tickFormat: "~s", grid: true },
      y: { domain: [low, high], label: `↑ ${shortened(chart.y_label, 40)}`, tickFormat: ".2~f", ticks: 6, grid: true },
      symbol: { type: "identity" },
      marks: [
        Plot.ruleX(dots.filter((dot) => dot.low !== null && dot.high !== null), { x: "x", y1: "low", y2: "high", stroke: (dot) => report.look(dot.solver).colour, strokeWidth: 1.5 }),
        Plot.dot(dots, { x: "x", y: "y", r: 6, symbol: (dot) => report.look(dot.solver).symbol, fill: (dot) => report.look(dot.solver).colour, stroke: "var(--paper)", strokeWidth: 1 }),
        ...dots.map((dot) => Plot.text([dot], { x: "x", y: "y", dx: dot.onRight ? 11 : -11, dy: dot.dy, textAnchor: dot.onRight ? "start" : "end", fill: "var(--ink)", stroke: "var(--paper)", strokeWidth: 4, text: (one) => shortened(one.solver, 24) })),
      ],
    }));
  });
  return figure("scatter", report.visible(`${chart.y_label} against ${chart.x_label}`), body, report.numbers(
    "Cost and accuracy",
    [["solver", "left"], [chart.x_label, "right"], [chart.y_label, "right"], ["95 % interval", "right"]],
    chart.dots.map((dot) => [dot.solver, dot.x.toLocaleString("en", { maximumFractionDigits: 6 }), dot.y.toFixed(3), interval(dot)]),
  ));
}

// --- parts that add up ---------------------------------------------------------------------------------------------

const PART_COLOURS = 8;

function stack(chart) {
  const parts = distinct(chart.parts.map((one) => one.part));
  const solvers = distinct(chart.parts.map((one) => one.solver));
  const rows = chart.parts.filter((one) => one.n > 0).map((one) => ({ ...one, number: parts.indexOf(one.part) + 1 }));
  const totals = new Map(solvers.map((solver) => [solver, d3.sum(chart.parts.filter((one) => one.solver === solver), (one) => one.n)]));
  const most = Math.max(1, ...totals.values());
  const told = solvers.map((solver) => `${solver}: ${chart.parts.filter((one) => one.solver === solver).map((one) => `${one.part} ${one.n}`).join(", ")}`).join("; ");
  const key = report.el("ol", { class: "parts" }, parts.map((part, place) => {
    const swatch = report.el("span", { class: "part-number", "aria-hidden": "true", text: String(place + 1) });
    swatch.style.background = `var(--part-${place % PART_COLOURS})`;
    return report.el("li", {}, swatch, report.said(part, "bdi"));
  }));
  const body = drawn(report.visible(`${chart.x_label}. ${told}`), (width) => {
    const left = nameWidth(solvers, width);
    const inner = width - left - 20;
    const short = fitting(width, left);
    // Parts are stacked in the order of the key.
    const stacked = solvers.flatMap((solver) => {
      let sum = 0;
      return rows.filter((row) => row.solver === solver).sort((a, b) => a.number - b.number).map((row) => {
        const from = sum;
        sum += row.n;
        return { ...row, from, to: sum };
      });
    });
    return Plot.plot(base(width, {
      height: solvers.length * 30 + 52,
      marginLeft: left,
      marginRight: 20,
      marginTop: 4,
      marginBottom: 44,
      x: { domain: [0, most], label: `${shortened(chart.x_label, 40)} →`, ticks: Math.max(3, width / 120), tickFormat: "~s" },
      y: { domain: solvers, tickFormat: short, tickSize: 0, label: null, padding: 0.2 },
      marks: [
        Plot.barX(stacked, { x1: "from", x2: "to", y: "solver", fill: (row) => `var(--part-${(row.number - 1) % PART_COLOURS})`, stroke: "var(--paper)", strokeWidth: 1, title: (row) => report.visible(`${row.solver}, ${row.part}: ${row.n}`) }),
        // The number of the key in each part that has room for it.
        Plot.text(stacked.filter((row) => ((row.to - row.from) / most) * inner > 14), { x: (row) => (row.from + row.to) / 2, y: "solver", fill: "var(--part-ink)", fontWeight: 600, text: (row) => String(row.number) }),
      ],
    }));
  });
  return figure("stack", report.visible(chart.x_label), [key, body], report.numbers(
    chart.x_label,
    [["solver", "left"], ...parts.map((part) => [part, "right"])],
    solvers.map((solver) => [solver, ...parts.map((part) => d3.sum(chart.parts.filter((one) => one.solver === solver && one.part === part), (one) => one.n).toLocaleString("en"))]),
  ));
}

const DRAWERS = { forest, bars, matrix, scatter, stack };

/** The figure of a chart; `where` says which section and which of its charts it is. */
report.chart = (chart, where) => DRAWERS[chart.kind](chart, where);
