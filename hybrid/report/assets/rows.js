"use strict";
/* The list of questions as it lies in the columns of list.js, and which of its rows a set of filters keeps. */

const cell = (column, row) => column.values[column.codes[row]];

report.Rows = class {
  constructor(list, solvers) {
    this.list = list;
    this.solvers = solvers;
    this.n = list.ids.length;
    this.sampled = new Uint8Array(this.n);
    for (const row of list.sampled) this.sampled[row] = 1;
    this.states = list.solvers.map((column) =>
      Array.from({ length: this.n }, (_, row) => report.state(cell(column.outcomes, row), cell(column.correct, row))),
    );
    this.haystacks = null;
    this.places = null;
  }

  id(row) { return this.list.ids[row]; }
  task(row) { return cell(this.list.tasks, row); }
  text(row) { return cell(this.list.texts, row); }
  state(solver, row) { return this.states[solver][row]; }
  outcome(solver, row) { return cell(this.list.solvers[solver].outcomes, row); }
  answer(solver, row) { return cell(this.list.solvers[solver].answers, row); }
  tools(solver, row) { return cell(this.list.solvers[solver].tools, row); }

  /** The row of an id as it stands in an address; -1 for none. */
  find(id) {
    if (!this.places) this.places = new Map(this.list.ids.map((one, row) => [report.sayable(one), row]));
    const row = this.places.get(id);
    return row === undefined ? -1 : row;
  }

  /** What a search looks through, in small letters: id, task, text and answers. */
  haystack(row) {
    if (!this.haystacks) this.haystacks = new Array(this.n);
    if (this.haystacks[row] === undefined) {
      const answers = this.list.solvers.map((_, solver) => this.answer(solver, row));
      this.haystacks[row] = [this.id(row), this.task(row), this.text(row), ...answers].join("\n").toLowerCase();
    }
    return this.haystacks[row];
  }

  /** The rows that all filters of a query keep, in order. `cells` is cells.js, where the query names a cell. */
  matching(query, pairs, cells) {
    const keeps = this.tests(query, pairs);
    const name = query.get("cell");
    const start = name !== null && cells ? (cells[name] || { rows: [] }).rows : Array.from({ length: this.n }, (_, i) => i);
    return start.filter((row) => keeps.every((keep) => keep(row)));
  }

  tests(query, pairs) {
    const words = (query.get("text") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const keeps = [];
    const tasks = new Set(query.getAll("task"));
    if (tasks.size) keeps.push((row) => tasks.has(this.task(row)));
    if (query.get("sampled")) keeps.push((row) => this.sampled[row] === 1);
    for (const value of query.getAll("verdict")) {
      const [solver, state] = this.ofSolver(value);
      keeps.push((row) => solver >= 0 && this.states[solver][row] === state);
    }
    if (query.get("pair")) {
      const [number, what] = query.get("pair").split(".");
      const [a, b] = (pairs[Number(number)] || ["", ""]).map((one) => this.solvers.indexOf(one));
      const [first, second] = what === "helped" ? ["wrong", "right"] : ["right", "wrong"];
      keeps.push((row) => a >= 0 && b >= 0 && this.states[a][row] === first && this.states[b][row] === second);
    }
    if (query.get("tool")) keeps.push(this.anySolver(query.get("tool"), (s, row, tool) => this.tools(s, row).includes(tool)));
    if (query.get("outcome")) keeps.push(this.anySolver(query.get("outcome"), (s, row, one) => this.outcome(s, row) === one));
    // Last, as it is the slowest.
    if (words.length) keeps.push((row) => words.every((word) => this.haystack(row).includes(word)));
    return keeps;
  }

  /** `controller/right` as the solver's place and the word; `*` is any solver, whose place is null. */
  ofSolver(value) {
    const at = value.lastIndexOf("/");
    const name = value.slice(0, at);
    return [name === "*" ? null : this.solvers.indexOf(name), value.slice(at + 1)];
  }

  anySolver(value, holds) {
    const [solver, word] = this.ofSolver(value);
    if (solver !== null) return (row) => solver >= 0 && holds(solver, row, word);
    return (row) => this.solvers.some((_, one) => holds(one, row, word));
  }
};

const rowsOf = new WeakMap();

/** The rows of a benchmark, made once for each reading of its list. */
report.rows = async (key) => {
  const list = await report.load(`${key}/list`);
  if (!rowsOf.has(list)) {
    const solvers = report.site.benchmarks.find((one) => one.key === key).solvers.map((one) => one.name);
    rowsOf.set(list, new report.Rows(list, solvers));
  }
  return rowsOf.get(list);
};

/** The rows that an address keeps, with everything that they are told from. */
report.found = async (key, query) => {
  const [rows, overview, cells] = await Promise.all([
    report.rows(key),
    report.load(`${key}/overview`),
    query.get("cell") !== null ? report.load(`${key}/cells`) : null,
  ]);
  return { rows, overview, cells, matching: rows.matching(query, overview.pairs, cells) };
};
