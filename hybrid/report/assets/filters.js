"use strict";
/* The form above the list. Every choice is written into the address, which alone decides what is shown. */

const FILTERS = ["text", "task", "verdict", "pair", "tool", "outcome", "sampled", "cell"];

/** A query with nothing but filters, in one order, so that equal filters are equal addresses. */
report.onlyFilters = (query) => {
  const kept = new URLSearchParams();
  for (const name of FILTERS) for (const value of query.getAll(name)) if (value) kept.append(name, value);
  return kept;
};

function counted(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) || 0) + 1);
  return counts;
}

const option = (value, words, count) =>
  report.el("option", { value, text: report.visible(count === undefined ? words : `${words} (${count.toLocaleString("en")})`) });

function chooser(label, options, chosen, change, swatch = null) {
  const select = report.el("select", {}, options);
  select.value = chosen;
  // An address may ask for what the data do not have.
  if (select.value !== chosen) {
    select.append(option(chosen, `${chosen} (0)`));
    select.value = chosen;
  }
  select.addEventListener("change", () => change(select.value));
  return report.el("label", { class: "field" }, report.el("span", { class: "label" }, swatch, label), select);
}

/** Options for a word that any solver or one of them has: tools, outcomes. */
function ofSolvers(rows, wordsOf, anyLabel) {
  const any = counted(Array.from({ length: rows.n }, (_, row) => [...new Set(rows.solvers.flatMap((_, s) => wordsOf(s, row)))]).flat());
  const group = (label, name, counts) => report.el("optgroup", { label: report.visible(label) },
    [...counts].filter(([word]) => word !== "").sort((x, y) => y[1] - x[1]).map(([word, n]) => option(`${name}/${word}`, word, n)));
  return [
    option("", anyLabel),
    group("any solver", "*", any),
    ...rows.solvers.map((name, s) => group(name, name, counted(Array.from({ length: rows.n }, (_, row) => wordsOf(s, row)).flat()))),
  ].filter((one) => one.tagName === "OPTION" || one.children.length);
}

/** The form; `go(query, replace)` is called with the filters that were chosen. */
report.filterForm = ({ rows, overview, query, go }) => {
  const change = (name, value, replace = false) => {
    const next = report.onlyFilters(report.route(location.hash).query);
    if (value) next.set(name, value);
    else next.delete(name);
    go(report.onlyFilters(next), replace);
  };
  const changeVerdict = (solver, value) => {
    const next = report.onlyFilters(report.route(location.hash).query);
    const others = next.getAll("verdict").filter((one) => rows.ofSolver(one)[0] !== solver);
    next.delete("verdict");
    for (const one of others) next.append("verdict", one);
    if (value) next.append("verdict", `${rows.solvers[solver]}/${value}`);
    go(report.onlyFilters(next), false);
  };

  const search = report.el("input", { type: "search", id: "search", value: query.get("text") || "", placeholder: "id, task, question, answer", autocomplete: "off", spellcheck: "false" });
  // Letters typed one after the other are one step back, not many.
  search.addEventListener("input", () => change("text", search.value, true));

  const tasks = counted(Array.from({ length: rows.n }, (_, row) => rows.task(row)));
  const verdicts = rows.solvers.map((name, solver) => {
    const states = counted(rows.states[solver]);
    const chosen = query.getAll("verdict").map((one) => rows.ofSolver(one)).find(([s]) => s === solver);
    const options = [option("", "any"), ...Object.keys(report.STATES).filter((state) => states.has(state)).map((state) => option(state, report.STATES[state].word, states.get(state)))];
    return chooser(report.said(name, "bdi"), options, chosen ? chosen[1] : "", (value) => changeVerdict(solver, value), swatchOf(name));
  });
  const pairs = overview.pairs.length ? chooser("Helped or harmed", [
    option("", "any"),
    ...overview.pairs.flatMap(([a, b], number) => ["helped", "harmed"].map((what) => {
      const n = rows.matching(new URLSearchParams({ pair: `${number}.${what}` }), overview.pairs, null).length;
      return option(`${number}.${what}`, `${what}: ${a} → ${b}`, n);
    })),
  ], query.get("pair") || "", (value) => change("pair", value)) : null;
  const toolOptions = ofSolvers(rows, (s, row) => rows.tools(s, row), "any");
  const sampled = report.el("input", { type: "checkbox", checked: Boolean(query.get("sampled")) });
  sampled.addEventListener("change", () => change("sampled", sampled.checked ? "1" : ""));

  return report.el(
    "form",
    { class: "filters", role: "search", "aria-label": "Questions", on: { submit: (event) => event.preventDefault() } },
    report.el("label", { class: "field wide" }, report.el("span", { class: "label", text: "Search" }), search),
    chooser("Task", [option("", "all"), ...[...tasks].map(([task, n]) => option(task, task, n))], query.get("task") || "", (value) => change("task", value)),
    verdicts,
    pairs,
    toolOptions.length > 1 ? chooser("Tool called", toolOptions, query.get("tool") || "", (value) => change("tool", value)) : null,
    chooser("Outcome", ofSolvers(rows, (s, row) => [rows.outcome(s, row)], "any"), query.get("outcome") || "", (value) => change("outcome", value)),
    rows.list.sampled.length ? report.el("label", { class: "field check" }, sampled, report.el("span", { text: `on the error sheet (${rows.list.sampled.length})` })) : null,
  );
};

function swatchOf(name) {
  const swatch = report.el("span", { class: "swatch", "aria-hidden": "true" });
  swatch.style.background = report.look(name).colour;
  return swatch;
}

/** The cell of a matrix that a query names, in words; null for none. */
report.cellName = (query, overview, cells) => {
  const name = query.get("cell");
  if (name === null) return null;
  const [section, chart, place] = name.split(".");
  const found = overview.sections.find((one) => one.id === section);
  const one = found && found.charts[chart] && found.charts[chart].cells && found.charts[chart].cells[place];
  if (!one) return "a cell that this report does not have";
  const absent = cells && cells[name] ? cells[name].absent : 0;
  const words = [found.title, one.panel, one.name || `${one.row} × ${one.column}`].filter(Boolean).join(" · ");
  return absent ? `${words} (${absent} more are not in this list)` : words;
};
