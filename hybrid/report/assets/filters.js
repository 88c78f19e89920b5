"use strict";
/* The form above the list. Every choice is written into the address, which alone decides what is shown. */

/** A query with only the filters, in a fixed order, so that equal filters have equal addresses. */
report.onlyFilters = (query) => {
  const kept = new URLSearchParams();
  for (const name of [...new Set(query.keys())].sort()) for (const value of query.getAll(name)) if (value) kept.append(name, value);
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
  // An address may contain a value that the data do not have.
  if (select.value !== chosen) {
    select.append(option(chosen, `${chosen} (0)`));
    select.value = chosen;
  }
  select.addEventListener("change", () => change(select.value));
  return report.el("label", { class: "field" }, report.el("span", { class: "label" }, swatch, label), select);
}

/** Options for a value of any solver or of a given one: tools, outcomes. */
function ofSolvers(rows, name) {
  const wordsOf = (solver, row) => [rows.ofSolver(name, solver, row)].flat();
  const any = counted(rows.all().flatMap((row) => [...new Set(rows.solvers.flatMap((_, solver) => wordsOf(solver, row)))]));
  const group = (label, key, counts) => report.el("optgroup", { label: report.visible(label) },
    [...counts].filter(([word]) => word !== "").sort((x, y) => y[1] - x[1]).map(([word, n]) => option(`${key}/${word}`, word, n)));
  return [
    option("", "any"),
    group("any solver", "*", any),
    ...rows.solvers.map((solver, place) => group(solver, solver, counted(rows.all().flatMap((row) => wordsOf(place, row))))),
  ].filter((one) => one.tagName === "OPTION" || one.children.length);
}

/** A filter for each column that has a menu or a box, in the order of the columns. */
function columnFilters(rows, query, change, changeOfSolver) {
  const own = rows.list.columns.filter(({ filter }) => filter !== "none").map(({ name, title, filter }) => {
    if (filter === "choice") return chooser(title, [option("", "all"), ...[...counted(rows.all().map((row) => String(rows.of(name, row))))].map(([word, n]) => option(word, word, n))], query.get(name) || "", (value) => change(name, value));
    const ticked = filter === "flag" ? rows.all().filter((row) => rows.of(name, row)).length : 0;
    if (!ticked) return null;
    const box = report.el("input", { type: "checkbox", checked: Boolean(query.get(name)) });
    box.addEventListener("change", () => change(name, box.checked ? "1" : ""));
    return report.el("label", { class: "field check" }, box, report.el("span", { text: `${title} (${ticked.toLocaleString("en")})` }));
  });
  const ofSolver = rows.list.solver_columns.map(({ name, title, filter }) => {
    if (filter === "any") {
      const options = ofSolvers(rows, name);
      return options.length > 1 ? chooser(title, options, query.get(name) || "", (value) => change(name, value)) : null;
    }
    if (filter !== "choice") return null;
    return rows.solvers.map((solver, place) => {
      const chosen = query.getAll(name).map((one) => rows.solverAndWord(one)).find(([at]) => at === place);
      const counts = counted(rows.all().map((row) => rows.ofSolver(name, place, row)));
      const options = Object.keys(report.STATES).filter((one) => counts.has(one)).map((one) => option(one, report.STATES[one].word, counts.get(one)));
      return chooser(report.said(solver, "bdi"), [option("", "any"), ...options], chosen ? chosen[1] : "", (value) => changeOfSolver(name, place, value), report.swatch(solver));
    });
  });
  return [...own, ...ofSolver];
}

function pairFilter(rows, overview, query, change) {
  if (!overview.pairs.length) return null;
  const options = overview.pairs.flatMap(([a, b], number) => ["helped", "harmed"].map((what) => {
    const n = rows.matching(new URLSearchParams({ pair: `${number}.${what}` }), overview.pairs, null).length;
    return option(`${number}.${what}`, `${what}: ${a} → ${b}`, n);
  }));
  return chooser("Helped or harmed", [option("", "any"), ...options], query.get("pair") || "", (value) => change("pair", value));
}

/** The order of the list: as in the data, or by a column of the heading. */
function orderChooser(rows, query, change) {
  const orders = [...Object.entries(report.ORDERS), ...rows.solvers.map((name) => [`worst/${name}`, `${name}: worst first`])];
  const options = orders.filter(([order]) => rows.sortable(order)).map(([order, words]) => option(order, words));
  return chooser("Order", [option("", "as in the data"), ...options], query.get("sort") || "", (value) => change("sort", value));
}

/** The form; `go(query, replace)` is called with the filters that were chosen. */
report.filterForm = ({ rows, overview, query, go }) => {
  const now = () => report.onlyFilters(report.route(location.hash).query);
  const change = (name, value, replace = false) => {
    const next = now();
    if (value) next.set(name, value);
    else next.delete(name);
    go(report.onlyFilters(next), replace);
  };
  const changeOfSolver = (name, solver, value) => {
    const next = now();
    const others = next.getAll(name).filter((one) => rows.solverAndWord(one)[0] !== solver);
    next.delete(name);
    for (const one of others) next.append(name, one);
    if (value) next.append(name, `${rows.solvers[solver]}/${value}`);
    go(report.onlyFilters(next), false);
  };
  const search = report.el("input", { type: "search", id: "search", value: query.get("text") || "", placeholder: "id, task, question, answer", autocomplete: "off", spellcheck: "false" });
  // Consecutive letters make one entry in the browser's history.
  search.addEventListener("input", () => change("text", search.value, true));
  return report.el(
    "form",
    { class: "filters", role: "search", "aria-label": "Questions", on: { submit: (event) => event.preventDefault() } },
    report.el("label", { class: "field wide" }, report.el("span", { class: "label", text: "Search" }), search),
    columnFilters(rows, query, change, changeOfSolver),
    pairFilter(rows, overview, query, change),
    orderChooser(rows, query, change),
  );
};
