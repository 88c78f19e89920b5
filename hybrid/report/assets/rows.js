"use strict";
/* The list of questions in the columns of list.js, and the rows that a set of filters keeps. The file itself names its
   columns and their filters (hybrid/report/columns.py). */

const cell = (column, row) => column.values[column.codes[row]];

/** The orders of the list, by name in an address; `worst` is also followed by a solver: `worst/controller`. */
report.ORDERS = { worst: "worst first", seconds: "slowest first", cost: "dearest first" };
// How bad a verdict is; a question that a solver does not have is no worse than a right answer.
const BADNESS = { failed: 6, none: 5, wrong: 4, partly: 3, unscored: 2, open: 1, right: 0, absent: 0 };

report.Rows = class {
  constructor(list, solvers) {
    this.list = list;
    this.solvers = solvers;
    this.n = list.ids.length;
    this.haystacks = [];
    this.places = null;
  }

  id(row) { return this.list.ids[row]; }
  of(name, row) { return cell(this.list.cells[name], row); }
  /** The text that a cell shows; a search also covers hidden columns. */
  shown(name, row) { const { shown, values, codes } = this.list.cells[name]; return (shown || values)[codes[row]]; }
  ofSolver(name, solver, row) { return cell(this.list.solvers[solver][name], row); }
  state(solver, row) { return this.ofSolver("verdict", solver, row); }

  /** The rows on the error sheet. */
  sampled() { return this.all().filter((row) => this.of("sampled", row)); }
  all() { return Array.from({ length: this.n }, (_, row) => row); }

  /** The row of an id from an address; -1 if there is none. */
  find(id) {
    if (!this.places) this.places = new Map(this.list.ids.map((one, row) => [report.sayable(one), row]));
    const row = this.places.get(id);
    return row === undefined ? -1 : row;
  }

  /** The text that a search covers, in lower case: the id and every column except boxes. */
  haystack(row) {
    if (this.haystacks[row] === undefined) {
      const own = this.list.columns.filter((one) => one.filter !== "flag" && one.filter !== "none").map((one) => this.of(one.name, row));
      const searched = this.list.solver_columns.filter((one) => one.filter === "search");
      const said = this.solvers.flatMap((_, solver) => searched.map((one) => this.ofSolver(one.name, solver, row)));
      this.haystacks[row] = [this.id(row), ...own, ...said].join("\n").toLowerCase();
    }
    return this.haystacks[row];
  }

  /** Sort key of a row in an order: the largest comes first, null last. */
  rank(order, row) {
    if (order === "seconds" || order === "cost") return this.of(order, row);
    const only = this.solvers.indexOf(order.slice("worst/".length));
    const states = this.solvers.flatMap((_, solver) => (only < 0 || only === solver ? [this.state(solver, row)] : []));
    return states.reduce((sum, state) => sum + BADNESS[state], 0);
  }

  /** Whether an order is meaningful; it is not if no row has a value. */
  sortable(order) { return !["seconds", "cost"].includes(order) || this.list.cells[order].values.some((value) => value !== null); }

  /** Rows in an order; equal ones stay as they are in the data. */
  sorted(rows, order) {
    if (!order || !Object.hasOwn(report.ORDERS, order.split("/", 1)[0])) return rows;
    const ranks = new Map(rows.map((row) => [row, this.rank(order, row) ?? -Infinity]));
    return [...rows].sort((a, b) => (ranks.get(a) === ranks.get(b) ? 0 : ranks.get(b) - ranks.get(a)));
  }

  /** The rows that all filters of a query keep, in its order. `counted` is the count that the query names, with its
   * rows. */
  matching(query, pairs, counted) {
    const keeps = this.tests(query, pairs);
    const kept = ((query.get("cell") !== null && counted && counted.questions) || this.all()).filter((row) => keeps.every((keep) => keep(row)));
    return this.sorted(kept, query.get("sort"));
  }

  tests(query, pairs) {
    const keeps = [];
    for (const { name, filter } of this.list.columns) {
      const wanted = new Set(query.getAll(name));
      if (wanted.size && filter === "flag") keeps.push((row) => this.of(name, row));
      else if (wanted.size) keeps.push((row) => wanted.has(String(this.of(name, row))));
    }
    for (const { name } of this.list.solver_columns) for (const value of query.getAll(name)) keeps.push(this.testOf(name, value));
    if (query.get("pair")) {
      const [number, what] = query.get("pair").split(".");
      const [a, b] = (pairs[Number(number)] || ["", ""]).map((one) => this.solvers.indexOf(one));
      const [first, second] = what === "helped" ? ["wrong", "right"] : ["right", "wrong"];
      keeps.push((row) => a >= 0 && b >= 0 && this.state(a, row) === first && this.state(b, row) === second);
    }
    // The text search comes last, because it is the slowest.
    const words = (query.get("text") || "").toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length) keeps.push((row) => words.every((word) => this.haystack(row).includes(word)));
    return keeps;
  }

  /** Splits `controller/right` into the solver's index and the word; `*` means any solver, with index null. */
  solverAndWord(value) {
    const at = value.lastIndexOf("/");
    const name = value.slice(0, at);
    return [name === "*" ? null : this.solvers.indexOf(name), value.slice(at + 1)];
  }

  testOf(name, value) {
    const [solver, word] = this.solverAndWord(value);
    const holds = (one, row) => [this.ofSolver(name, one, row)].flat().includes(word);
    return solver === null ? (row) => this.solvers.some((_, one) => holds(one, row)) : (row) => solver >= 0 && holds(solver, row);
  }
};

const rowsOf = new WeakMap();

/** The rows of a benchmark, created once for each list that was read. */
report.rows = async (key) => {
  const list = await report.load(`${key}/list`);
  if (!rowsOf.has(list)) {
    const solvers = report.site.benchmarks.find((one) => one.key === key).solvers.map((one) => one.name);
    rowsOf.set(list, new report.Rows(list, solvers));
  }
  return rowsOf.get(list);
};

/** The count of a chart that an address names as SECTION.CHART.ROW, with its title; null if the report has none. */
async function countOf(key, overview, name) {
  const [section, chart, place] = name.split(".");
  if (!overview.sections.some((one) => one.id === section)) return null;
  const found = await report.load(`${key}/sections/${section}`);
  const row = found.charts[chart] && found.charts[chart].rows[place];
  return row && row.questions ? { ...row, title: found.title } : null;
}

/** The rows that an address selects, with the data that determine them. */
report.found = async (key, query) => {
  const [rows, overview] = await Promise.all([report.rows(key), report.load(`${key}/overview`)]);
  const counted = query.get("cell") === null ? null : (await countOf(key, overview, query.get("cell"))) || { questions: [] };
  return { rows, overview, counted, matching: rows.matching(query, overview.pairs, counted) };
};

/** The count that a query names, in words; null if it names none. */
report.countName = (counted) => {
  if (!counted) return null;
  if (!counted.title) return "a count that this report does not have";
  const words = [counted.title, lineName(counted), counted.metric || counted.quantity].filter(Boolean).join(" · ");
  return counted.absent ? `${words} (${counted.absent} more are not in this list)` : words;
};
